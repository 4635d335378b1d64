"""A side of a rule computed by numpy in float32, or in float64, at many draws at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from rlflow.ir.node import Ref
from rlflow.ops.domain import Array
from rlflow.ops.float_batch import FloatBatch, FloatBatchDomain
from rlflow.rules.plan import Instance, Plan, run_plan


def batches(instance: Instance, drawn: Callable[[tuple[int, ...]], np.ndarray]) -> list[Array]:
    """The values of the variables, in order: (draws, *shape) in float32, except for indices. A literal is the same in
    all draws.
    """
    return [
        instance.indices[name]
        if name in instance.indices
        else FloatBatch(instance.given(name)[None] if name in instance.literals else _single(instance, name, drawn))  # type: ignore[index]
        for name in instance.types
    ]


def _single(instance: Instance, name: str, drawn: Callable[[tuple[int, ...]], np.ndarray]) -> np.ndarray:
    return instance.elements(name, drawn(instance.shape(name))).astype(np.float32)


def one_draw(instance: Instance, values: Sequence[np.ndarray]) -> list[Array]:
    """The values of the variables, in order, as a batch of one."""
    named = zip(instance.types, values, strict=True)
    return [v if name in instance.indices else FloatBatch(v[None].astype(np.float32)) for name, v in named]


def in_double(values: Sequence[Array]) -> list[Array]:
    """The same values in float64."""
    return [FloatBatch(v.values.astype(np.float64)) if isinstance(v, FloatBatch) else v for v in values]


def outputs_of(side: Plan, values: Sequence[Array]) -> list[np.ndarray]:
    """The outputs of a side that are floats, (draws, *shape) each."""
    with np.errstate(all="ignore"):
        return [
            output.values for output in run_plan(side, values, FloatBatchDomain()) if isinstance(output, FloatBatch)
        ]


def on_the_way(side: Plan, variables: int) -> Plan:
    """The side, of so many variables, with all that it computes on the way as outputs."""
    steps = enumerate(side.steps, start=variables)
    return side._replace(outputs=tuple(Ref(n, index) for n, step in steps for index in range(len(step.types))))
