"""Figures of models that are timed against each other are of each two, and nothing is searched twice."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest
from experiment.comparison import Contender
from studies.latencies import latencies
from support.walks import LIBRARY

from rlflow.cost.analytic import AnalyticCost
from rlflow.ir.graph import Graph
from rlflow.method import Budget, OnProgress, OptimisationResult
from rlflow.optimise.gate import GateConfig
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.search.greedy import Greedy

RATIOS = ("original_over_original", "original_over_greedy", "original_over_twin", "greedy_over_twin")
MEDIANS = ("original_ms", "greedy_ms", "twin_ms")
GATE = GateConfig(draws=1, rounds=3, runs_per_round=2, threads=1)


@dataclass(frozen=True)
class Counted(Greedy):
    """Greedy search that notes how often it was asked."""

    asked: list[int] = field(default_factory=list)

    def optimise(self, graph: Graph, budget: Budget, on_progress: OnProgress | None = None) -> OptimisationResult:
        self.asked.append(1)
        return super().optimise(graph, budget, on_progress)


def test_figures_are_of_each_two_models(tmp_path: Path):
    """By names that say which stands above. What the first run has found is kept by the name of the search."""
    search = Counted(LIBRARY, Rewriter(LIBRARY.rules), AnalyticCost())
    graphs = {"tiny": {"kind": "zoo", "entry": "tiny_merge", "settings": {}}}
    methods = {"greedy": Contender(search, Budget()), "twin": Contender(search, Budget())}
    for _ in range(2):
        ((name, figures, outcomes),) = latencies(graphs, lambda _: methods, GATE, tmp_path)
        assert (name, set(figures), set(outcomes)) == ("tiny", {"as_written", "deployed"}, {"greedy", "twin"})
        for of_setting in figures.values():
            assert set(of_setting) == {*RATIOS, *MEDIANS, "rounds", "runs_per_round", "load"}
            gain = of_setting["original_ms"] / of_setting["greedy_ms"]
            assert of_setting["original_over_greedy"]["value"] == pytest.approx(gain, rel=0.5)
            low, high = of_setting["original_over_original"]["ci95"]
            assert low <= of_setting["original_over_original"]["value"] <= high
        assert outcomes["greedy"].result.improvement_percent > 0
    assert len(search.asked) == 1
