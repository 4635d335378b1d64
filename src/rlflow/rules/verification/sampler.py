"""Random instances of a rule: shapes and attributes that its declaration admits, and both sides planned at them.

    sampler = Sampler(rule)
    instance = sampler.draw(Random(0))       # {"x": float32[2, 1, 3], "y": float32[3]}, {"?k": -1}
    sides = sampler.sides(instance)          # both sides as plans; None if the target is not typed as the source is

Instances are drawn so that a wrong rule shows. One instance has few different sizes, since types cannot tell a
transposed tensor from another if all are equal: then only the values can agree or differ. Operands often broadcast to
each other, and permutations are seldom their own inverse.

Invariant: the draws depend only on the rule and the state of `random`. The certificates of the library depend on them,
so that the order of calls to `random` must not change.
"""

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
from rlflow.ops.algebra import QUANTISED
from rlflow.ops.registry import having
from rlflow.rules import pattern
from rlflow.rules.expression import TO_THE_END, Scope, Unproven, evaluate, holds
from rlflow.rules.plan import Instance, Plan, layout, output_type, plan_or_none
from rlflow.rules.rule import Rule
from rlflow.rules.verification.sides import Sides

Shape = tuple[int, ...]

DIMENSIONS = (1, 2, 3, 4)
_SELECTING = having(lambda traits: traits.selects)
_SIZES = (*[(size,) for size in DIMENSIONS[1:]] * 4, *combinations(DIMENSIONS, 2), *[DIMENSIONS] * 6)
"""The sizes that one instance has: a single one, two, or all. If all dimensions are equal, types do not tell a
transposed tensor from another, so that only the values can."""

_RANKS = (0, 1, 2, 2, 3, 3, 3, 4, 4)
"""Ranks to draw from, mostly high ones: from rank 3 on a permutation may differ from its inverse."""

_PERMUTED_RANKS = (2, 3, 3, 4, 4, 4)
"""Ranks if permutations are drawn: only from rank 4 on can one keep an axis in place and not be its own inverse."""

_LEADING = (0, 1, 2)
_PERMUTED_LEADING = (0, 1, 2, 2, 2)
_GROUPS = (1, 2, 2, 3, 4)
_CHANNELS_PER_GROUP = (1, 2)
EXTENTS = (
    *((end, start, 1) for end, start in ((1, 0), (2, 0), (2, 1), (3, 1), (3, 2), (-1, 0), (-1, -2), (-1, -3))),
    *((TO_THE_END, start, 1) for start in (0, 1, 2, -1, -2)),
    *((TO_THE_END, 0, 2), (TO_THE_END, 1, 2), (3, 0, 2), (0, 2, -1), (-TO_THE_END, 1, -1), (-TO_THE_END, -1, -2)),
    *[(-TO_THE_END, -1, -1)] * 4,
)
"""End, start and step of slices along one axis. Reversing all of an axis is frequent, since no type shows it."""


def draw(rule: Rule, random: Random, *, respect_condition: bool = True) -> Instance:
    """Draw an instance with a well-typed source and, if asked, a true condition; `RuleError` if none is found."""
    return Sampler(rule).draw(random, respect_condition=respect_condition)


def draws_permutations(rule: Rule) -> bool:
    """Return True if permutations, slices or indices are drawn for the rule, which then needs more instances.

    A wrong permutation shows only at the few shapes at which it is well typed and differs from the right one.
    """
    return bool(rule.indices) or any(domain[0] in ("permutation", "extent") for domain in rule.attributes.values())


class Sampler:
    """Draws instances of one rule, each with one of these choices of `sizes`."""

    def __init__(self, rule: Rule, sizes: Sequence[Shape] = _SIZES) -> None:
        self.rule = rule
        self._sizes = sizes
        self.names = pattern.variables(*rule.source)
        self._source, self._target = (layout(side, self.names) for side in (rule.source, rule.target))
        self._templates = [rule.spec(name).shape for name in self.names]
        self._literals = [name for name in self.names if rule.spec(name).literal and name not in rule.indices]
        permuted = draws_permutations(rule)
        self._ranks = _PERMUTED_RANKS if permuted else _RANKS
        self._leading_ranks = _PERMUTED_LEADING if permuted else _LEADING
        self._drawings = {name: _drawing(domain) for name, domain in rule.attributes.items()}
        self._repeats = not self._literals and not rule.indices
        self._sources: dict[Hashable, Plan | None] = {}

    def sides(self, instance: Instance) -> Sides | None:
        """Plan both sides; None if the target is not typed as the source is, where the matcher refuses the rule."""
        # `draw` has planned most sources already.
        planned = self._sources.get((instance.key, True)) if self._repeats else None
        source = planned or self._source.plan(instance)
        target = plan_or_none(self._target, instance)
        return Sides(instance, source, target) if target and source.types == target.types else None

    def draw(self, random: Random, *, attempts: int = 2000, respect_condition: bool = True) -> Instance:
        """Draw an instance; `RuleError` if no attempt is well typed and, if asked, fulfils the rule's condition."""
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
        """Plan the source; None if it is not well typed or, if that matters, the condition does not hold.

        Plans are remembered, since most instances are drawn again and again.
        """
        key = instance.key, respect_condition
        if key in self._sources and self._repeats:
            return self._sources[key]
        admitted = not respect_condition or all(holds(condition, instance.scope) for condition in self.rule.where)
        self._sources[key] = plan = plan_or_none(self._source, instance) if admitted else None
        return plan

    def _attempt(self, random: Random) -> Instance:
        """Draw shapes, literals and attributes that may or may not fit together."""
        symbols = self._grouped(random)
        sizes = random.choice(self._sizes)
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

        # A variable without a template often gets the shape of one that has a template, or a shape that broadcasts to
        # it.
        fits = any(fixed) and random.random() < 0.7
        if fits:
            whole = random.choice([shape for shape in fixed if shape])
        intact = 0.7 if fits else 0.5
        shapes = [_broadcastable(whole, random, intact) if shape is None else shape for shape in fixed]
        quantised = random.choice(sorted(QUANTISED)) if self.rule.quantised else ""
        dtypes = {name: "float32" for name in self.names}
        dtypes |= dict.fromkeys(self.rule.indices, "int64") | dict.fromkeys(self.rule.quantised, quantised)
        types = {n: TensorType(dtypes[n], shape) for n, shape in zip(self.names, shapes, strict=True)}

        literals = {name: float(np.float32(random.uniform(1e-6, 1e-1))) for name in self._literals}
        attributes: dict[str, AttributeValue] = {}
        for name, drawing in self._drawings.items():
            attributes[name] = drawing(types, attributes, random)
        return Instance(types, attributes, literals, bounded=self.names)

    def _with_indices(self, instance: Instance, random: Random) -> Instance:
        """Draw the indices of each Gather within its axis, counted from the front or from the end."""
        source, drawn = self._source.plan(instance), dict[str, np.ndarray]()
        types = [(tensor_type,) for tensor_type in instance.types.values()] + [step.types for step in source.steps]

        # The least size of the axes from which each variable selects.
        sizes: dict[str, int] = {}
        for step in source.steps:
            if step.op in _SELECTING and step.inputs[1].node < len(self.names):
                name = self.names[step.inputs[1].node]
                size = _size(output_type(types, step.inputs[0]), step.attributes["axis"])
                sizes[name] = min(size, sizes.get(name, size))

        for name, size in sizes.items():
            if size == 0:
                raise TypeInferenceError("nothing can be selected from no elements")
            shape = instance.shape(name)
            drawn[name] = np.array([random.randrange(-size, size) for _ in range(prod(shape))], np.int64).reshape(shape)

        values = {name: index.item() for name, index in drawn.items() if self.rule.spec(name).literal}
        return replace(instance, indices=drawn, literals={**instance.literals, **values})

    def _grouped(self, random: Random) -> dict[int | str, Shape]:
        """Draw sizes with which filters read their image in groups; independent ones seldom divide each other."""
        symbols: dict[int | str, Shape] = {}
        for domain in self.rule.attributes.values():
            if domain[0] == "groups":
                image, filters = (self.rule.spec(name).shape or () for name in domain[1:])
                groups, width = random.choice(_GROUPS), random.choice(_CHANNELS_PER_GROUP)
                symbols[image[1]], symbols[filters[1]] = (groups * width,), (width,)
                symbols[filters[0]] = (groups * random.choice(_CHANNELS_PER_GROUP),)
        return symbols


def _broadcastable(shape: Sequence[int], random: Random, intact: float = 0.5) -> Shape:
    """Draw the shape itself, or the end of it with some dimensions 1: such operands often fit each other."""
    if random.random() < intact:
        return tuple(shape)
    ones = 1.0 if random.random() < 0.5 else 0.2
    return tuple(1 if random.random() < ones else d for d in shape[random.randint(0, len(shape)) :])


_Drawing = Callable[[Mapping[str, TensorType], Mapping[str, AttributeValue], Random], AttributeValue]
"""Draws an attribute, given the variables' types and the attributes that were drawn before."""


def _drawing(domain: Sequence[Any]) -> _Drawing:
    """Return the function that draws an attribute from its domain, which is one of

    - ["permutation", "x", ...], ["axis", "x", ...], ["axes", "x", ...] (a list of one): for the highest of these ranks;
    - ["reshape", "x"]: a shape with as many elements as x;
    - ["partition", "x", axis, parts], ["sizes", axis, "x", ...]: sizes along an axis, of parts of x or of these
      tensors;
    - ["integers", least, most, count], ["uniform"]: numbers;
    - ["groups", "x", "filters"]: the groups in which filters read an image;
    - ["extent", ...]: the next of end, start and step of one slice, given those that were drawn before;
    - ["choice", a, b, ...]: one of these expressions.

    An axis is a number or the name of an attribute that was drawn before. Raises `RuleError` for any other domain.
    """
    match domain:
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
    raise RuleError(f"no attribute can be drawn from the domain {domain!r}")


def _rank(types: Mapping[str, TensorType], names: Sequence[str]) -> int:
    return max(len(types[name].shape or ()) for name in names)


def _draw_extent(before: Sequence[AttributeValue], random: Random) -> AttributeValue:
    bounds = tuple(value[0] for value in before)  # type: ignore[index]
    candidates = [extent for extent in EXTENTS if extent[: len(bounds)] == bounds]
    return (random.choice(candidates)[len(bounds)],)


def _draw_axis(rank: int, random: Random) -> int:
    if rank == 0:
        raise TypeInferenceError("a scalar has no axis")
    return random.randrange(-rank, 0)


def _groups(image: TensorType, filters: TensorType) -> int:
    channels, seen = _size(image, 1), _size(filters, 1)
    if channels % seen:
        raise TypeInferenceError(f"filters {filters} do not divide the channels of {image}")
    return channels // seen


def _draw_integers(values: Sequence[int], count: int, random: Random) -> tuple[int, ...]:
    """Draw equal integers or independent ones; so windows that keep the size of an image are frequent enough."""
    return (random.choice(values),) * count if random.random() < 0.5 else tuple(random.choices(values, k=count))


def _draw_permutation(rank: int, random: Random) -> tuple[int, ...]:
    """Draw a permutation, less often one that is its own inverse, at which a rule that confuses the two would pass."""
    drawn = random.sample(range(rank), rank)
    if all(drawn[drawn[axis]] == axis for axis in drawn):
        drawn = random.sample(range(rank), rank)
    return tuple(drawn)


def _draw_factors(elements: int, random: Random) -> tuple[int, ...]:
    """Draw factors in any order whose product is `elements`."""
    factors = []
    for divisor in (2, 2, 3, 2, 3):
        if elements % divisor == 0 and random.random() < 0.6:
            factors.append(divisor)
            elements //= divisor
    factors.append(elements)
    random.shuffle(factors)
    return tuple(factors)


def _size(tensor_type: TensorType, axis: Any) -> int:
    shape = tensor_type.shape or ()
    if not -len(shape) <= axis < len(shape):
        raise TypeInferenceError(f"{tensor_type} has no axis {axis}")
    size = shape[axis]
    assert isinstance(size, int)
    return size


def _draw_partition(tensor_type: TensorType, axis: Any, parts: int, random: Random) -> tuple[int, ...]:
    """Draw the sizes, all at least 1, of so many parts along an axis."""
    size = _size(tensor_type, axis)
    if size < parts:
        raise TypeInferenceError(f"an axis of size {size} cannot be split into {parts} parts")
    cuts = sorted(random.sample(range(1, size), parts - 1))
    return tuple(b - a for a, b in zip([0, *cuts], [*cuts, size], strict=True))
