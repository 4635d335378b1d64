"""Drawing instances of a rule: shapes and attributes that its declaration admits, and both sides as graphs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from math import prod
from random import Random
from typing import Any

import numpy as np

from rlflow.errors import RuleError, TypeInferenceError
from rlflow.ir.node import AttributeValue
from rlflow.ir.tensor_type import TensorType
from rlflow.rules import pattern
from rlflow.rules.expression import Scope, Unproven, evaluate, holds
from rlflow.rules.plan import Instance, Plan, layout, output_type, plan_or_none
from rlflow.rules.rule import Rule
from rlflow.rules.verification.sides import Sides

Shape = tuple[int, ...]

DIMENSIONS = (1, 2, 3, 4)
_SIZES = (*[(size,) for size in DIMENSIONS[1:]] * 4, *combinations(DIMENSIONS, 2), *[DIMENSIONS] * 6)
"""The dimensions of one instance: one, two or all. Where all dimensions are equal, types no longer tell a transposed
tensor from another, so that only the values can agree or not."""

_RANKS = (0, 1, 2, 2, 3, 3, 3, 4, 4)
"""From rank 3 on a permutation may differ from its inverse: high ranks are drawn more often."""

_TURNED_RANKS = (2, 3, 3, 4, 4, 4)
"""Only from rank 4 on a permutation can leave an axis where it is and not be its own inverse."""

_LEADING = (0, 1, 2)
_TURNED_LEADING = (0, 1, 2, 2, 2)
_GROUPS = (1, 2, 2, 3, 4)
_CHANNELS_PER_GROUP = (1, 2)
_TO_THE_END = 2**31 - 1
EXTENTS = (
    *((end, start, 1) for end, start in ((1, 0), (2, 0), (2, 1), (3, 1), (3, 2), (-1, 0), (-1, -2), (-1, -3))),
    *((_TO_THE_END, start, 1) for start in (0, 1, 2, -1, -2)),
    *((_TO_THE_END, 0, 2), (_TO_THE_END, 1, 2), (3, 0, 2), (0, 2, -1), (-_TO_THE_END, 1, -1), (-_TO_THE_END, -1, -2)),
    *[(-_TO_THE_END, -1, -1)] * 4,
)
"""End, start and step of slices along one axis. Where all is read backwards, types tell nothing: that comes often."""


def draw(rule: Rule, random: Random, *, respect_condition: bool = True) -> Instance:
    """An instance whose source is well typed and, if asked, whose condition holds; `RuleError` if none is found."""
    return Sampler(rule).draw(random, respect_condition=respect_condition)


def is_turned(rule: Rule) -> bool:
    """Whether permutations, slices or indices are drawn for the rule. Which of two it should have shows but at few
    shapes: where the wrong one is well typed too, and not the inverse of itself."""
    return bool(rule.indices) or any(kind[0] in ("permutation", "extent") for kind in rule.attributes.values())


class Sampler:
    """Draws instances of one rule."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.names = pattern.variables(*rule.source)
        self._source, self._target = (layout(side, self.names) for side in (rule.source, rule.target))
        self._templates = [rule.spec(name).shape for name in self.names]
        self._literals = [name for name in self.names if rule.spec(name).literal and name not in rule.indices]
        turned = is_turned(rule)
        self._ranks = _TURNED_RANKS if turned else _RANKS
        self._leading_ranks = _TURNED_LEADING if turned else _LEADING
        self._drawings = {name: _drawing(kind) for name, kind in rule.attributes.items()}
        self._repeats = not self._literals and not rule.indices
        self._sources: dict[Hashable, Plan | None] = {}

    def sides(self, instance: Instance) -> Sides | None:
        """None where the target is not typed as the source is: there the matcher refuses the rule."""
        planned = self._sources.get((instance.key, True)) if self._repeats else None
        source = planned or self._source.plan(instance)
        target = plan_or_none(self._target, instance)
        return Sides(instance, source, target) if target and source.types == target.types else None

    def draw(self, random: Random, *, attempts: int = 2000, respect_condition: bool = True) -> Instance:
        """`RuleError` if none of so many attempts is well typed and, if asked, fulfils the condition."""
        for _ in range(attempts):
            try:
                instance = self._attempt(random)
                if self.rule.indices:
                    instance = self._with_indices(instance, random)
            except (TypeInferenceError, Unproven):
                continue
            if self._source_at(instance, respect_condition):
                return instance
        raise RuleError(f"rule {self.rule.name!r}: none of {attempts} drawn instances has a well-typed source")

    def _source_at(self, instance: Instance, respect_condition: bool) -> Plan | None:
        """None where it is not well typed or, if that matters, the condition does not hold. Most instances are drawn
        again and again.
        """
        key = instance.key, respect_condition
        if key in self._sources and self._repeats:
            return self._sources[key]
        admitted = not respect_condition or all(holds(condition, instance.scope) for condition in self.rule.where)
        self._sources[key] = plan = plan_or_none(self._source, instance) if admitted else None
        return plan

    def _attempt(self, random: Random) -> Instance:
        symbols = self._grouped(random)
        sizes = random.choice(_SIZES)
        whole: Sequence[int] = random.choices(sizes, k=random.choice(self._ranks))
        leading = random.choices(sizes, k=random.choice(self._leading_ranks))

        def drawn(part: int | str) -> Shape:
            if isinstance(part, int):
                return (part,)
            if part not in symbols:
                one = _broadcastable(leading, random) if part.startswith("...") else (random.choice(sizes),)
                symbols[part] = one
            return symbols[part]

        fixed = [t if t is None else tuple(d for part in t for d in drawn(part)) for t in self._templates]
        fits = any(fixed) and random.random() < 0.7
        if fits:  # what may have any shape has that of a variable that may not, or broadcasts to it
            whole = random.choice([shape for shape in fixed if shape])
        intact = 0.7 if fits else 0.5
        shapes = [_broadcastable(whole, random, intact) if shape is None else shape for shape in fixed]
        dtypes = ("int64" if name in self.rule.indices else "float32" for name in self.names)
        types = {n: TensorType(d, shape) for n, d, shape in zip(self.names, dtypes, shapes, strict=True)}
        literals = {name: float(np.float32(random.uniform(1e-6, 1e-1))) for name in self._literals}
        attributes: dict[str, AttributeValue] = {}
        for name, drawing in self._drawings.items():
            attributes[name] = drawing(types, attributes, random)
        return Instance(types, attributes, literals)

    def _with_indices(self, instance: Instance, random: Random) -> Instance:
        """Each index among those that the axis has which it selects from, counted from the front or from the end."""
        source, drawn = self._source.plan(instance), dict[str, np.ndarray]()
        types = [(kind,) for kind in instance.types.values()] + [step.types for step in source.steps]
        sizes: dict[str, int] = {}
        for step in (s for s in source.steps if s.op == "Gather" and s.inputs[1].node < len(self.names)):
            name, size = (
                self.names[step.inputs[1].node],
                _size(output_type(types, step.inputs[0]), step.attributes["axis"]),
            )
            sizes[name] = min(size, sizes.get(name, size))
        for name, size in sizes.items():
            if size == 0:
                raise TypeInferenceError("nothing can be selected from no elements")
            shape = instance.shape(name)
            drawn[name] = np.array([random.randrange(-size, size) for _ in range(prod(shape))], np.int64).reshape(shape)
        values = {name: index.item() for name, index in drawn.items() if self.rule.spec(name).literal}
        return replace(instance, indices=drawn, literals={**instance.literals, **values})

    def _grouped(self, random: Random) -> dict[int | str, Shape]:
        """Sizes for which filters read their image in groups: drawn by chance, they seldom divide each other."""
        symbols: dict[int | str, Shape] = {}
        for kind in self.rule.attributes.values():
            if kind[0] == "groups":
                image, filters = (self.rule.spec(name).shape or () for name in kind[1:])
                groups, width = random.choice(_GROUPS), random.choice(_CHANNELS_PER_GROUP)
                symbols[image[1]], symbols[filters[1]] = (groups * width,), (width,)
                symbols[filters[0]] = (groups * random.choice(_CHANNELS_PER_GROUP),)
        return symbols


def _broadcastable(shape: Sequence[int], random: Random, intact: float = 0.5) -> Shape:
    """The shape, or the end of it with some dimensions 1: operands drawn so often fit each other."""
    if random.random() < intact:
        return tuple(shape)
    ones = 1.0 if random.random() < 0.5 else 0.2
    return tuple(1 if random.random() < ones else d for d in shape[random.randint(0, len(shape)) :])


_Drawing = Callable[[Mapping[str, TensorType], Mapping[str, AttributeValue], Random], AttributeValue]
"""Draws an attribute, given the variables' types and the attributes that were drawn before."""


def _drawing(kind: Sequence[Any]) -> _Drawing:
    """["permutation", "x", ...], ["axis", "x", ...] or ["axes", "x", ...] (a list of one) of the highest rank,
    ["reshape", "x"], ["uniform"], ["partition", "x", axis, parts], ["sizes", axis, "x", ...],
    ["integers", least, most, count], ["groups", "x", "filters"], ["extent", ...] after what was drawn of the end, the
    start and the step of one slice, or ["choice", a, b, ...] of expressions. An axis is a number or an attribute that
    was drawn before.
    """
    match kind:
        case ["permutation", *names]:
            return lambda types, drawn, random: _draw_permutation(_rank(types, names), random)
        case ["axis", *names]:
            return lambda types, drawn, random: _draw_axis(_rank(types, names), random)
        case ["axes", *names]:
            return lambda types, drawn, random: (_draw_axis(_rank(types, names), random),)
        case ["reshape", name]:
            return lambda types, drawn, random: _draw_factors(types[name].elements, random)
        case ["partition", name, axis, int(parts)]:
            return lambda types, drawn, random: _draw_partition(types[name], drawn.get(axis, axis), parts, random)
        case ["sizes", axis, *names]:
            return lambda types, drawn, random: tuple(_size(types[name], drawn.get(axis, axis)) for name in names)
        case ["extent", *before]:
            return lambda types, drawn, random: _draw_extent([drawn[name] for name in before], random)
        case ["uniform"]:
            return lambda types, drawn, random: float(np.float32(random.uniform(1e-6, 1e-1)))
        case ["integers", int(least), int(most), int(count)]:
            return lambda types, drawn, random: _draw_integers(range(least, most + 1), count, random)
        case ["groups", image, filters]:
            return lambda types, drawn, random: _groups(types[image], types[filters])
        case ["choice", *values] if any(map(pattern.is_computed, map(pattern.freeze, values))):
            return lambda types, drawn, random: evaluate(random.choice(values), Scope(types, drawn))  # type: ignore[no-any-return]
        case ["choice", *values]:
            literals = list(map(pattern.freeze, values))
            return lambda types, drawn, random: random.choice(literals)  # type: ignore[no-any-return]
    raise RuleError(f"cannot draw an attribute of the kind {kind!r}")


def _rank(types: Mapping[str, TensorType], names: Sequence[str]) -> int:
    return max(len(types[name].shape or ()) for name in names)


def _draw_extent(before: Sequence[AttributeValue], random: Random) -> AttributeValue:
    bounds = tuple(value[0] for value in before)  # type: ignore[index]
    return (random.choice([extent for extent in EXTENTS if extent[: len(bounds)] == bounds])[len(bounds)],)


def _draw_axis(rank: int, random: Random) -> int:
    if rank == 0:
        raise TypeInferenceError("a scalar has no axis")
    return random.randrange(-rank, 0)


def _groups(image: TensorType, filters: TensorType) -> int:
    channels, seen = _size(image, 1), _size(filters, 1)
    if channels % seen:
        raise TypeInferenceError(f"{filters} over {image}")
    return channels // seen


def _draw_integers(values: Sequence[int], count: int, random: Random) -> tuple[int, ...]:
    """All the same or each by its own: windows that keep the size of an image are drawn so often enough."""
    return (random.choice(values),) * count if random.random() < 0.5 else tuple(random.choices(values, k=count))


def _draw_permutation(rank: int, random: Random) -> tuple[int, ...]:
    """Those that are their own inverse are drawn less often: they tell a permutation from its inverse nowhere."""
    drawn = random.sample(range(rank), rank)
    if all(drawn[drawn[axis]] == axis for axis in drawn):
        drawn = random.sample(range(rank), rank)
    return tuple(drawn)


def _draw_factors(elements: int, random: Random) -> tuple[int, ...]:
    factors = []
    for divisor in (2, 2, 3, 2, 3):
        if elements % divisor == 0 and random.random() < 0.6:
            factors.append(divisor)
            elements //= divisor
    factors.append(elements)
    random.shuffle(factors)
    return tuple(factors)


def _size(kind: TensorType, axis: Any) -> int:
    shape = kind.shape or ()
    if not -len(shape) <= axis < len(shape):
        raise TypeInferenceError(f"{kind} has no axis {axis}")
    size = shape[axis]
    assert isinstance(size, int)
    return size


def _draw_partition(kind: TensorType, axis: Any, parts: int, random: Random) -> tuple[int, ...]:
    size = _size(kind, axis)
    if size < parts:
        raise TypeInferenceError(f"{size} cannot be split into {parts} parts")
    cuts = sorted(random.sample(range(1, size), parts - 1))
    return tuple(b - a for a, b in zip([0, *cuts], [*cuts, size], strict=True))
