"""Near matches of a rule: all of its source is there but one part, or all of it, and the match was refused.

    for near in near_matches(graph, rule):
        print(near.root, near.reason)           # 7, "where the rule wants MatMul, there is Conv"

The source is relaxed at one place after another: an operator with all that it reads, a number, an attribute, or a
variable that occurs twice becomes a variable of its own. A relaxed source that occurs where the source does not tells
what stands in the way. So the matcher itself finds what it nearly found.

Invariant: a full occurrence has no reason if and only if it is a match.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from rlflow.errors import RuleError
from rlflow.ir.graph import Graph
from rlflow.ir.node import INPUT, WEIGHT, Ref
from rlflow.ir.tensor_type import TensorType
from rlflow.rules import pattern
from rlflow.rules.expression import Expression, Scope, Unproven, describe, evaluate, holds
from rlflow.rules.matching.bounds import is_bounded
from rlflow.rules.matching.discrimination_tree import DiscriminationTree, Occurrence, Outline, outline, stored_number
from rlflow.rules.matching.match import Circumstances, drawn_up
from rlflow.rules.matching.replacement import admitted, are_sizes
from rlflow.rules.matching.variants import Variant, compile_variants
from rlflow.rules.pattern import Apply, Term, Variable
from rlflow.rules.rule import Rule

_RELAXED = "?"
"""The name of what takes the place of a part, as a variable; no declaration can use it."""
_RELAXED_ATTRIBUTE = "??"


@dataclass(frozen=True)
class NearMatch:
    """A place at which a rule does not match, and the reason.

    `root` is the node that the first output of the source would be, `missing` counts the operators of the source that
    are not there, and `found` is the node that stands in the way, where it is one.
    """

    root: int
    reason: str
    missing: int = 0
    found: int | None = None


def near_matches(graph: Graph, rule: Rule) -> list[NearMatch]:
    """Return the places of near matches in the graph's order, at each those that lack the fewest operators: half of the
    source's at most.

    Where the whole source occurs, that is the only reason told.
    """
    most_missing = len(_running(*rule.source)) // 2
    variants = [(variant, outline(variant)) for variant in compile_variants(rule)]
    relaxed = [(loose, outline(loose), gap) for variant, _ in variants for loose, gap in _relaxed_variants(variant)]
    whole, partial = DiscriminationTree(variants), DiscriminationTree((loose, written) for loose, written, _ in relaxed)
    found: list[NearMatch] = []
    for root in graph.order:
        full = whole.occurrences(graph, root)
        refused = [refusal(graph, *variants[occurrence.variant], occurrence) for occurrence in full]
        if full:
            reasons = [] if "" in refused else dict.fromkeys(refused)
            found += [NearMatch(root, reason) for reason in reasons]
            continue
        near = dict.fromkeys(
            _near(graph, root, relaxed[occurrence.variant][2], relaxed[occurrence.variant][:2], occurrence)
            for occurrence in partial.occurrences(graph, root)
        )
        least = min((each.missing for each in near), default=0)
        found += [each for each in near if each.missing == least <= most_missing]
    return found


def lacking(graph: Graph, rule: Rule) -> list[str]:
    """Return the operators of the source that the graph has nowhere."""
    there = {graph.nodes[i].op for i in graph.order}
    return sorted({part.op for part in _running(*rule.source)} - there)


def _running(*terms: Term) -> list[Apply]:
    """The operators of terms that are not parts of numbers."""
    return [part for part in pattern.operators(*terms) if pattern.variables(part)]


class _Gap(NamedTuple):
    """The part of a source that was relaxed; `attribute` names an attribute of the operator `part`."""

    part: Term
    attribute: str = ""
    value: Any = None
    is_repeated: bool = False


def _relaxed_variants(variant: Variant) -> Iterator[tuple[Variant, _Gap]]:
    """Yield the variant relaxed at each place where it can be matched so."""
    seen = set[str]()
    for number, root in enumerate(variant.source):
        for term, gap in _relaxed(root, seen, is_root=True):
            assert isinstance(term, Apply), "a root stays an operator"
            loose = replace(variant, source=(*variant.source[:number], term, *variant.source[number + 1 :]))
            try:
                outline(loose)
            except RuleError:  # its roots share no variable any more
                continue
            yield loose, gap


def _relaxed(term: Term, seen: set[str], is_root: bool = False) -> Iterator[tuple[Term, _Gap]]:
    """Yield the term relaxed at each of its places; `seen` are the variables that occurred before."""
    if isinstance(term, Variable):
        if term.name in seen:
            yield Variable(_RELAXED), _Gap(term, is_repeated=True)
        seen.add(term.name)
        return
    if not is_root:
        yield Variable(_RELAXED), _Gap(term)
    if not pattern.variables(term):  # a number is there or not
        return
    for place, (name, value) in enumerate(term.attributes):
        attributes = (*term.attributes[:place], (name, _RELAXED_ATTRIBUTE), *term.attributes[place + 1 :])
        yield replace(term, attributes=attributes), _Gap(term, name, value)
    for place, argument in enumerate(term.arguments):
        for loose, gap in _relaxed(argument, seen):
            arguments = (*term.arguments[:place], loose, *term.arguments[place + 1 :])
            yield replace(term, arguments=arguments), gap
            if loose == Variable(_RELAXED) and not pattern.variables(argument) and len(arguments) == 2:
                yield replace(term, arguments=arguments[::-1]), gap  # a number is looked for in both places


def _near(graph: Graph, root: int, gap: _Gap, relaxed: tuple[Variant, Outline], occurrence: Occurrence) -> NearMatch:
    """Say what is there instead of the part that was relaxed."""
    variant, written = relaxed
    if gap.attribute:
        assert isinstance(gap.part, Apply)
        is_bound = isinstance(gap.value, str) and gap.value.startswith("?")
        wanted = "what it is elsewhere in the source" if is_bound else describe(pattern.thaw(gap.value))
        present = occurrence.attributes[written.slots.index(_RELAXED_ATTRIBUTE)]
        return NearMatch(root, f"{gap.attribute} of {gap.part.op} is {present!r}, not {wanted}")

    ref = occurrence.values[variant.variables.index(_RELAXED)]
    if gap.is_repeated:
        return NearMatch(root, f"the rule reads {pattern.show(gap.part)} in two places, here they differ", 0, ref.node)
    if not pattern.variables(gap.part):
        return NearMatch(
            root, f"where the rule wants {pattern.show(gap.part)}, there is {_said(graph, ref)}", 0, ref.node
        )
    assert isinstance(gap.part, Apply)
    missing = len(_running(gap.part))
    if graph.nodes[ref.node].op == gap.part.op:
        reason = f"more than one part of {pattern.show(gap.part)} is different"
    else:
        reason = f"where the rule wants {gap.part.op}, there is {_said(graph, ref)}"
    return NearMatch(root, reason, missing, ref.node)


def _said(graph: Graph, ref: Ref) -> str:
    node = graph.nodes[ref.node]
    if node.op == INPUT:
        return "an input of the graph"
    if not node.constant:
        return node.op
    tensor_type = graph.type_of(ref)
    number = stored_number(graph, ref) if tensor_type and tensor_type.is_static and tensor_type.elements == 1 else None
    return f"a constant {tensor_type}" if number is None else f"the number {number:g}"


def refusal(graph: Graph, variant: Variant, written: Outline, occurrence: Occurrence) -> str:
    """Say why an occurrence of the whole source is no match; "" if it is one."""
    rule, bindings = variant.rule, dict(zip(variant.variables, occurrence.values, strict=True))
    shared = _shared_inside(graph, written, occurrence)
    if shared:
        return shared
    types: dict[str, TensorType] = {}
    for name, ref in bindings.items():
        tensor_type = graph.type_of(ref)
        if tensor_type is None:
            return f"the type of {name} is not known"
        types[name] = tensor_type

    literals = {name: _literal(graph, bindings[name]) for name in variant.literals}
    for name, value in literals.items():
        if value is None:
            return f"{name} is not one stored number"
    constant = {name: graph.nodes[ref.node].constant for name, ref in bindings.items()}
    if not admitted(rule, types, constant):
        return _not_admitted(rule, types, constant)

    known = {name: value for name, value in literals.items() if value is not None}
    bounded = tuple(name for name in variant.bounded if is_bounded(graph, bindings[name]))
    scope = Scope(types, dict(zip(written.slots, occurrence.attributes, strict=True)), known, bounded)
    for condition in rule.where:
        if not holds(condition, scope):
            return f"it holds only if {describe(condition)}{_seen(condition, scope)}"
    for condition in rule.profitable_if:
        if not holds(condition, scope):
            return f"it is tried only if {describe(condition)}{_seen(condition, scope)}"
    results = tuple(
        graph.nodes[occurrence.nodes[application]].types[source.output :][:1]
        for application, source in zip(written.roots, variant.source, strict=True)
    )
    if not all(results):
        return "an operator has fewer outputs than the rule replaces"
    if any(are_sizes(result) for (result,) in results):
        return "what it replaces are sizes, which are left as they are"
    here = Circumstances(
        0,
        tuple(types.values()),
        tuple(constant.values()),
        occurrence.attributes,
        tuple(known.values()),
        tuple(result for (result,) in results),
        bounded,
    )
    if drawn_up(variant, written, here) is None:
        return "what it writes has another type than what it replaces, is empty, or holds not at every size"
    if not graph.header.offers(rule.versions):
        wanted = " and ".join(
            f"{domain or 'ai.onnx'} {version}" for domain, version in rule.versions.items() if version
        )
        return f"it writes operators of {wanted}; the model has opset {graph.header.opset}"
    return ""


def _shared_inside(graph: Graph, written: Outline, occurrence: Occurrence) -> str:
    """Say which value inside somebody else needs, which the rewrite would compute twice; "" if none."""
    inside = set(occurrence.nodes)
    roots = {occurrence.nodes[application] for application in written.roots}
    for node in sorted(inside - roots):
        if graph.nodes[node].constant:
            continue
        if node in graph.output_nodes:
            return f"the value of {graph.nodes[node].op} inside is an output as well"
        readers = [reader for reader in graph.consumers[node] if reader not in inside]
        if readers:
            others = ", ".join(sorted({graph.nodes[reader].op for reader in readers}))
            return f"the value of {graph.nodes[node].op} inside is read elsewhere, too, by {others}"
    return ""


def _literal(graph: Graph, ref: Ref) -> float | None:
    tensor_type = graph.type_of(ref)
    if graph.nodes[ref.node].op != WEIGHT or tensor_type is None or not tensor_type.is_static:
        return None
    return stored_number(graph, ref) if tensor_type.elements == 1 else None


def _not_admitted(rule: Rule, types: Mapping[str, TensorType], constant: Mapping[str, bool]) -> str:
    """Say which variable is bound to a tensor that the rule has no template or no certificate for."""
    for name, tensor_type in types.items():
        spec = rule.spec(name)
        if spec.constant and not constant[name]:
            return f"{name} is not constant"
        if admitted(rule, {name: tensor_type}, constant):
            continue
        certified = TensorType(min(rule.elements_of(name)), tensor_type.shape)
        if admitted(rule, {name: certified}, constant):
            return f"{name} is {tensor_type.dtype}, of which no certificate speaks"
        return f"{name} has shape {_shape(tensor_type.shape)}, not {_shape(spec.shape)}"
    templates = (f"{name} {_shape(rule.spec(name).shape)}" for name in types if rule.spec(name).shape is not None)
    return f"the shapes do not fit together as {', '.join(templates)}"


def _shape(shape: tuple[int | str | None, ...] | None) -> str:
    return "of unknown rank" if shape is None else f"[{', '.join('?' if d is None else str(d) for d in shape)}]"


_COMPARED = ("==", "!=", "<", "<=", "in")


def _seen(condition: Expression, scope: Scope) -> str:
    """The two sides of a comparison as they are here."""
    if not isinstance(condition, list) or condition[0] not in _COMPARED:
        return ""
    try:
        one, other = (evaluate(side, scope) for side in condition[1:])
    except Unproven:
        return "; here that is not known"
    return f"; here {_number(one)} and {_number(other)}"


def _number(value: object) -> str:
    return f"[{', '.join(map(str, value))}]" if isinstance(value, tuple) else str(value)
