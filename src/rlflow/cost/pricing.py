"""Filling a price list: what is missing is measured in batches, and a slow machine is waited for.

    left = add_prices(price_list, missing, "deployed", PricingConfig(), deadline=time.perf_counter() + 60)

A price that is taken while others fill the caches is wrong at any pace. So while the probe takes far longer than it did
when the list was begun, nothing is added. That ends when the machine is itself again, at the deadline, or when patience
is at its end.

Invariant: after each batch its prices are in the list, so that an interruption loses the batch that it interrupts.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

from rlflow.cost.analytic import AnalyticConfig
from rlflow.cost.fragment import Fragment, extract
from rlflow.cost.price_list import Price, PriceList
from rlflow.cost.work import WorkCounter
from rlflow.errors import RLFlowError
from rlflow.ir.graph import Graph
from rlflow.onnx_io.standalone import standalone_model
from rlflow.runtime.session import Setting
from rlflow.runtime.timing.batches import BatchConfig, FragmentTiming, time_batch, time_launch, time_probe_ms

_LOGGER = logging.getLogger(__name__)
_PAUSE_S = 1.0
_DIGITS = 6  # of milliseconds
_IS_SLOW = "the machine is far slower than when the price list was begun"

VIEW = Fragment("view", "a view: Reshape, Squeeze, Unsqueeze, Flatten or Identity", ())
"""Stands for all regions of views: what they cost is a launch."""

OnProgress = Callable[[float, str], None]
"""Called after each batch, and when a wait begins, with the fraction done (0 to 1) and a line of text."""


class Timer(Protocol):
    """Times a batch of models, as `time_batch` does."""

    def __call__(
        self,
        models: Sequence[Any],
        *,
        setting: Setting,
        config: BatchConfig,
        dimensions: Mapping[str, int] | None,
    ) -> list[FragmentTiming | RLFlowError]: ...


@dataclass(frozen=True)
class PricingConfig(BatchConfig):
    """The settings by which missing prices are measured.

    The machine is too slow when the probe takes `slow_pace` times as long as when the list was begun. When there was no
    price for `patience_s` seconds, measuring is given up.
    """

    slow_pace: float = 1.2
    patience_s: float = 60.0


class Missing(NamedTuple):
    """A fragment without a price, the signature to keep it under, and a graph that it is found in."""

    signature: str
    fragment: Fragment
    graph: Graph


def add_prices(
    listed: PriceList,
    missing: Sequence[Missing],
    setting: Setting,
    config: PricingConfig,
    dimensions: Mapping[str, int] | None = None,
    deadline: float | None = None,
    on_progress: OnProgress | None = None,
    timer: Timer | None = None,
) -> int:
    """Measure what is missing until `deadline`, a moment of `time.perf_counter`; return how many are still missing.

    `timer` times a batch of models, in the stead of `time_batch`.
    """
    end = math.inf if deadline is None else deadline
    waiting, warned = list(missing), False
    patient_until = time.perf_counter() + config.patience_s
    while waiting and (now := time.perf_counter()) < min(end, patient_until):
        batch = waiting[: config.size]
        in_time = replace(config, time_cap_s=min(config.time_cap_s, (end - now) / len(batch)))
        slow = _add_batch(listed, batch, setting, in_time, dimensions, timer)
        waiting = [*slow, *waiting[config.size :]]
        if len(slow) < len(batch):
            patient_until = time.perf_counter() + config.patience_s
        if on_progress:
            measured = f"{len(missing) - len(waiting)} of {len(missing)} prices measured"
            line = f"{measured}; waiting, since {_IS_SLOW}" if slow else measured
            on_progress(1 - len(waiting) / len(missing), line)
        if slow:
            if not warned:
                _LOGGER.warning("prices have to wait: %s", _IS_SLOW)
            warned = True
            _wait(listed, config, min(end, patient_until))
    return len(waiting)


def _wait(listed: PriceList, config: PricingConfig, until: float) -> None:
    """Return when the machine is as fast again as it was, or when the time is over."""
    while _is_slow(listed, config, time_probe_ms(config)) and (left_s := until - time.perf_counter()) > 0:
        time.sleep(min(_PAUSE_S, left_s))


def _is_slow(listed: PriceList, config: PricingConfig, probe_ms: float) -> bool:
    return listed.probe_ms is not None and probe_ms > config.slow_pace * listed.probe_ms


def _add_batch(
    listed: PriceList,
    batch: Sequence[Missing],
    setting: Setting,
    config: PricingConfig,
    dimensions: Mapping[str, int] | None,
    timer: Timer | None,
) -> list[Missing]:
    """Add the prices of one batch; return those that the machine was too slow for."""
    slow = []
    for each, timing in _timed(batch, setting, config, dimensions, timer):
        if isinstance(timing, RLFlowError):
            _LOGGER.warning("%s cannot be timed by itself and is estimated (%s)", each.fragment.description, timing)
            listed.add(setting, each.signature, _estimate(each))
        elif _is_slow(listed, config, timing.probe_ms):
            slow.append(each)
        else:
            listed.probe_ms = listed.probe_ms or timing.probe_ms
            at_pace = timing.at_pace(listed.probe_ms)
            ms, sigma_ms = (round(value, _DIGITS) for value in (at_pace.ms, at_pace.sigma_ms))
            listed.add(setting, each.signature, Price(ms, each.fragment.description, sigma_ms))
    return slow


def _timed(
    batch: Sequence[Missing],
    setting: Setting,
    config: PricingConfig,
    dimensions: Mapping[str, int] | None,
    timer: Timer | None,
) -> list[tuple[Missing, FragmentTiming | RLFlowError]]:
    """Time fragments together. Where one cannot be timed there is the error."""
    untimed: list[tuple[Missing, FragmentTiming | RLFlowError]] = []
    models = []
    for each in batch:
        try:
            if each.fragment is VIEW:
                untimed.append((each, time_launch(config)))
            else:
                models.append((each, standalone_model(extract(each.graph, each.fragment))))
        except RLFlowError as error:
            untimed.append((each, error))
    timings = (timer or time_batch)(
        [model for _, model in models], setting=setting, config=config, dimensions=dimensions
    )
    return [*untimed, *zip([each for each, _ in models], timings, strict=True)]


def _estimate(missing: Missing) -> Price:
    """Return the price of a roofline over the fragment's nodes, which may be as far off as it is high."""
    machine, work = AnalyticConfig(), WorkCounter()
    parts = [work.node(missing.graph, i) for i in missing.fragment.nodes]
    traffic_ms = sum(p.bytes_moved for p in parts) / machine.gbytes_per_s / 1e6
    arithmetic_ms = sum(p.flops for p in parts) / machine.gflops_per_s / 1e6
    ms = max(traffic_ms, arithmetic_ms) + machine.launch_us / 1e3 * len(parts)
    return Price(ms, missing.fragment.description, sigma_ms=ms, estimated=True)
