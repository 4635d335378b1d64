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
from typing import Any, NamedTuple

import numpy as np

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
    left_out = ", ".join(f"{count} {reason}" for reason, count in document["left_out"].items()) or "none"
    return _SHEET.format(
        **{key: document[key] for key in ("regions", "rewrites", "graphs", "configurations", "hardware", "protocol")},
        pace_ms=document["pace_ms"],
        seconds=document["seconds_per_price"],
        gathered=document["gathered"],
        refused=document["refused"],
        left_out=left_out,
        quantiles=", ".join(f"{value:.3g} ({q} %)" for q, value in document["ms_quantiles"].items()),
        families="\n".join(
            f"| {name} | {' | '.join(str(n) for n in of.values())} |" for name, of in document["families"].items()
        ),
        operators=", ".join(f"{op} {count}" for op, count in document["operators"].items()),
        noise="\n".join(_noise_row(size, noise) for size, noise in document["noise"].items()),
    )


def _noise_row(size: str, noise: Mapping[str, Any]) -> str:
    cells = [size.replace("_", " "), str(noise["regions"]), *(_cell(noise[key]) for key in _NOISE_COLUMNS)]
    return f"| {' | '.join([*cells, str(noise['cases'])])} |"


def _cell(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


_NOISE_COLUMNS = (
    "sigma_percent_median",
    "sigma_percent_p90",
    "again_percent_median",
    "again_percent_p90",
    "again_percent_median_without_probe",
    "again_within_two_sigma",
)
_SHEET = """\
# Measured regions

The data on which the price model is trained: {regions} distinct regions of graphs, each timed in ONNX Runtime. Made by
`make study NAME=prices` (`conf/study/prices.yaml`), which writes this page as well.

- `regions.jsonl.xz`: one region a line. `graph` is its text (`rlflow.ir.text`) without names; of weights it has the
  types, and in `values` those of small constants and of integers. `ms` and `sigma_ms`, one standard error, are at the
  pace at which the probe takes {pace_ms:.4f} ms; `probe_ms` is what the probe took beside it. `family` and
  `configuration` tell where it was met first.
- `rewrites.jsonl.xz`: {rewrites} rewrites, as the regions before and after, by signature.
- `graphs.jsonl.xz`: {graphs} whole graphs as the regions that they consist of: of {configurations} configurations the
  original, and what searches made of it under two analytic costs (`variant`).

`rlflow.cost.region_record` reads all three.

## Where they come from

Models of the zoo with drawn weights, and what rewrites with the whole library made of them: every single rewrite of the
original and of the searches' ends, and random walks from these. A region is what ONNX Runtime might fuse
(`rlflow.cost.regions`). Of {gathered} distinct regions gathered, those with new operators, shapes and wirings were
timed first. Left out: regions of mere views; too large, too long or of unknown size: {left_out}; refused by ONNX
Runtime: {refused}.

| family | regions | rewrites | graphs |
|---|---|---|---|
{families}

Regions by operator: {operators}.

## How they were timed

- Machine: {hardware}.
- Protocol {protocol}: `rlflow.runtime.timing.batches`, cold weights and warm activations, {seconds:.3f} s a price.
- Milliseconds by quantile: {quantiles}.

Noise in percent of the time, by the size of the region: the sigma that is written beside each; the difference of two
timings of a region in batches that lay far apart, with the probe and without; and the share of those that differ by
less than twice the sigma of their difference.

| size | regions | sigma, median | p90 | again, median | p90 | without the probe | within 2 sigma | timed twice |
|---|---|---|---|---|---|---|---|---|
{noise}

## What is missing

One machine, one version of ONNX Runtime, one thread, float32. Regions that two families share are under the first one's
name alone: leave those out that the `graphs` and `rewrites` of a family name, not only its own. Dynamic sizes are not
in it, and nodes that the library carries verbatim are not, nor models that nobody has in the zoo. Rewrites at random
are more frequent here than in a search.
"""
