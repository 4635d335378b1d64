"""Compare the regions that prices stand for with what ONNX Runtime runs, for models of the zoo and rewritten ones.

    python pipelines/study.py borders 'graphs=[gpt2]'

Runs every model once, and every region alone; prices are those of the shipped price model, so that no clock counts.
"""

from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from experiment.formatting import markdown_table
from experiment.results import write_results
from omegaconf import DictConfig, OmegaConf
from tracking.factories import graph_of
from tracking.run import Run, numbers

from rlflow.cost.predicted.cost import PredictedCost
from rlflow.cost.predicted.price_model import load
from rlflow.cost.regions import node_by_node, partition
from rlflow.ir.graph import Graph
from rlflow.rules import library
from rlflow.rules.matching.rewriter import Rewriter
from studies.borders.comparison import Comparer, Comparison
from studies.borders.documents import Borders, Difference, RegionDifference
from studies.program import open_study, options_of, study_program
from studies.walks import rewritten

RESULTS = Path("data/results/borders/metrics.json")
_DECIMALS = 4

Row = dict[str, Any]


@study_program("borders")
def main(config: DictConfig) -> None:
    settings: Any = OmegaConf.to_container(config, resolve=True)
    option_of = options_of("borders")
    with open_study("borders", settings) as study:
        compared = partial(_difference, settings["walks"], settings["worst"], settings["seed"])
        if rows := study.rows({(name,): option_of("graph", name) for name in settings["graphs"]}, compared, _logged):
            results = {name: row for (name,), row in rows.items()}
            write_results(RESULTS, Borders, results)
            RESULTS.with_name("table.md").write_text(_table(results))
            study.run.artifact(RESULTS)


def _logged(run: Run, key: tuple[str], row: Row) -> str:
    (graph,) = key
    run.log(0, numbers({graph: row}))
    return f"{row['differs_percent']:.1f} %"


def _difference(walks: Any, worst: int, seed: int, section: Any) -> Row:
    """Compare a graph, and what drawn rewrites make of it."""
    graph, rng = graph_of(section), np.random.default_rng(seed)
    rewriter, cost_model = Rewriter(library.load().rules), PredictedCost(load(), dimensions=section.get("dimensions"))
    comparer = Comparer(cost_model.dimensions, seed)

    def compared(graph: Graph) -> Comparison:
        return comparer.compare(graph, partition(graph), cost_model)

    original = compared(graph)
    others = [compared(rewritten(rewriter, graph, walks["steps"], rng)) for _ in range(walks["number"])]
    baseline = comparer.compare(graph, node_by_node(graph), cost_model)
    return Difference(
        price_ms=original.price_ms,
        differs_percent=_percent(original),
        node_by_node_percent=_percent(baseline),
        rewritten_percent=[_percent(other) for other in others],
        worst=_worst([original, *others], worst),
        missing=dict(sum((each.missing for each in (original, *others)), Counter[str]())),
    ).to_json()


def _percent(comparison: Comparison) -> float:
    """Return the share that differs; nothing does in a graph that costs nothing."""
    return round(100.0 * comparison.differing_ms / comparison.price_ms, _DECIMALS) if comparison.price_ms else 0.0


def _worst(comparisons: Sequence[Comparison], number: int) -> list[RegionDifference]:
    """Return the kinds of regions that differ, those that cost most first."""
    kinds: dict[tuple[str, tuple[tuple[str, int], ...]], list[float]] = {}
    for comparison in comparisons:
        for region, ms, kernels in comparison.differences:
            shares = kinds.setdefault((region, tuple(sorted(kernels.items()))), [])
            shares.append(100.0 * ms / comparison.price_ms / len(comparisons))
    ordered = sorted(kinds.items(), key=lambda kind: (-sum(kind[1]), kind[0]))
    return [
        RegionDifference(region, round(sum(shares), _DECIMALS), len(shares), dict(kernels))
        for (region, kernels), shares in ordered[:number]
    ]


def _table(results: dict[str, Row]) -> str:
    header = ["graph", "price ms", "differs %", "rewritten, differs %", "node by node, differs %"]
    rows = [
        [
            name,
            f"{row['price_ms']:.2f}",
            f"{row['differs_percent']:.1f}",
            f"{fmean(row['rewritten_percent']):.1f}" if row["rewritten_percent"] else "",
            f"{row['node_by_node_percent']:.1f}",
        ]
        for name, row in results.items()
    ]
    return markdown_table(header, rows)
