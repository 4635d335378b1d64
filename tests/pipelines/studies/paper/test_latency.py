"""Latencies of what agents found: the models are checked, and what computes something else is refused."""

from dataclasses import replace
from pathlib import Path

import pytest
from studies.paper.documents import Paper
from studies.paper.latency import LatencyCell
from studies.paper.rows import summary
from studies.reward_study.cases import TimingConfig
from studies.subject import Subject

from rlflow import schemas, zoo
from rlflow.cost.analytic import AnalyticCost
from rlflow.cost.base import CostContext
from rlflow.errors import RLFlowError
from rlflow.method import Budget
from rlflow.onnx_io import save_model
from rlflow.rules import library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.rules.matching.sharing import rewriter_of
from rlflow.search.greedy import Greedy


@pytest.fixture
def cell(tmp_path: Path) -> LatencyCell:
    path = tmp_path / "chain.onnx"
    save_model(zoo.build("tiny_chain", rows=8, inner=512, length=2), path)
    subject, rules = Subject(path, "analytic", CostContext()), library.load()
    found = Greedy(rules, Rewriter(rules.rules), AnalyticCost()).optimise(subject.graph(), Budget()).trajectory
    assert found.steps
    return LatencyCell(subject, 0, {"greedy": found.to_json()}, TimingConfig(rounds=2, runs_per_round=1), draws=2)


def test_each_model_stands_beside_the_original_and_its_control(cell: LatencyCell):
    found = cell.run()
    assert [*found] == ["original", "greedy"]
    for row in found.values():
        for setting in ("as_written", "deployed"):
            low, high = (row.figures[f"latency_ratio_{setting}_{end}"] for end in ("low", "high"))
            assert 0 < low <= row.figures[f"latency_ratio_{setting}"] <= high
    schemas.validate(Paper, summary({("chain", name, 0): row for name, row in found.items()}))


def test_what_was_found_with_shared_matching_is_replayed_with_it(cell: LatencyCell):
    """That of the policy that ships is: its locations are counted otherwise."""
    rules = library.load()
    search = Greedy(rules, rewriter_of("sharing", rules.rules), AnalyticCost())
    found = search.optimise(cell.subject.graph(), Budget()).trajectory
    assert found.matching == "sharing"
    assert "shared" in replace(cell, found={"shared": found.to_json()}).run()


def test_a_trajectory_of_another_graph_is_refused(cell: LatencyCell, tmp_path: Path):
    other = tmp_path / "other.onnx"
    save_model(zoo.build("tiny_chain", rows=8, inner=256, length=2), other)
    with pytest.raises(RLFlowError):
        replace(cell, subject=replace(cell.subject, model=other)).run()
