"""Make the figures of pass ordering from what everybody has found on each graph, and the page that shows them.

    python pipelines/study.py pass_ordering.write_page   metrics.json of pass ordering, and docs/pass_ordering.md

Reads data/results/pass_ordering/BACKEND.json of every backend that has been studied (study.py) and what one_shot.py has
found on the same graphs, and the random walks of benchmarks/pass_walks.py.
"""

from pathlib import Path
from typing import Any

from experiment.results import read_results

from rlflow.atomic_file import written_whole
from rlflow.errors import RLFlowError
from studies.pass_ordering.documents import PassOrdering
from studies.pass_ordering.figures import summary
from studies.pass_ordering.page import page
from studies.pass_ordering.rows import rows_of
from studies.published import publish_derived

ROOT = Path(__file__).parents[3]
RESULTS = "data/results/pass_ordering"
WALKS = "data/results/pass_walks.json"


def figures_of(document: Any) -> dict[str, Any]:
    """The figures of one backend."""
    return summary(rows_of(document), document["times_ms"], document["held_out"])


def written(root: Path) -> tuple[dict[str, Any], str]:
    """The figures and the page by what a checkout has found."""
    files = [path for path in sorted((root / RESULTS).glob("*.json")) if path.name != "metrics.json"]
    documents = {path.stem: _with_one_shot(read_results(path), path.parent / "one_shot" / path.name) for path in files}
    metrics = {name: figures_of(document) for name, document in documents.items()}
    return metrics, page(metrics, documents, read_results(root / WALKS))


def _with_one_shot(document: dict[str, Any], path: Path) -> dict[str, Any]:
    """The findings on the graphs of a backend, with those of a core set where one was learned."""
    if not path.exists():
        return document
    other = read_results(path)
    if any(document[key] != other[key] for key in ("training", "held_out")):
        raise RLFlowError(f"{path} is about other graphs: make it anew (pass_ordering.one_shot)")
    return {**other, **document, "entrants": document["entrants"] | other["entrants"]}


def main() -> None:
    metrics, text = written(ROOT)
    sources = [path for path in (ROOT / RESULTS).rglob("*.json") if path.name != "metrics.json"]
    publish_derived(ROOT / RESULTS / "metrics.json", PassOrdering, metrics, sources, __file__)
    with written_whole(ROOT / "docs/pass_ordering.md") as draft:
        draft.write_text(text)
