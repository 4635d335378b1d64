"""Compare the regions that prices stand for with the kernels that ONNX Runtime runs, in models and rewritten ones.

    python pipelines/study.py borders 'graphs=[gpt2]'           for a new version of ONNX Runtime as well
    python pipelines/study.py borders graphs=[] exports=FOLDER  models of other architectures

What is priced as one must be what runs as one: a kernel that computes nodes of several regions belongs to none of them.
The models are profiled, so that each kernel counts by its time.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from experiment.formatting import markdown_table
from omegaconf import DictConfig, OmegaConf
from tracking.factories import graph_of
from tracking.run import Run, numbers

from rlflow.cost.in_place import Profiled, profiled, regions_of_kernel
from rlflow.cost.regions import Partition, node_by_node, partition
from rlflow.ir.graph import Graph
from rlflow.rules import library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.runtime.profile import ProfileConfig
from studies.borders.documents import Borders, Difference, KernelDifference
from studies.program import exported, open_study, options_of, study_program
from studies.published import publish
from studies.walks import rewritten

RESULTS = Path("data/results/borders/metrics.json")
_DECIMALS = 4

Row = dict[str, Any]


@study_program("borders")
def main(config: DictConfig) -> None:
    settings: Any = OmegaConf.to_container(config, resolve=True)
    option_of = options_of("borders")
    cells = {(name,): option_of("graph", name) for name in settings["graphs"]}
    cells |= {(name,): section for name, section in exported(settings["exports"]).items()}
    with open_study("borders", settings) as study:
        compared = partial(_difference, settings)
        if rows := study.rows(cells, compared, _logged):
            results = {name: row for (name,), row in rows.items()}
            publish(RESULTS, Borders, results, __file__)
            RESULTS.with_name("table.md").write_text(_table(results))
            study.run.artifact(RESULTS)


def _logged(run: Run, key: tuple[str], row: Row) -> str:
    (graph,) = key
    run.log(0, numbers({graph: row}))
    return f"{row['differs_percent']:.1f} %"


def _difference(settings: Any, section: Any) -> Row:
    """Compare a graph, and what drawn rewrites make of it."""
    graph, rng = graph_of(section), np.random.default_rng(settings["seed"])
    rewriter, walks = Rewriter(library.load().rules), settings["walks"]
    config, dimensions = ProfileConfig(**settings["profile"]), section.get("dimensions")

    graphs = [graph, *(rewritten(rewriter, graph, walks["steps"], rng) for _ in range(walks["number"]))]
    runs = [(each, profiled(each, config, dimensions, settings["seed"])) for each in graphs]
    shares = [_percent(each, run, partition(each)) for each, run in runs]
    return Difference(
        model_ms=runs[0][1].model_us / 1e3,
        differs_percent=shares[0],
        node_by_node_percent=_percent(graph, runs[0][1], node_by_node(graph)),
        rewritten_percent=shares[1:],
        worst=_worst(runs, settings["worst"]),
    ).to_json()


def _percent(graph: Graph, run: Profiled, cut: Partition) -> float:
    """Return the share of the time in kernels that compute nodes of several regions, or of none."""
    placed = run.placed(graph, cut)
    return round(100.0 * (placed.shared_us + placed.elsewhere_us) / run.model_us, _DECIMALS)


def _worst(runs: Sequence[tuple[Graph, Profiled]], number: int) -> list[KernelDifference]:
    """Return the kinds of kernels that cross borders, those that cost most first."""
    kinds: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for graph, run in runs:
        for kernel, nodes, us in _crossing(graph, run):
            kinds[kernel, nodes].append(100.0 * us / run.model_us / len(runs))
    ordered = sorted(kinds.items(), key=lambda kind: (-sum(kind[1]), kind[0]))
    return [
        KernelDifference(kernel, nodes, round(sum(shares), _DECIMALS), len(shares))
        for (kernel, nodes), shares in ordered[:number]
    ]


def _crossing(graph: Graph, run: Profiled) -> Iterator[tuple[str, str, float]]:
    """Yield the kernels that compute nodes of several regions: the operator, the nodes by region, and the time."""
    cut = partition(graph)
    for kernel, us in run.kernels:
        regions = regions_of_kernel(graph, cut, kernel)
        if len(regions) != 1 and not kernel.is_reorder:
            parts = [" ".join(graph.nodes[i].op for i in region if i in kernel.nodes) for region in regions]
            yield kernel.operator, " | ".join(parts), us


def _table(results: dict[str, Row]) -> str:
    header = ["graph", "model ms", "differs %", "rewritten, differs %", "node by node, differs %"]
    rows = [
        [
            name,
            f"{row['model_ms']:.2f}",
            f"{row['differs_percent']:.1f}",
            f"{fmean(row['rewritten_percent']):.1f}" if row["rewritten_percent"] else "",
            f"{row['node_by_node_percent']:.1f}",
        ]
        for name, row in results.items()
    ]
    return markdown_table(header, rows)
