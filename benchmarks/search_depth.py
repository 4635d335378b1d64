"""How searches grow with depth: CPU time, memory and what is saved on BERT of 48 and 192 layers; prints JSON rows.

    python benchmarks/search_depth.py [--layers 48 192] [--methods greedy chains equality_saturation rlflow]

Each search runs in a process of its own, by analytic prices, until it ends by itself. Time and memory of the deeper
model stand beside those of the shallower one, scaled by its layers.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from resource import RUSAGE_SELF, getrusage
from typing import Any

from rlflow import zoo
from rlflow.cost.analytic import AnalyticCost
from rlflow.method import Budget
from rlflow.onnx_io import from_onnx
from rlflow.optimise.methods import METHODS
from rlflow.rules import library
from rlflow.rules.matching.rewriter import Rewriter

SMALL = {"hidden": 64, "heads": 2, "intermediate": 256}
UNITS = {"cpu_s": "s of CPU", "memory_mb": "MB", "saved_percent": "%"}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--layers", type=int, nargs="+", default=[48, 192])
    parser.add_argument("--methods", nargs="+", default=["greedy", "chains", "equality_saturation", "rlflow"])
    parser.add_argument("--one", action="store_true", help="measure the first of both in this process")
    arguments = parser.parse_args()
    if arguments.one:
        json.dump(measured(arguments.methods[0], arguments.layers[0]), sys.stdout)
        return
    json.dump([row for method in arguments.methods for row in rows(method, arguments.layers)], sys.stdout, indent=1)
    sys.stdout.write("\n")


def measured(method: str, layers: int) -> dict[str, float]:
    """Search once."""
    graph, rules = from_onnx(zoo.build("bert", layers=layers, **SMALL)), library.load()
    search = METHODS.get(method)(rules, Rewriter(rules.rules), AnalyticCost())
    started = time.process_time()
    result = search.optimise(graph, Budget())
    return {
        "cpu_s": round(time.process_time() - started, 2),
        "memory_mb": round(getrusage(RUSAGE_SELF).ru_maxrss / 1024),
        "saved_percent": round(result.improvement_percent, 2),
    }


def rows(method: str, depths: list[int]) -> Iterator[dict[str, Any]]:
    """Measure a method at each depth; what is saved should not fall, and the others not grow faster than the model."""
    shallow: dict[str, float] | None = None
    for layers in depths:
        command = [sys.executable, __file__, "--one", "--methods", method, "--layers", str(layers)]
        found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
        for name, unit in UNITS.items():
            growth = 1.0 if name == "saved_percent" else layers / depths[0]
            yield {
                "name": f"depth/{method}, {name} ({layers} layers)",
                "value": found[name],
                "unit": unit,
                "baseline": "none" if shallow is None else "the shallowest model's, scaled by layers",
                "baseline_value": None if shallow is None else shallow[name] * growth,
                "cases": 1,
            }
        shallow = shallow or found


if __name__ == "__main__":
    main()
