"""Tell after `make repro` where the results of this run lie, and how they compare with the published ones.

    python pipelines/your_results.py

The published results are those of the last commit. A run writes its own over them in the working tree: another
processor takes other times, rounds otherwise, and so may come to other rewrites. Git keeps the two apart.
"""

import json
import sys
from pathlib import Path

from rlflow.evaluation.results import read_results
from rlflow.evaluation.tables import side_by_side
from rlflow.tracking.provenance import changed, committed

RESULTS = "data/results"
EVALUATION = f"{RESULTS}/evaluate/metrics.json"
REWRITTEN = (RESULTS, "dvc.lock", "params.yaml")


def describe(root: Path) -> str:
    """Name the results of this checkout and what became of the published ones."""
    published = committed(root, EVALUATION)
    if published is None:
        return f"Your results are in {RESULTS}. No commit here has published ones to compare them with.\n"
    files = changed(root, *REWRITTEN)
    if not files:
        return f"Your results are in {RESULTS}. They are the published ones, to the byte.\n"
    table = side_by_side(json.loads(published), read_results(root / EVALUATION))
    return (
        f"Your results are in {RESULTS}; the published ones stay in git:\n\n{table}\n"
        f"Files that differ from the last commit, as `git status` lists them: {len(files)}. That is no fault: other\n"
        "machines measure and round otherwise.\n"
        "  all figures side by side       dvc metrics diff HEAD\n"
        f"  bring the published ones back  git checkout HEAD -- {' '.join(REWRITTEN)}\n"
    )


if __name__ == "__main__":
    sys.stdout.write(describe(Path.cwd()))
