"""All benchmarks, to data/results/bench.json and bench.png: `make bench`. Wants a quiet machine: trust ratios alone."""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from experiment.figures import step_growth
from studies.measurements import Bench
from studies.published import publish

from rlflow.show.picture_file import save

HERE = Path(__file__).parent
RESULT = Path("data/results/bench.json")
PRINTED = ("step_speed.py", "price_speed.py", "search_depth.py", "environment_speed.py")
"""Benchmarks that print their rows."""
BY_BASELINE = ("graph_speed.py", "dream_speed.py", "start_up.py")
"""Benchmarks that print measurements, of which rows are made here."""


def output_of(script: str) -> Any:
    """Run a benchmark of this folder and return the JSON that it prints."""
    done = subprocess.run([sys.executable, str(HERE / script)], check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def dream_rows() -> list[dict[str, Any]]:
    """Dreamed steps a second at the default batch, beside what was promised."""
    measured = output_of("dream_speed.py")
    rows = []
    for prefix, formulation in (("dream", "pooled"), ("token dream", "tokens")):
        figures = measured[formulation]
        size, default = next(iter(figures["by_num_envs"].items()))
        for name, value in default.items():
            rows.append(
                {
                    "name": f"{prefix}/{name} ({size} dreams)",
                    "value": value,
                    "unit": "1/s",
                    "baseline": "promised, at least",
                    "baseline_value": figures["targets"][name],
                    "cases": 1,
                }
            )
    return rows


def graph_rows() -> list[dict[str, Any]]:
    """Order, hash and edits at two depths; the deeper beside the shallower scaled by its nodes: linear growth."""
    shallow, deep = output_of("graph_speed.py").items()
    growth = deep[1]["running_nodes"] / shallow[1]["running_nodes"]
    rows = []
    for depth, figures in (shallow, deep):
        for name, value in figures.items():
            if not isinstance(value, dict):
                continue
            linear = None if figures is shallow[1] else shallow[1][name]["median"] * growth
            rows.append(
                {
                    "name": f"graph/{name.removesuffix('_ms')} ({depth})",
                    "value": value["median"],
                    "unit": "ms",
                    "baseline": "linear growth from the shallower model",
                    "baseline_value": linear,
                    "cases": 7,
                }
            )
    return rows


def start_up_rows() -> list[dict[str, Any]]:
    """CPU time of our commands, each beside the others' that do the same or less."""
    measured = output_of("start_up.py")
    taken = measured["cpu_s"]
    peers = {
        "rlflow --help": ("onnxslim --help", "onnxsim --help", "import onnx", "import onnxruntime"),
        "rlflow optimise": ("onnxslim", "onnxsim", "import onnxruntime"),
    }
    return [
        {
            "name": f"start-up/{ours}, beside {other}",
            "value": round(taken[ours], 3),
            "unit": "s of CPU",
            "baseline": other,
            "baseline_value": round(taken[other], 3),
            "cases": measured["rounds"],
        }
        for ours, others in peers.items()
        for other in others
    ]


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()  # --help explains, and does not run for minutes
    rows = [row for script in PRINTED for row in output_of(script)]
    rows += [*graph_rows(), *dream_rows(), *start_up_rows()]
    publish(RESULT, Bench, rows, __file__, *map(HERE.joinpath, (*PRINTED, *BY_BASELINE)))
    save(step_growth(rows), RESULT.with_suffix(".png"))
    for row in rows:
        promised = "" if row["baseline_value"] is None else f"   ({row['baseline']}: {row['baseline_value']:.3g})"
        sys.stdout.write(f"{row['name']:48s} {row['value']:10.3f} {row['unit']}{promised}\n")


if __name__ == "__main__":
    main()
