"""Figures of models that are timed against each other have the names of the sheet, and nothing is searched twice."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest
from experiment.comparison import ORIGINAL, Contender, again
from studies.latencies import Sheet, latencies
from support.walks import LIBRARY

from rlflow import zoo
from rlflow.cost.analytic import AnalyticCost
from rlflow.ir.graph import Graph
from rlflow.method import Budget, OnProgress, OptimisationResult
from rlflow.optimise.gate import GateConfig
from rlflow.optimise.source import Source
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.search.greedy import Greedy

SHEET = Sheet(
    ratios={"noise": (ORIGINAL, again(ORIGINAL)), "gain": (ORIGINAL, "greedy"), "loss": ("greedy", ORIGINAL)},
    medians={"before_ms": ORIGINAL, "after_ms": "greedy"},
)
GATE = GateConfig(draws=1, rounds=3, runs_per_round=2, threads=1)


@dataclass(frozen=True)
class Counted(Greedy):
    """Greedy search that notes how often it was asked."""

    asked: list[int] = field(default_factory=list)

    def optimise(self, graph: Graph, budget: Budget, on_progress: OnProgress | None = None) -> OptimisationResult:
        self.asked.append(1)
        return super().optimise(graph, budget, on_progress)


def test_figures_are_those_of_the_sheet(tmp_path: Path):
    search = Counted(LIBRARY, Rewriter(LIBRARY.rules), AnalyticCost())
    source, contenders = Source.of(zoo.build("tiny_merge")), {"greedy": Contender(search, Budget())}
    for _ in range(2):
        figures, outcomes = latencies(source, contenders, SHEET, GATE, tmp_path / "tiny", lambda *_: None)
        assert set(figures) == {"as_written", "deployed"}
        for of_setting in figures.values():
            assert set(of_setting) == {*SHEET.ratios, *SHEET.medians, "rounds", "runs_per_round", "load"}
            assert of_setting["gain"]["value"] == pytest.approx(1 / of_setting["loss"]["value"])
            low, high = of_setting["noise"]["ci95"]
            assert low <= of_setting["noise"]["value"] <= high
            assert of_setting["before_ms"] > 0 < of_setting["after_ms"]
        assert outcomes["greedy"].result.improvement_percent > 0
    assert len(search.asked) == 1
