"""Make the figures of pass ordering from what everybody has found on each graph.

    python pipelines/pass_ordering/metrics.py                 data/results/pass_ordering/metrics.json

Reads data/results/pass_ordering/BACKEND.json of every backend that has been studied (study.py).
"""

from pathlib import Path
from typing import Any

from rlflow.evaluation.pass_ordering.figures import summary
from rlflow.evaluation.pass_ordering.rows import Row
from rlflow.evaluation.results import read_results, write_results

RESULTS = Path("data/results/pass_ordering")


def metrics() -> None:
    """Write the figures of all backends."""
    documents = [read_results(path) for path in sorted(RESULTS.glob("*.json")) if path.name != "metrics.json"]
    write_results(RESULTS / "metrics.json", {document["backend"]: _of_one(document) for document in documents})


def _of_one(document: Any) -> dict[str, Any]:
    rows = {
        entrant: {int(seed): Row.from_json(row) for seed, row in seeds.items()}
        for entrant, seeds in document["entrants"].items()
    }
    return summary(rows, document["times_ms"], document["held_out"])


if __name__ == "__main__":
    metrics()
