"""A search as a cell finds what the search finds by itself."""

from pathlib import Path

import pytest
from studies.paper.searched import SearchCell
from studies.subject import Subject

from rlflow import zoo
from rlflow.cost.analytic import AnalyticCost
from rlflow.cost.base import CostContext
from rlflow.method import Budget
from rlflow.onnx_io import from_onnx, save_model
from rlflow.rules import library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.search.greedy import Greedy


def test_a_search_as_a_cell(tmp_path: Path):
    path = tmp_path / "chain.onnx"
    save_model(zoo.build("tiny_chain", rows=8, inner=2048, length=2), path)
    subject, rules = Subject(path, "analytic", CostContext()), library.load()
    alone = Greedy(rules, Rewriter(rules.rules), AnalyticCost()).optimise(from_onnx(path), Budget())
    (row,) = SearchCell(subject, "greedy", "greedy", {}, Budget()).run().values()
    assert alone.improvement_percent > 0
    assert row.figures["improvement_percent"] == pytest.approx(alone.improvement_percent)
    assert row.figures["evaluations"] == alone.effort.rewrites
    assert row.figures["training_s"] == 0.0
