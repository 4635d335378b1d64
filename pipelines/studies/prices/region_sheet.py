"""The figures and the data sheet of a file of measured regions.

    document = figures(records, rewrites, graphs, controls, ...)         for data/results/prices/metrics.json
    data_sheet(document)                                                 the same for people, as Markdown

The noise is measured on regions that were timed twice, in batches that lay far apart: beside it stands what it would be
without the probe, and how often two timings lie within twice the sigma that each of them claims.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from experiment.formatting import rendered

from rlflow.cost.region_record import GraphRecord, RegionRecord, RewriteRecord
from rlflow.runtime.timing.batches import FragmentTiming

SIZES_MS = {
    "below_20us": (0.0, 0.02),
    "20us_to_100us": (0.02, 0.1),
    "100us_to_1ms": (0.1, 1.0),
    "above_1ms": (1.0, math.inf),
}
"""Sizes of regions by milliseconds, from the first number on and below the second."""
_QUANTILES = (10, 50, 90, 99)

Document = dict[str, Any]


class Control(NamedTuple):
    """Two timings of one region, as they were taken."""

    first: FragmentTiming
    second: FragmentTiming


def figures(
    records: Sequence[RegionRecord],
    rewrites: Sequence[RewriteRecord],
    graphs: Sequence[GraphRecord],
    controls: Sequence[Control],
) -> Document:
    """Return what can be told of the records: how many of each kind, how long they take, and how noisy they are."""
    ms = np.array([record.ms for record in records])
    families = dict.fromkeys(record.family for record in records)
    operators = Counter(op for record in records for op in {record.graph.nodes[i].op for i in record.graph.order})
    return {
        "regions": len(records),
        "rewrites": len(rewrites),
        "graphs": len(graphs),
        "configurations": len({record.configuration for record in graphs}),
        "families": {
            family: {
                "regions": sum(record.family == family for record in records),
                "rewrites": sum(rewrite.family == family for rewrite in rewrites),
                "graphs": sum(graph.family == family for graph in graphs),
            }
            for family in families
        },
        "operators": dict(sorted(operators.items(), key=lambda item: (-item[1], item[0]))),
        "ms_quantiles": {str(q): float(np.percentile(ms, q)) for q in _QUANTILES},
        "noise": {
            size: _noise(records, controls, least, most)
            for size, (least, most) in SIZES_MS.items()
            if any(least <= record.ms < most for record in records)
        },
    }


def _noise(
    records: Sequence[RegionRecord], controls: Sequence[Control], least_ms: float, most_ms: float
) -> dict[str, Any]:
    """Return the noise of regions of a size; percentages are of the time, None where nothing was timed twice."""
    own = [record for record in records if least_ms <= record.ms < most_ms and record.ms > 0]
    twice = [control for control in controls if least_ms <= control.first.ms < most_ms and min(_both(control)) > 0]
    scaled = [_apart_percent(c.first, c.second.at_pace(c.first.probe_ms)) for c in twice]
    return {
        "regions": len(own),
        "sigma_percent_median": _quantile([100 * record.sigma_ms / record.ms for record in own], 50),
        "sigma_percent_p90": _quantile([100 * record.sigma_ms / record.ms for record in own], 90),
        "again_percent_median": _quantile(scaled, 50),
        "again_percent_p90": _quantile(scaled, 90),
        "again_percent_median_without_probe": _quantile([_apart_percent(c.first, c.second) for c in twice], 50),
        "again_within_two_sigma": float(np.mean([_agree(c) for c in twice])) if twice else None,
        "cases": len(twice),
    }


def _both(control: Control) -> Iterator[float]:
    return (timing.ms for timing in control)


def _apart_percent(first: FragmentTiming, second: FragmentTiming) -> float:
    return 100 * abs(math.log(second.ms / first.ms))


def _agree(control: Control) -> bool:
    """Return True if two timings differ by no more than two sigma of their difference."""
    second = control.second.at_pace(control.first.probe_ms)
    return abs(control.first.ms - second.ms) <= 2 * math.hypot(control.first.sigma_ms, second.sigma_ms)


def _quantile(values: Sequence[float], percent: int) -> float | None:
    return float(np.percentile(values, percent)) if len(values) else None


def data_sheet(document: Mapping[str, Any]) -> str:
    """Return the sheet of a published document, in Markdown."""
    return rendered(Path(__file__).with_suffix(".md.j2"), document)
