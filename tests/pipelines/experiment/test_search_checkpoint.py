"""A search that was done need not be done again; whatever is wrong with what it left, it is."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from experiment import comparison
from experiment.comparison import Contender
from experiment.search_checkpoint import kept_results

from rlflow import zoo
from rlflow.cost.analytic import AnalyticCost
from rlflow.ir.graph import Graph
from rlflow.ir.structural_hash import structural_hash
from rlflow.method import Budget, OptimisationResult
from rlflow.onnx_io import from_onnx
from rlflow.optimise.gate import GateConfig
from rlflow.optimise.source import Source
from rlflow.rules import library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.search.greedy import Greedy


@dataclass
class CountedGreedy:
    """Greedy search that knows how often it was asked."""

    inner: Greedy
    searches: int = 0
    name: str = "greedy"

    @property
    def rewriter(self) -> Rewriter:
        return self.inner.rewriter

    def optimise(self, *arguments, **settings) -> OptimisationResult:
        self.searches += 1
        return self.inner.optimise(*arguments, **settings)


@pytest.fixture
def greedy() -> CountedGreedy:
    rules = library.load()
    return CountedGreedy(Greedy(rules, Rewriter(rules.rules), AnalyticCost()))


@pytest.fixture
def graph() -> Graph:
    return from_onnx(zoo.build("tiny_scale"))


def test_a_result_that_is_read_again_is_the_same(greedy, graph, tmp_path: Path):
    result = greedy.optimise(graph, Budget())
    assert result.trajectory.steps
    kept = kept_results(tmp_path / "new", graph, greedy.rewriter)
    kept.keep("greedy", result)
    again = kept.find("greedy")
    assert structural_hash(again.best) == structural_hash(result.best) != structural_hash(graph)
    assert (again.trajectory, again.best_ms, again.start_ms, again.wall_time_s, again.effort, again.milestones) == (
        result.trajectory,
        result.best_ms,
        result.start_ms,
        result.wall_time_s,
        result.effort,
        result.milestones,
    )


def test_a_comparison_that_goes_on_does_not_search_again(greedy, graph, tmp_path: Path):
    contest = comparison.contest_of(Source.of(zoo.build("tiny_scale")), tmp_path, GateConfig(draws=2))
    outcomes = [comparison.compete(Contender(greedy, Budget()), contest, tmp_path / "kept") for _ in range(2)]
    assert greedy.searches == 1
    assert outcomes[0].result.best_ms == outcomes[1].result.best_ms
    assert outcomes[1].equivalence.equivalent


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["missing", "truncated", "another graph", "another rule", "a figure is missing"])
def test_what_cannot_be_used_is_searched_again(greedy, graph, tmp_path: Path, fault, caplog):
    path, kept = tmp_path / "greedy.json", kept_results(tmp_path, graph, greedy.rewriter)
    kept.keep("greedy", greedy.optimise(graph, Budget()))
    assert kept.find("greedy") is not None
    content = json.loads(path.read_text())
    if fault == "missing":
        path.unlink()
    elif fault == "truncated":
        path.write_text(path.read_text()[:-40])
    elif fault == "another graph":
        graph = from_onnx(zoo.build("tiny_merge"))
    elif fault == "another rule":
        rule = json.loads(content["trajectory"])["steps"][0]["rule"]
        path.write_text(path.read_text().replace(rule, "algebra-000000000000"))
    else:
        del content["best_ms"]
        path.write_text(json.dumps(content))
    assert kept_results(tmp_path, graph, greedy.rewriter).find("greedy") is None
    assert ("it is made again" in caplog.text) == (fault != "missing")
