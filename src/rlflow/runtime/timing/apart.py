"""Fragments timed in a process of their own: those of a model that nobody has run yet may crash ONNX Runtime.

time_batch_apart(models, setting="deployed", config=BatchConfig())      # as `time_batch`, and this process lives on
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onnx import ModelProto

from rlflow.errors import RLFlowError
from rlflow.runtime.isolation import Limits, ProcessDeath, ProcessTimeout, call_isolated
from rlflow.runtime.session import Setting
from rlflow.runtime.timing.batches import BatchConfig, FragmentTiming, time_batch

_OPENING_S, _RUNS = 20.0, 8
"""The seconds that it takes at most to start and to open all sessions, and how often a fragment runs for its time."""


def time_batch_apart(
    models: Sequence[ModelProto],
    *,
    setting: Setting,
    config: BatchConfig,
    dimensions: Mapping[str, int] | None = None,
) -> list[FragmentTiming | RLFlowError]:
    """Do what `time_batch` does in another process. The error of a fragment that kills it is `ProcessDeath`: halves of
    the batch are tried by themselves. A batch that does not end in time has no times at all.
    """
    if not models:
        return []
    limits = Limits(longest_s=_OPENING_S + _RUNS * config.time_cap_s * len(models))
    try:
        return call_isolated(limits, time_batch, models, setting=setting, config=config, dimensions=dimensions)
    except ProcessTimeout as timeout:
        return [timeout] * len(models)
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
