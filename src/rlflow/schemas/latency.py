"""Latencies of two models, as documents have them."""

from __future__ import annotations

from typing import Literal

from rlflow.schemas.figures import Cases, Count, Document, Interval, Milliseconds, Ratio, Share, Text

Setting = Text
"""A way to run a model: as_written, deployed, or another runtime, such as openvino."""


class Change(Document):
    """The latency of the candidate beside the original's in one setting."""

    latency_before_ms: Milliseconds
    latency_after_ms: Milliseconds
    decision: Literal["faster", "slower", "same", "undecided"]
    """The answer of prediction and rounds, or of rounds alone where a proof was asked for; same: within 1 % of the
    old one; undecided: the time was over before they said anything.
    """
    ratio: Ratio
    """Old over new, median over rounds."""
    ratio_interval: Interval | None
    """90 % interval as a pair [low, high], 99 % where a proof was asked for, which holds after whatever number of
    rounds; null where there were too few rounds for one.
    """
    faster_probability: Share
    """That the new model is faster, by the prediction and the rounds."""
    harmful_probability: Share
    """That it is slower by more than 1 %."""
    control_ratio: Ratio
    """The old model's first timing over its second, median over rounds."""
    rounds: Cases
    """Each with fresh sessions, two of either model."""
    rounds_retaken: Count
    """That do not count, because the machine was slow beside them."""


Latency = dict[Setting, Change]
"""The change in the setting that was optimised for; empty where there was nothing to time."""
