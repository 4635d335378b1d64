"""Fragments timed in a process of their own: those of a model that nobody has run yet may crash ONNX Runtime.

time_batch_apart(models, setting="deployed", config=BatchConfig())      # as `time_batch`, and this process lives on
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onnx import ModelProto

from rlflow.errors import RLFlowError
from rlflow.runtime.isolation import Limits, ProcessDeath, call_isolated
from rlflow.runtime.session import Setting
from rlflow.runtime.timing.batches import BatchConfig, FragmentTiming, time_batch

_LIMITS = Limits(longest_s=120.0)


def time_batch_apart(
    models: Sequence[ModelProto],
    *,
    setting: Setting,
    config: BatchConfig,
    dimensions: Mapping[str, int] | None = None,
) -> list[FragmentTiming | RLFlowError]:
    """Do what `time_batch` does in another process. The error of a fragment that kills it is `ProcessDeath`: halves of
    the batch are tried by themselves.
    """
    if not models:
        return []
    try:
        return call_isolated(_LIMITS, time_batch, models, setting=setting, config=config, dimensions=dimensions)
    except ProcessDeath as death:
        if len(models) == 1:
            return [death]
    half = len(models) // 2
    parts = (models[:half], models[half:])
    return [
        timing
        for part in parts
        for timing in time_batch_apart(part, setting=setting, config=config, dimensions=dimensions)
    ]
