"""Tell what the experiment has found, and where to look next: the end of `make repro`.

python pipelines/findings.py                      # of the results here
python pipelines/findings.py other/checkout       # of another checkout
"""

import sys
from pathlib import Path

from experiment.findings import findings

from rlflow.errors import InputError

NEXT = {
    "table": "data/results/evaluate/table.md",
    "figures": "data/results/*/*.png, and `dvc plots show --open` in a browser",
    "metrics": "`dvc metrics show`, and every figure in data/results/*/metrics.json",
    "UI": "`make ui`, MLflow's on all runs",
    "models": "data/models/<graph>: optimised.onnx, or original.onnx beside candidate.onnx, which was not delivered",
}


def main(root: Path) -> int:
    """Print the findings of a checkout; returns the exit code."""
    try:
        lines = findings(root / "data/results")
    except InputError as error:
        sys.stderr.write(f"{error}: run the experiment with `make repro`\n")
        return 2
    sys.stdout.write("\nWhat was found:\n" + "".join(f"  {line}\n" for line in lines))
    sys.stdout.write("Where to look next:\n" + "".join(f"  {what}: {place}\n" for what, place in NEXT.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(*sys.argv[1:2])))
