"""The section `documents`: every page, table, data sheet and CSV, made anew from the committed results.

Nothing is written into the repository. What is published depends on these results and on the writers alone, so that a
digest is the same as long as neither changes.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from experiment import tables
from experiment.findings import findings
from experiment.results import read_results
from studies.documents import document_type
from studies.paper import write_page as paper_page
from studies.pass_ordering import write_page as pass_ordering_page
from studies.policy import data_sheet as policy_sheet
from studies.prices import data_sheet
from studies.reward_study import cases as reward_study
from studies.sample_efficiency import cases as sample_efficiency

from rlflow import schemas
from rlflow.schemas import Place
from support.golden.digests import Value, digest
from support.golden.entries import Compute
from support.repository import REPOSITORY
from support.views import write_views

RESULTS = REPOSITORY / "data/results"
PAGES = {"results": paper_page.written, "pass ordering": pass_ordering_page.written}
"""What makes each page by the figures in the root of a checkout."""
TABLES: Mapping[str, tuple[str, Callable[[Any], str]]] = {
    "cost accuracy": ("cost_accuracy/metrics.json", tables.cost_accuracy_table),
    "evaluation": ("evaluate/metrics.json", tables.evaluation_table),
    "headroom": ("headroom/metrics.json", tables.headroom_table),
    "speedups": ("speedups/metrics.json", lambda document: tables.speedups_table(document["models"])),
}


def _policy_sheet(judged: Any) -> str:
    return policy_sheet.data_sheet(judged, read_results(RESULTS / "policy/trial.json"))


SHEETS: Mapping[str, tuple[str, Callable[[Any], str]]] = {
    "measured regions": ("prices/metrics.json", data_sheet.data_sheet),
    "shipped policy": ("policy/metrics.json", _policy_sheet),
}
LEARNED = ("learned", "priced/learned")


def entries() -> Mapping[str, Compute]:
    """Return the documents, and what types say of the figures that they are made from."""
    return {
        **{f"page {name}": partial(_page, written) for name, written in PAGES.items()},
        **{f"table {name}": partial(_text, *source) for name, source in TABLES.items()},
        **{f"table {folder}": partial(_learned, folder) for folder in LEARNED},
        **{f"data sheet {name}": partial(_text, *source) for name, source in SHEETS.items()},
        "findings": lambda: digest(findings(RESULTS)),
        "statistics of rewards": _rewards,
        "statistics of sample efficiency": _sample_efficiency,
        "summaries and rows of plots": _views,
        "how figures reproduce": _kinds,
    }


def _page(written: Callable[[Path], Any]) -> Value:
    """Return the digest of a page, and of the figures that its script makes first, if any."""
    return digest(written(REPOSITORY))


def _text(file: str, write: Callable[[Any], str]) -> Value:
    return digest(write(read_results(RESULTS / file)))


def _learned(folder: str) -> Value:
    """Return the digest of the table of a study of learning, at the largest number of rewrites that it reads."""
    metrics, summary = (read_results(RESULTS / folder / f"{name}.json") for name in ("metrics", "summary"))
    return digest(tables.learned_table(metrics, summary, max(map(int, summary["gap_closed"])), ""))


def _rewards() -> Value:
    """Return the digest of the study's medians and intervals, from the rows of its seeds."""
    document = read_results(RESULTS / "reward_study/metrics.json")
    rows = {
        (graph, reward, row["seed"]): row
        for graph, rewards in document.items()
        for reward, found in rewards.items()
        for row in found["seeds"]
    }
    return digest(reward_study.summary(rows))


def _sample_efficiency() -> Value:
    document = read_results(RESULTS / "sample_efficiency/metrics.json")
    rows = {(graph, row["seed"]): row for graph, found in document.items() for row in found["seeds"]}
    return digest(sample_efficiency.summary(rows))


def _views() -> Value:
    """Return the digest of every file that DVC shows of the experiment, by its path below the results."""
    with TemporaryDirectory() as folder:
        return {path: digest((Path(folder) / path).read_text()) for path in write_views(RESULTS, Path(folder))}


def _kinds() -> Value:
    """Return, for each results file of the experiment, the digest of how every number in it reproduces."""
    found = {}
    for path in sorted(RESULTS.rglob("*.json")):
        document = document_type(path)
        if document is not None:
            kinds = [*_kinds_below(schemas.top(document), read_results(path), "")]
            if any(kind for _, kind in kinds):
                found[path.relative_to(RESULTS).as_posix()] = digest(kinds)
    return found


def _kinds_below(place: Place, document: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yield the path and the kind of every number of a document."""
    if isinstance(document, int | float) and not isinstance(document, bool):
        yield path, "" if place.kind is None else place.kind.value
    children = document.items() if isinstance(document, dict) else ()
    children = enumerate(document) if isinstance(document, list) else children
    for key, child in children:
        yield from _kinds_below(place.child(key), child, f"{path}/{key}")
