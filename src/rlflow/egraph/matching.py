"""The matches of rules in the e-graph of a model: where a source occurs, and the typed and priced target there.

A rule has the conditions of matching in a graph (rules/matching/replacement.py) but one: the inside of a match may have
other readers. An e-graph replaces nothing, and extraction pays exactly for nodes that are shared. Rules do not apply to
constants, and constant expressions grow no deeper than `MAX_CONSTANT_DEPTH`.

A target depends on its circumstances alone (types, constants, attributes, numbers), of which there are few, as layers
are alike; it is drawn up and priced once for each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from math import fsum
from typing import NamedTuple

from rlflow.egraph.egraph import ClassId, ENodeId, Target
from rlflow.egraph.model_egraph import ModelEGraph
from rlflow.egraph.occurrences import Occurrence, Walk, distances
from rlflow.egraph.prices import NodePrice
from rlflow.ir.graph import Header
from rlflow.ir.node import Node, Ref
from rlflow.ir.tensor_type import TensorType
from rlflow.rules import pattern
from rlflow.rules.expression import bounded_in
from rlflow.rules.matching.discrimination_tree import Place, outline, planted
from rlflow.rules.matching.match import Circumstances, drawn_up
from rlflow.rules.matching.replacement import Operand, Replacement
from rlflow.rules.matching.variants import compile_variants
from rlflow.rules.rule import Rule

MAX_CONSTANT_DEPTH = 5


class EMatch(NamedTuple):
    """A place in an e-graph at which a rule applies; the fields are those of a `Use`.

    `extra_ms` is what the target's nodes take beyond those of the source, if each had to be computed for it alone.
    A match `reorders` if both sides are the same operators, as those of associativity and commutativity are.
    """

    rule: Rule
    source: tuple[ENodeId, ...]
    roots: tuple[ENodeId, ...]
    variables: Mapping[str, ClassId]
    target: Target
    extra_ms: float
    reorders: bool

    @property
    def pays(self) -> bool:
        """Return True if the target takes less time, or as much and does not merely reorder."""
        return self.extra_ms < 0 or (self.extra_ms == 0 and not self.reorders)

    def applied(self, egraph: ModelEGraph) -> bool:
        """Use the rule here, return True if that brought anything new."""
        return egraph.use(self.rule, self.source, self.roots, self.variables, self.target) is not None


class _Priced(NamedTuple):
    """A target, what its running nodes take, whether it has constant nodes, and if it has the source's operators."""

    target: Target
    runtime_ms: float
    has_constants: bool
    reorders: bool


class EMatcher:
    """Finds the matches of rules in e-graphs of models with this header."""

    def __init__(self, rules: Sequence[Rule], header: Header, price: NodePrice) -> None:
        """Compile the rules, without those whose targets the models cannot express, and without those that ask if a
        value is bounded: a class of many expressions has no one neighbourhood by which that would be proved.

        `RuleError` if outputs of a rule might feed each other.
        """
        fitting = [rule for rule in rules if header.offers(rule.versions) and not bounded_in(rule.where)]
        self._variants = [variant for rule in fitting for variant in compile_variants(rule)]
        self._outlines = list(map(outline, self._variants))
        self._single, self._joint = self._tree(several=False), self._tree(several=True)
        self._price = price
        self._targets: dict[Circumstances, _Priced | None] = {}

    def _tree(self, several: bool) -> Place:
        """Return the tree of the variants with one root, or of those with several."""
        chosen = [n for n, variant in enumerate(self._variants) if (len(variant.roots) > 1) == several]
        return planted((n, self._variants[n].depth, self._outlines[n]) for n in chosen)

    def everywhere(self, egraph: ModelEGraph) -> Iterator[EMatch]:
        """Yield all matches of rules with one root, by their roots and the order of the rules."""
        return self._at(egraph, self._single, dict.fromkeys(egraph.applications(), -1))

    def around(self, egraph: ModelEGraph, changed: Iterable[ClassId], first_new: ENodeId) -> Iterator[EMatch]:
        """Yield the matches of rules with one root that there can be since these classes have changed.

        E-nodes from `first_new` on are new.
        """
        reading = distances(egraph, changed, self._single.depth)
        # A rule reaches a class so many operands down only if its source is as deep.
        roots = {application: distance - 1 for application, distance in reading.items()}
        roots |= dict.fromkeys(egraph.applications(first_new), -1)
        alive = sorted(root for root in roots if root not in egraph.filtered)
        return self._at(egraph, self._single, {root: roots[root] for root in alive})

    def joint(self, egraph: ModelEGraph, roots: Iterable[ENodeId]) -> Iterator[EMatch]:
        """Yield the matches of rules with several roots, all among these; a set of roots that look alike only once."""
        return self._at(egraph, self._joint, dict.fromkeys(roots, -1))

    def _at(self, egraph: ModelEGraph, tree: Place, roots: Mapping[ENodeId, int]) -> Iterator[EMatch]:
        walk = Walk(egraph, roots)
        occurrences = (walk.occurrences(tree, root, deeper_than) for root, deeper_than in roots.items())
        for occurrence in chain.from_iterable(occurrences):
            match = self._completed(egraph, occurrence)
            if match is not None:
                yield match

    def _completed(self, egraph: ModelEGraph, occurrence: Occurrence) -> EMatch | None:
        """Return the match of an occurrence, None if the rule does not apply there."""
        variant, written = self._variants[occurrence.variant], self._outlines[occurrence.variant]
        applications = [occurrence.applications[place] for place in written.roots]
        if variant.symmetric and applications != sorted(applications):
            return None
        roots = tuple(a + term.output for a, term in zip(applications, variant.source, strict=True))
        if any(root not in egraph.outputs_of(a) for a, root in zip(applications, roots, strict=True)):
            return None
        priced = self._target(egraph, occurrence, roots)
        if priced is None:
            return None
        variables = dict(zip(variant.variables, occurrence.variables, strict=True))
        if priced.has_constants and _constant_depth(egraph, priced.target, occurrence.variables) > MAX_CONSTANT_DEPTH:
            return None
        extra_ms = priced.runtime_ms - self._source_ms(egraph, occurrence.applications)
        source, target = occurrence.applications, priced.target
        return EMatch(variant.rule, source, roots, variables, target, extra_ms, priced.reorders)

    def _target(self, egraph: ModelEGraph, occurrence: Occurrence, roots: Sequence[ENodeId]) -> _Priced | None:
        """Return the target at this place, from memory if there was one in the same circumstances."""
        here = self._circumstances(egraph, occurrence, roots)
        if here is None:
            return None
        if here not in self._targets:
            self._targets[here] = self._drawn_up(here)
        return self._targets[here]

    def _circumstances(
        self, egraph: ModelEGraph, occurrence: Occurrence, roots: Sequence[ENodeId]
    ) -> Circumstances | None:
        """Return what the target depends on, None if a variable has no type or a literal one no number."""
        variant = self._variants[occurrence.variant]
        types = [t for t in map(egraph.type_of, occurrence.variables) if t is not None]
        bindings = zip(variant.variables, occurrence.variables, strict=True)
        stored = [egraph.stored_number(value) for name, value in bindings if name in variant.literals]
        literals = [number for number in stored if number is not None]
        if len(types) < len(variant.variables) or len(literals) < len(variant.literals):
            return None
        return Circumstances(
            occurrence.variant,
            tuple(types),
            tuple(map(egraph.is_constant, occurrence.variables)),
            occurrence.attributes,
            tuple(literals),
            tuple(map(egraph.type_of, roots)),
        )

    def _drawn_up(self, here: Circumstances) -> _Priced | None:
        variant = self._variants[here.variant]
        drawn = drawn_up(variant, self._outlines[here.variant], here)
        if drawn is None:
            return None
        types: list[Sequence[TensorType | None]] = [(tensor_type,) for tensor_type in here.types]
        target = target_of(drawn, variant.variables)
        runtimes_ms = []
        for node in target.nodes:
            if not node.constant:
                runtimes_ms.append(self._price(node, [types[r.node][r.index] for r in node.inputs if r is not None]))
            types.append(node.types)
        operators = sorted(node.op for node in target.nodes)
        reorders = operators == sorted(application.op for application in pattern.operators(*variant.source))
        return _Priced(target, fsum(runtimes_ms), any(node.constant for node in target.nodes), reorders)

    def _source_ms(self, egraph: ModelEGraph, applications: Sequence[ENodeId]) -> float:
        """Return what the running nodes of an occurrence take."""
        nodes = [egraph.node(application) for application in applications if not egraph.is_constant(application)]
        return fsum(self._price(node, list(map(egraph.type_of, children))) for node, _, children in nodes)


def target_of(drawn: Replacement, variables: Sequence[str]) -> Target:
    """Write a replacement as a target over these variables."""
    places = {name: place for place, name in enumerate(variables)}

    def placed(operand: Operand) -> Ref:
        if isinstance(operand, str):
            return Ref(places[operand])
        return Ref(len(variables) + operand.node, operand.index)

    nodes = tuple(
        Node(
            op=planned.op,
            inputs=tuple(map(placed, planned.inputs)),
            attributes=planned.attributes,
            types=planned.types,
            names=("",) * len(planned.types),
            constant=planned.constant,
        )
        for planned in drawn.nodes
    )
    return Target(nodes, tuple(map(placed, drawn.outputs)))


def _constant_depth(egraph: ModelEGraph, target: Target, variables: Sequence[ClassId]) -> int:
    """Return how deep the deepest constant of a target will be."""
    depths = list(map(egraph.constant_depth, variables))
    for node in target.nodes:
        operands = [depths[ref.node] for ref in node.inputs if ref is not None]
        depths.append(1 + max(operands, default=-1) if node.constant else -1)
    return max(depths[len(variables) :], default=-1)
