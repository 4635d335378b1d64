"""The places in a graph at which rules apply.

The discrimination tree finds occurrences of sources. One becomes a match if the rewriter admits it (`Admission`: the
plain one wants that nobody outside reads a value inside), and if the rule's target can be typed in its place. A match
carries that typed target, so that every match that is listed can be applied. Layers are alike: a target is drawn up
once for all places with the same circumstances (types, attributes, which operands are constant), on which alone it
depends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rlflow.ir.graph import Graph
from rlflow.ir.node import WEIGHT, AttributeValue, Ref
from rlflow.ir.tensor_type import TensorType
from rlflow.rules.expression import Scope
from rlflow.rules.matching.bounds import is_bounded
from rlflow.rules.matching.discrimination_tree import (
    DiscriminationTree,
    Occurrence,
    Outline,
    outline,
    stored_number,
)
from rlflow.rules.matching.replacement import Replacement, replacement
from rlflow.rules.matching.variants import Variant
from rlflow.rules.rule import Rule


@dataclass(frozen=True, eq=False, slots=True)
class Match:
    """A place at which `rule` applies.

    `nodes` are the matched nodes that run, roots first; `source` are those that the applications of the rule's source
    matched, constants included, in the order in which a walk down from its outputs meets them.
    """

    rule: Rule
    roots: tuple[Ref, ...]
    bindings: Mapping[str, Ref]
    nodes: tuple[int, ...]
    source: tuple[int, ...]
    replacement: Replacement


class Circumstances(NamedTuple):
    """Everything that the replacement of a variant's source depends on.

    `types` and `constant` are in the order of its variables, `attributes` of its attribute variables, `literals` of its
    literal variables, and `results`, the types of what is replaced, of its outputs. `bounded` are those variables that
    are bounded, of those that have to be.
    """

    variant: int
    types: tuple[TensorType, ...]
    constant: tuple[bool, ...]
    attributes: tuple[AttributeValue, ...]
    literals: tuple[float, ...]
    results: tuple[TensorType | None, ...]
    bounded: tuple[str, ...] = ()


Admission = Callable[[Graph, Mapping[int, object], Sequence[int]], bool]
"""Tells if an occurrence may become a match, from the graph, its nodes, and those of them that are inner and run."""

_MAX_REMEMBERED = 200_000


class Indexed:
    """Variants in a tree, each given with the index of its rule: what all matchers of the same rules share."""

    def __init__(self, variants: Sequence[tuple[int, Variant]]) -> None:
        self.rules = [rule for rule, _ in variants]
        self.variants = [variant for _, variant in variants]
        self.outlines = list(map(outline, self.variants))
        self.tree = DiscriminationTree(zip(self.variants, self.outlines, strict=True))


class Matcher:
    """Finds matches of all variants at once, and remembers their replacements by their circumstances."""

    def __init__(self, indexed: Indexed, admits: Admission) -> None:
        self._indexed, self._admits = indexed, admits
        self._replacements: dict[Circumstances, Replacement | None] = {}

    def at(self, graph: Graph, root: int, deeper_than: int = -1) -> Iterator[tuple[int, Match]]:
        """Yield (rule index, match) for all matches whose first root is this node.

        They are of variants deeper than `deeper_than`, in the order of these; a rule with several outputs matches in
        every order of its roots.
        """
        if graph.nodes[root].constant:
            return
        seen = set()
        for occurrence in self._indexed.tree.occurrences(graph, root, deeper_than):
            match = self._completed(graph, occurrence)
            if match is not None:
                rule = self._indexed.rules[occurrence.variant]
                # Two variants of one rule may match in the same way, as Add(x, y) does on equal operands.
                key = (rule, match.roots, frozenset(match.bindings.items()))
                if key not in seen:
                    seen.add(key)
                    yield rule, match

    def _completed(self, graph: Graph, occurrence: Occurrence) -> Match | None:
        """Return the match of an occurrence, None if it is not admitted or nothing can replace it."""
        variant, written = self._indexed.variants[occurrence.variant], self._indexed.outlines[occurrence.variant]
        inside = dict.fromkeys(occurrence.nodes)
        roots = tuple(
            Ref(occurrence.nodes[application], source.output)
            for application, source in zip(written.roots, variant.source, strict=True)
        )

        running = dict.fromkeys(root.node for root in roots)
        inner = sorted(n for n in inside if n not in running and not graph.nodes[n].constant)
        if not self._admits(graph, inside, inner) or any(r.index >= len(graph.nodes[r.node].types) for r in roots):
            return None

        bindings = dict(zip(variant.variables, occurrence.values, strict=True))
        replaced_by = self._replacement(graph, occurrence, bindings, roots)
        if replaced_by is None or not graph.header.offers(variant.rule.versions):
            return None
        return Match(variant.rule, roots, bindings, (*running, *inner), occurrence.nodes, replaced_by)

    def _replacement(
        self, graph: Graph, occurrence: Occurrence, bindings: Mapping[str, Ref], roots: tuple[Ref, ...]
    ) -> Replacement | None:
        """Return the replacement at this place, from memory if there was one in the same circumstances."""
        types, literals = [], []
        for ref in occurrence.values:
            tensor_type = graph.type_of(ref)
            if tensor_type is None:
                return None
            types.append(tensor_type)
        for name in self._indexed.variants[occurrence.variant].literals:
            number = _literal(graph, bindings[name])
            if number is None:
                return None
            literals.append(number)

        here = Circumstances(
            occurrence.variant,
            tuple(types),
            tuple(graph.nodes[ref.node].constant for ref in occurrence.values),
            occurrence.attributes,
            tuple(literals),
            tuple(map(graph.type_of, roots)),
            tuple(n for n in self._indexed.variants[occurrence.variant].bounded if is_bounded(graph, bindings[n])),
        )
        if here not in self._replacements:
            if len(self._replacements) >= _MAX_REMEMBERED:  # bounds the memory of long searches
                self._replacements.clear()
            self._replacements[here] = drawn_up(
                self._indexed.variants[here.variant], self._indexed.outlines[here.variant], here
            )
        return self._replacements[here]


def drawn_up(variant: Variant, written: Outline, here: Circumstances) -> Replacement | None:
    """Return what replaces a variant's source, of which `written` is the outline, in these circumstances."""
    scope = Scope(
        dict(zip(variant.variables, here.types, strict=True)),
        dict(zip(written.slots, here.attributes, strict=True)),
        dict(zip(variant.literals, here.literals, strict=True)),
        here.bounded,
    )
    return replacement(variant.rule, scope, dict(zip(variant.variables, here.constant, strict=True)), here.results)


def is_private(graph: Graph, inside: Mapping[int, object], inner: Sequence[int]) -> bool:
    """Return True if nobody outside reads an inner value, which the rewrite would then compute twice."""
    outputs, consumers = graph.output_nodes, graph.consumers
    return all(i not in outputs and all(c in inside for c in consumers[i]) for i in inner)


def _literal(graph: Graph, ref: Ref) -> float | None:
    """Return the number of a literal variable, None if it is not a stored scalar."""
    tensor_type = graph.type_of(ref)
    if graph.nodes[ref.node].op != WEIGHT or tensor_type is None:
        return None
    if not tensor_type.is_static or tensor_type.elements != 1:
        return None
    return stored_number(graph, ref)
