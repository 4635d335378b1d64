"""Trials in which dimensions that are dynamic have no elements: no tokens, an empty batch, a list of no boxes.

A dimension of which the graph knows no number may be 0 when the model runs. So an instance is drawn as always, some of
its sizes get names instead, and the rule is tried where the matcher admits it with these names and nothing more:

    MatMul(x, w) with x: float32[2, 3], w: float32[3, 4]     ->     x: float32["2", 3], fed with float32[0, 3]

A pool never sees an image without pixels: ONNX Runtime refuses it, but where the batch is empty too and the image is
kept in blocks of channels. There it divides by 0, which ends the process.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from random import Random

import numpy as np

from rlflow.errors import RuleError
from rlflow.ir.tensor_type import Dimension, TensorType
from rlflow.ops.blocking import BLOCKING, Blocking
from rlflow.rules.matching.replacement import replacement
from rlflow.rules.plan import Instance, Plan, layout, output_type, plan_or_none
from rlflow.rules.rule import Rule
from rlflow.rules.verification.sampler import Sampler
from rlflow.rules.verification.settings import Trial, is_stored
from rlflow.rules.verification.sides import Sides

_DISTINCT = ((2, 3, 4, 5, 6, 7),)
"""Sizes of which few are drawn twice: dimensions of one size get one name."""

_CASES, _ATTEMPTS, _MOST = 16, 300, 80


def empty_trials(rule: Rule, rng: np.random.Generator) -> list[Trial]:
    """Draw trials with each dynamic size at 0, alone among dynamic ones and among all, and with all of them at 0."""
    return list(islice((trial for case in _cases(rule, rng) for trial in _trials(rule, case, rng)), _MOST))


def _cases(rule: Rule, rng: np.random.Generator) -> Iterator[Sides]:
    sampler, random = Sampler(rule, _DISTINCT), Random(int(rng.integers(1 << 32)))
    try:
        for _ in range(_CASES):
            case = sampler.sides(sampler.draw(random, attempts=_ATTEMPTS))
            if case is not None:
                yield case
    except RuleError:
        return  # what wants sizes to be equal is seldom drawn, if ever, and not where they are dynamic


def _trials(rule: Rule, case: Sides, rng: np.random.Generator) -> Iterator[Trial]:
    sizes = _dynamic_sizes(rule, case.instance)
    for dynamic in dict.fromkeys([*((size,) for size in sizes), sizes]):
        sides = _with_names(rule, case.instance, dynamic)
        if sides is None:
            continue
        for zero in dict.fromkeys([*((size,) for size in dynamic), dynamic]):
            if any(_pools_nothing(side, sides.instance, zero) for side in (sides.source, sides.target)):
                continue
            axes = list(_empty_axes(sides.instance, zero))
            drawn = " and ".join(f"axis {axis} of {name}" for name, axis in axes)
            remedies = tuple(["<=", 1, ["dim", name, axis]] for name, axis in axes)
            yield Trial(sides, _values(sides.instance, zero, rng), f"no elements along {drawn}", remedies)


def _dynamic_sizes(rule: Rule, instance: Instance) -> tuple[int, ...]:
    """The sizes of dimensions that may be dynamic: none that is one, or that of something stored."""
    stored = {d for name, t in instance.types.items() if is_stored(rule, name) for d in t.shape or ()}
    sizes = {d for t in instance.types.values() for d in t.shape or () if isinstance(d, int)}
    return tuple(sorted(sizes - stored - {1}))


def _with_names(rule: Rule, instance: Instance, dynamic: tuple[int, ...]) -> Sides | None:
    """Plan both sides with names for these sizes; None where the matcher does not admit the rule."""

    def named(d: Dimension) -> Dimension:
        return str(d) if d in dynamic else d

    types = {n: TensorType(t.dtype, tuple(map(named, t.shape or ()))) for n, t in instance.types.items()}
    dynamic_instance = replace(instance, types=types)
    source, target = (plan_or_none(layout(side, tuple(types)), dynamic_instance) for side in (rule.source, rule.target))
    if source is None or target is None:
        return None
    anywhere = replace(rule, profitable_if=())
    stored = {name: is_stored(rule, name) for name in types}
    admitted = replacement(anywhere, dynamic_instance.scope, stored, source.types)
    return None if admitted is None else Sides(dynamic_instance, source, target)


def _pools_nothing(side: Plan, instance: Instance, zero: tuple[int, ...]) -> bool:
    """Return True if a pool may read an image without pixels. A size that was computed may be 0 if any size is."""
    types = [*((t,) for t in instance.types.values()), *(step.types for step in side.steps)]
    pools = [step for step in side.steps if BLOCKING.get(step.op) in (Blocking.POOL, Blocking.GLOBAL_POOL)]
    return any(
        isinstance(d, str) and not (d.isdigit() and int(d) not in zero)
        for pool in pools
        for d in (output_type(types, pool.inputs[0]).shape or ())[2:]
    )


def _values(instance: Instance, zero: tuple[int, ...], rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    values = []
    for name, tensor_type in instance.types.items():
        shape = tuple(0 if isinstance(d, str) and int(d) in zero else int(d or 0) for d in tensor_type.shape or ())
        given = instance.indices.get(name)
        if name in instance.literals and name not in instance.indices:
            given = np.full(shape, instance.literals[name], np.float32)
        drawn = rng.uniform(-2.0, 2.0, shape) if given is None else np.resize(given, shape)
        values.append(instance.elements(name, drawn) if given is None else drawn)
    return tuple(values)


def _empty_axes(instance: Instance, zero: tuple[int, ...]) -> Iterator[tuple[str, int]]:
    for name, tensor_type in instance.types.items():
        shape = tensor_type.shape or ()
        for axis, d in enumerate(shape):
            if isinstance(d, str) and int(d) in zero:
                yield name, axis - len(shape)
