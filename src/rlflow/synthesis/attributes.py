"""Attributes of movements, seen at one value, as variables: an axis as any axis, a slice as any slice.

What the source writes may be anything of its kind. What the target writes is computed from that, and found by example:
of the expressions over the source's attributes and dimensions, those come into question that give what was seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from itertools import combinations_with_replacement, islice, product
from random import Random
from typing import Any, NamedTuple

from rlflow.errors import RuleError
from rlflow.ir.node import AttributeValue
from rlflow.ir.tensor_type import TensorType
from rlflow.ops.registry import OPERATORS
from rlflow.rules import pattern
from rlflow.rules.expression import TO_THE_END, Expression, Scope, Unproven, evaluate
from rlflow.rules.pattern import Apply, Term, Variable
from rlflow.rules.rule import Rule, VariableSpec
from rlflow.rules.verification.sampler import Sampler

_AXES = frozenset({"axis", "axes"})
_ALIKE = _AXES | {"partition"}
"""Kinds of which equal values are one: where they may differ, there is an example in which they do."""

_SIZES = frozenset({"extent", "partition"})
_TURNS = frozenset({"permutation"})
_SHAPES = frozenset({"reshape"})


def grouping(kinds: Set[str]) -> frozenset[str]:
    """The operators that have attributes of these kinds."""
    return frozenset(name for name, operator in OPERATORS.items() if kinds & operator.attribute_groups.keys())


_ELEMENTWISE = frozenset(name for name, operator in OPERATORS.items() if operator.traits.elementwise)
_RESHAPING, _ALONG_AXES = grouping(_SHAPES), grouping(_AXES)
SHAPE_BLIND = _ELEMENTWISE | grouping(_TURNS)
"""Operators that ask nothing of their operands' shapes but that they broadcast."""

_NEUTRAL: Mapping[str, AttributeValue] = {"ends": (TO_THE_END,), "starts": (0,), "steps": (1,)}
"""Of a slice, what says nothing of the size of an example."""

_TYPED_AT = 16
"""Drawn instances at which it is asked whether a target is typed."""

_MOST = 24
"""Targets of one source that are tried."""

_MOST_ALIKE = 4
"""Expressions of one value that are tried."""


class _Slot(NamedTuple):
    """One of the attribute groups of one application, as it was seen."""

    node: Apply
    kind: str
    names: tuple[str, ...]
    value: tuple[Any, ...]


def _slots(*terms: Term) -> list[_Slot]:
    """List the attribute groups of all applications, in the order of the operators, operands first."""
    nodes = dict.fromkeys(t.node for term in terms for t in pattern.subterms(term) if isinstance(t, Apply))
    return [
        _Slot(node, kind, names, tuple(dict(node.attributes)[name] for name in names))
        for node in nodes
        for kind, names in OPERATORS[node.op].attribute_groups.items()
    ]


def is_tied(rule: Rule) -> bool:
    """Return True if the rule has a size of the example that it was found at, though its templates admit others."""
    return any(map(_is_tied, _slots(*rule.source, *rule.target)))


def _is_tied(slot: _Slot) -> bool:
    """Return True where a size stands: -1 and 0 in a reshape are none."""
    written = [
        (name, value)
        for name, value in zip(slot.names, slot.value, strict=True)
        if isinstance(value, tuple) and all(isinstance(part, int) for part in value)
    ]
    if slot.kind == "reshape":
        return any(size > 0 for _, value in written for size in value)
    return slot.kind in _SIZES and any(value != _NEUTRAL.get(name) for name, value in written)


def axes_of(rule: Rule) -> list[Expression]:
    """The axes that the source leaves open, as expressions."""
    named = dict.fromkeys((s.kind, s.value[0]) for s in _slots(*rule.source) if s.kind in _AXES)
    return [name if kind == "axis" else ["get", name, 0] for kind, name in named if isinstance(name, str)]


def sized(spec: VariableSpec, dimensions: Mapping[str, int]) -> TensorType:
    """The type of a variable at the example, where its symbols have these numbers."""
    return TensorType("float32", tuple(dimensions[d] if isinstance(d, str) else d for d in spec.shape or ()))


def with_leading(rule: Rule, names: Sequence[str]) -> Rule:
    """Any number of leading dimensions before the templates of these variables; a scalar may have any shape, and so may
    indices."""
    specs = dict(rule.variables)
    for name in names:
        template = specs[name].shape
        if template:
            specs[name] = VariableSpec(shape=(f"...{name}", *(() if name in rule.indices else template)))
        else:
            del specs[name]
    return replace(rule, variables=specs, certificate=None)


def of_any_attributes(rule: Rule, dimensions: Mapping[str, int]) -> Iterator[Sequence[Rule]]:
    """Any attributes of tensors of any rank, where nothing else asks for shapes; what was a scalar has one element."""
    operators = {node.op for node in pattern.operators(*rule.source, *rule.target)}
    if operators <= SHAPE_BLIND | _ALONG_AXES:
        kinds = _AXES | _SIZES | _TURNS
    elif operators <= _ELEMENTWISE | _RESHAPING and len(rule.variables) == 1:
        kinds = _SHAPES
    else:
        return
    lists = {name: VariableSpec(shape=(f"{name}0",)) for name in rule.variables if name in rule.indices}
    scalars = [name for name, spec in rule.variables.items() if spec.shape == ()]
    wider = [replace(rule, variables=lists, where=())]
    if scalars:
        wider.append(replace(wider[0], where=tuple(["==", ["elements", s], 1] for s in scalars)))
    yield from _opened(rule, wider, kinds, _types(rule, dimensions))


def of_any_size(rule: Rule, dimensions: Mapping[str, int]) -> Iterator[Sequence[Rule]]:
    """Any sizes along axes that stay where they are."""
    if not rule.attributes:
        yield from _opened(rule, [rule], _SIZES, _types(rule, dimensions))


def of_any_permutation(rule: Rule, dimensions: Mapping[str, int]) -> Iterator[Sequence[Rule]]:
    """Transposes of any rank, with any number of dimensions before the templates."""
    if not rule.attributes:
        wider = with_leading(rule, [name for name, spec in rule.variables.items() if spec.shape])
        yield from _opened(rule, [wider], _TURNS, {})


def _types(rule: Rule, dimensions: Mapping[str, int]) -> dict[str, TensorType]:
    return {name: sized(spec, dimensions) for name, spec in rule.variables.items()}


def _opened(
    rule: Rule, wider: Sequence[Rule], kinds: frozenset[str], types: Mapping[str, TensorType]
) -> Iterator[Sequence[Rule]]:
    """The wider rules with variables for attributes of these kinds, in groups: slices of all directions first, and then
    targets that write what their source does. Of one source, those targets come first that are typed most often.
    """
    present = kinds & {slot.kind for slot in _slots(*rule.source)}
    if not present:
        return
    for forward in (False, True) if "extent" in present else (False,):
        openings = {o.source: o for o in (_Opening(rule, kinds, alike, forward, types) for alike in (_ALIKE, kinds))}
        for options in (_copied, _computed):
            yield [
                candidate
                for opening, w in product(openings.values(), wider)
                for candidate in _by_typing(list(islice(_candidates(w, opening, options), _MOST)))
            ]


def _by_typing(candidates: Sequence[Rule]) -> Sequence[Rule]:
    """Rules of one source, those before others whose targets are typed at more quarters of drawn instances."""
    if len(candidates) < 2:
        return candidates
    sampler, random = Sampler(candidates[0]), Random(0)
    try:
        drawn = [sampler.draw(random) for _ in range(_TYPED_AT)]
    except RuleError:
        return candidates

    def untyped(candidate: Rule) -> int:
        sides = map(Sampler(candidate).sides, drawn)
        return 4 * sum(found is None for found in sides) // _TYPED_AT

    return sorted(candidates, key=untyped)


def _may_share(one: _Slot, other: _Slot) -> bool:
    """Return True if two slots may share a variable: values are equal, and sizes and permutations do not follow
    each other.
    """
    inside = one.kind not in _AXES and one.node in (t for t in pattern.subterms(other.node) if isinstance(t, Apply))
    return (one.kind, one.value) == (other.kind, other.value) and not inside


class _Opening:
    """The source with variables for the attributes of some kinds: one for equal values of the kinds that are `alike`,
    one for each application of the others. `forward` slices go from the front, element by element.
    """

    def __init__(
        self, rule: Rule, kinds: frozenset[str], alike: frozenset[str], forward: bool, types: Mapping[str, TensorType]
    ) -> None:
        self.kinds, self.types, self.indices = kinds, types, rule.indices
        self.written: dict[_Slot, tuple[Any, ...]] = {}
        self.values: dict[str, AttributeValue] = {}
        self.drawn: dict[str, Any] = {}
        self.where: list[Expression] = []
        self._forward = forward
        for slot in _slots(rule.source[0]):
            if slot.kind in kinds:
                same = (s for s in self.written if slot.kind in alike and _may_share(s, slot))
                equal = next(same, None)
                self.written[slot] = self._variables(slot) if equal is None else self.written[equal]
        self.source = _rewritten(rule.source[0], self.written)

    @property
    def scope(self) -> Scope:
        return Scope(self.types, self.values)

    def of_kind(self, *kinds: str) -> list[tuple[Any, ...]]:
        """Return what the source writes in the slots of these kinds."""
        return list(dict.fromkeys(names for slot, names in self.written.items() if slot.kind in kinds))

    @property
    def axes(self) -> list[Expression]:
        return [*(a for (a,) in self.of_kind("axis")), *(["get", a, 0] for (a,) in self.of_kind("axes"))]

    def _variables(self, slot: _Slot) -> tuple[Any, ...]:
        """Variables for the values of a slot; a step stays as it is where slices go forward."""
        written: list[Any] = []
        for name, value in zip(slot.names, slot.value, strict=True):
            if self._forward and name == "steps":
                return (*written, value)
            variable = f"?{name}{len(self.values)}"
            self.drawn[variable] = self._drawn(slot, written)
            self.where += self._demanded(slot, variable)
            self.values[variable] = value
            written.append(variable)
        return tuple(written)

    def _equal_axis(self, slot: _Slot) -> Expression | None:
        """An axis of the other form, alone or in a list, that is the same at the example."""
        if slot.kind not in _AXES:
            return None
        single = slot.value[0] if slot.kind == "axis" else slot.value[0][0]
        return next((axis for axis in self.axes if _value(axis, self.scope) == single), None)

    def _drawn(self, slot: _Slot, before: Sequence[str]) -> Any:
        """Say how the next variable of a slot is drawn."""
        same = self._equal_axis(slot)
        if same is not None:
            return ["choice", same if slot.kind == "axis" else ["list", same]]
        if slot.kind == "extent":
            return ["extent", *before]
        operands = [name for name in pattern.variables(slot.node) if name not in self.indices]
        return self._partition(slot.node, operands) if slot.kind == "partition" else [slot.kind, *operands]

    def _partition(self, split: Apply, operands: Sequence[str]) -> Any:
        """Draw parts of a variable that has, at the example, the dimension that is split; else sizes of what is
        joined.
        """
        place, sizes = (dict(split.attributes)[name] for name in ("axis", "split"))
        axis = next((names[0] for slot, names in self.written.items() if slot[:2] == (split, "axis")), place)
        shapes = {name: self.types[name].shape or () for name in operands}
        whole = (n for n, shape in shapes.items() if -place <= len(shape) and shape[place] == sum(sizes))
        name = next(whole, None)
        return ["sizes", axis, *operands[: len(sizes)]] if name is None else ["partition", name, axis, len(sizes)]

    def _demanded(self, slot: _Slot, variable: str) -> list[Expression]:
        """Demand that an axis is the one that was seen to be equal, and that lists are as long as they were."""
        same = self._equal_axis(slot)
        equal = [] if same is None else [["==", variable if slot.kind == "axis" else ["get", variable, 0], same]]
        if slot.kind in ("axes", "partition"):
            return [["==", ["length", variable], len(slot.value[0])], *equal]
        return [["<=", 0, ["get", variable, 0]]] if slot.kind == "extent" and self._forward else equal


_Options = Callable[[_Slot, _Opening], list[tuple[Any, ...]]]


def _candidates(rule: Rule, opening: _Opening, options: _Options) -> Iterator[Rule]:
    """The rule with the opened source, and what its target may write."""
    slots = _slots(rule.target[0])
    for choice in product(*(options(slot, opening) for slot in slots)):
        yield replace(
            rule,
            source=(opening.source,),
            target=(_rewritten(rule.target[0], dict(zip(slots, choice, strict=True))),),
            attributes=opening.drawn,
            where=(*rule.where, *opening.where),
        )


def _rewritten(term: Term, written: Mapping[_Slot, tuple[Any, ...]]) -> Term:
    if isinstance(term, Variable):
        return term
    attributes = dict(term.attributes)
    for slot in _slots(term):
        if slot.node == term.node:
            attributes.update(zip(slot.names, map(pattern.freeze, written.get(slot, slot.value)), strict=True))
    arguments = tuple(_rewritten(argument, written) for argument in term.arguments)
    return Apply(term.op, tuple(sorted(attributes.items())), arguments, term.output)


def _copied(slot: _Slot, opening: _Opening) -> list[tuple[Any, ...]]:
    """Return the target's options that copy what the source writes where it had the same, or stay as they are."""
    if slot.kind not in opening.kinds:
        return [slot.value]
    return [written for written in opening.of_kind(slot.kind) if _values(written, opening.scope) == slot.value]


def _computed(slot: _Slot, opening: _Opening) -> list[tuple[Any, ...]]:
    """Return these options, and those that are computed from what the source writes."""
    if slot.kind not in opening.kinds:
        return [slot.value]
    parts = (_expressions(slot.kind, *part, opening) for part in zip(slot.names, slot.value, strict=True))
    computed = product(*(list(islice(options, _MOST_ALIKE)) for options in parts))
    return list(dict.fromkeys(map(pattern.freeze, (*_copied(slot, opening), *computed))))


def _values(written: Sequence[Any], scope: Scope) -> tuple[Any, ...]:
    return tuple(_value(w, scope) for w in written)


def _value(expression: Expression, scope: Scope) -> Any:
    try:
        return evaluate(pattern.thaw(expression), scope)
    except Unproven:
        return None


def _expressions(kind: str, name: str, value: Any, opening: _Opening) -> Iterator[Expression]:
    """Yield expressions that give the value of this attribute, the simplest first."""
    if kind == "permutation":
        candidates = _turns(opening)
    elif kind in _AXES:
        candidates = (axis if kind == "axis" else ["list", axis] for axis in _turned(opening))
    elif kind == "partition" or name in ("starts", "ends"):
        numbers = [[n for n in _numbers(opening) if _value(n, opening.scope) == size][:_MOST_ALIKE] for size in value]
        candidates = (["list", *choice] for choice in product(*numbers))
    else:
        candidates = iter(())
    if kind == "extent" and value == _NEUTRAL[name]:
        yield pattern.thaw(value)
    yield from (c for c in candidates if _value(c, opening.scope) == value)


def _turns(opening: _Opening) -> Iterator[Expression]:
    turns = [p for (p,) in opening.of_kind("permutation")]
    yield from (["inverse", p] for p in turns)
    yield from (["compose", p, q] for p in turns for q in turns if p != q)


def _turned(opening: _Opening) -> Iterator[Expression]:
    """Axes, and where transposes take them."""
    yield from opening.axes
    for (p,) in opening.of_kind("permutation"):
        for turn in (p, ["inverse", p]):
            yield from (["+", ["get", turn, axis], ["*", -1, ["length", p]]] for axis in opening.axes)


def _numbers(opening: _Opening) -> Iterator[Expression]:
    """Sizes: what the source's attributes say, dimensions, and sums and differences of two."""
    bounds = [["get", name, 0] for ends, starts, _ in opening.of_kind("extent") for name in (ends, starts)]
    sizes = {name: opening.values[name] for (name,) in opening.of_kind("partition")}
    parts = [["get", name, i] for name, value in sizes.items() for i in range(len(value))]  # type: ignore[arg-type]
    dimensions = [["dim", name, axis] for name in opening.types for axis in opening.axes or (-1, -2)]
    yield from (*bounds, *parts, *dimensions)
    yield from (["+", a, b] for a, b in combinations_with_replacement([*bounds, *parts], 2))
    yield from (["+", a, ["*", -1, b]] for a in bounds for b in dimensions)
