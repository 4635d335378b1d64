"""Time how long a price takes, in batches and one by one; prints JSON rows of schemas/bench.schema.json.

    python benchmarks/price_speed.py

All distinct regions of a few models, views apart, are measured again and again, sixteen at a time and each by itself.
Both must give the same sum of prices, and the noise that prices tell of themselves that by which repetitions differ.
"""

import argparse
import json
import math
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from statistics import fmean, median
from typing import Any

from onnx import ModelProto

from rlflow import zoo
from rlflow.cost.fragment import describe, extract
from rlflow.cost.regions import VIEWS, partition
from rlflow.errors import RLFlowError
from rlflow.ir.graph import Graph
from rlflow.onnx_io import from_onnx
from rlflow.onnx_io.standalone import standalone_model
from rlflow.runtime.timing.batches import BatchConfig, FragmentTiming, time_batch

MODELS = {"SqueezeNet": "squeezenet1_1", "MobileNetV2": "mobilenet_v2", "BERT-Base": "bert"}
PROMISED_S = 0.065
_REPETITIONS = 3
_PACE_MS = 1.0
_MEDIAN_OF_A_NORMAL = 0.6745  # of its size, in deviations


@dataclass(frozen=True)
class Taken:
    """Prices of all regions at the pace at which the probe takes a millisecond, and the seconds that each took."""

    timings: Sequence[FragmentTiming]
    seconds: float

    @property
    def sum_ms(self) -> float:
        return sum(timing.ms for timing in self.timings)


def main() -> None:
    argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0]).parse_args()
    rows = [row for label, name in MODELS.items() for row in model_rows(label, from_onnx(zoo.build(name)))]
    json.dump(rows, sys.stdout, indent=1)
    sys.stdout.write("\n")


def model_rows(label: str, graph: Graph) -> Iterator[dict[str, Any]]:
    models = regions(graph)
    together, alone = ([priced(models, size) for _ in range(_REPETITIONS)] for size in (BatchConfig().size, 1))
    together_s, alone_s = (fmean(each.seconds for each in taken) for taken in (together, alone))
    together_ms, alone_ms = (fmean(each.sum_ms for each in taken) for taken in (together, alone))
    row = partial(_row, cases=len(models) * _REPETITIONS)
    yield row(f"prices/{label}, one in a batch", together_s, "s", "promised, at most", PROMISED_S)
    yield row(f"prices/{label}, one by itself", alone_s, "s", "one in a batch", together_s)
    yield row(f"prices/{label}, sum in batches", together_ms, "ms", "sum of prices taken one by one", alone_ms)
    yield row(f"prices/{label}, noise found over noise told", noise_ratio(together), "1", "noise told rightly", 1.0)


def regions(graph: Graph) -> list[ModelProto]:
    """Return all distinct regions of a graph that ONNX Runtime can run by themselves."""
    whole = partition(graph).made
    fragments = (describe(graph, region) for region in whole if any(graph.nodes[i].op not in VIEWS for i in region))
    distinct = {fragment.signature: fragment for fragment in fragments}
    return [standalone_model(extract(graph, fragment)) for fragment in distinct.values()]


def priced(models: Sequence[ModelProto], size: int) -> Taken:
    """Measure all, so many at a time, at the pace of the first."""
    started = time.perf_counter()
    timings: list[FragmentTiming] = []
    for first in range(0, len(models), size):
        for timing in time_batch(models[first : first + size], setting="deployed"):
            if isinstance(timing, RLFlowError):
                raise timing
            timings.append(timing)
    seconds = (time.perf_counter() - started) / len(models)
    return Taken([timing.at_pace(_PACE_MS) for timing in timings], seconds)


def noise_ratio(taken: Sequence[Taken]) -> float:
    """Return the median difference of two timings of a region over the one that their noise lets expect."""
    pairs = (pair for each in zip(*(t.timings for t in taken), strict=True) for pair in pairwise(each))
    return median(abs(a.ms - b.ms) / math.hypot(a.sigma_ms, b.sigma_ms) for a, b in pairs) / _MEDIAN_OF_A_NORMAL


def _row(name: str, value: float, unit: str, baseline: str, baseline_value: float, cases: int) -> dict[str, Any]:
    figures = {"value": round(value, 4), "unit": unit, "baseline": baseline, "baseline_value": round(baseline_value, 4)}
    return {"name": name, **figures, "cases": cases}


if __name__ == "__main__":
    main()
