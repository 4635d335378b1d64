"""What is put together over seeds: medians, intervals and counts in closed form."""

import json
from pathlib import Path

import pytest
from msgspec import convert
from studies.paper.documents import Paper
from studies.paper.rows import Row, method_row, saved_percent, summary
from studies.subject import Subject

from rlflow import schemas, zoo
from rlflow.cost.analytic import AnalyticCost
from rlflow.cost.base import CostContext
from rlflow.method import Budget
from rlflow.onnx_io import from_onnx, save_model
from rlflow.rules import library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.search.greedy import Greedy
from rlflow.trajectory.record import Trajectory


def row(percent: float, **counts: int) -> Row:
    return Row({"improvement_percent": percent}, {"return_percent": [percent, 2 * percent]}, counts)


def test_medians_curves_and_counts_are_over_seeds():
    found = summary({("g", "a", 2): row(5.0, fuse=1), ("g", "a", 0): row(1.0, fuse=2, swap=1), ("g", "a", 1): row(3.0)})
    schemas.validate(Paper, found)
    told = found["g"]["a"]
    assert told["seeds"] == [0, 1, 2]
    assert told["figures"]["improvement_percent"]["value"] == 3.0
    assert told["figures"]["improvement_percent"]["values"] == [1.0, 3.0, 5.0], "in the order of seeds"
    assert told["curves"]["return_percent"] == [[1.0, 2.0], [3.0, 6.0], [5.0, 10.0]]
    assert told["counts"] == {"fuse": 3, "swap": 1}


def test_a_figure_that_one_seed_lacks_is_not_published():
    odd = Row({"improvement_percent": 1.0, "evaluations": 7.0})
    figures = summary({("g", "a", 0): odd, ("g", "a", 1): row(1.0)})["g"]["a"]["figures"]
    assert figures.keys() == {"improvement_percent"}


def test_what_is_kept_of_a_cell_is_what_it_returned():
    rows = {"a": row(1.0, fuse=1), "b": Row({}, trajectory="steps")}
    assert convert(json.loads(json.dumps(schemas.plain(rows))), dict[str, Row]) == rows


def test_a_method_row_tells_what_was_saved_and_by_which_rules(tmp_path: Path):
    """The counts add up to the steps, and the record leads from the graph."""
    path = tmp_path / "bert_tiny.onnx"
    save_model(zoo.build("bert", layers=1, hidden=32, heads=2, intermediate=64, sequence=8), path)
    subject, rules = Subject(path, "analytic", CostContext()), library.load()
    result = Greedy(rules, Rewriter(rules.rules), AnalyticCost()).optimise(subject.graph(), Budget())
    found = method_row(from_onnx(path), result, subject.prices(), rules, training_s=3.0)
    assert result.trajectory.steps, "greedy search finds something here, or this test says nothing"
    assert sum(found.counts.values()) == len(result.trajectory.steps)
    assert found.figures["improvement_percent"] == pytest.approx(result.improvement_percent)
    assert found.figures["training_s"] == 3.0
    assert Trajectory.from_json(found.trajectory) == result.trajectory
    schemas.validate(Paper, summary({("g", "greedy", 0): found}))


def test_nothing_is_saved_of_nothing():
    assert (saved_percent(0, 0), saved_percent(4, 3), saved_percent(4, 5)) == (0.0, 25.0, -25.0)
