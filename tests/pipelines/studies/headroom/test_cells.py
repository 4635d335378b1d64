"""A row says what its search found and what that took; a document marks the best that is known and right."""

import pytest
from studies.headroom.cells import Cell, figures, run_cell, with_rows
from studies.headroom.documents import Headroom
from studies.subject import Subject

from rlflow import schemas, zoo
from rlflow.cost.analytic import AnalyticCost
from rlflow.cost.base import CostContext
from rlflow.cost.effort import Effort
from rlflow.ir.graph import Graph
from rlflow.method import Budget, Milestone, Optimality, OptimisationResult
from rlflow.onnx_io import save_model
from rlflow.rules import library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.search.greedy import Greedy
from rlflow.trajectory.record import Trajectory

EVALUATIONS = (1, 10, 100)


@pytest.fixture(scope="module")
def subject(tmp_path_factory: pytest.TempPathFactory) -> Subject:
    path = tmp_path_factory.mktemp("headroom") / "tiny_scale.onnx"
    save_model(zoo.build("tiny_scale"), path)
    return Subject(path, "analytic", CostContext())


@pytest.fixture(scope="module")
def graph(subject: Subject) -> Graph:
    return subject.graph()


@pytest.fixture(scope="module")
def row(subject: Subject) -> dict:
    return run_cell(Cell(subject, "greedy", {}, Budget(), EVALUATIONS, draws=3, seed=0))


def result_of(graph: Graph, optimality: Optimality | None = None) -> OptimisationResult:
    """One that came from 10 ms to 9.5 ms after 4 evaluations and to 9 ms after 50, and ended after 80."""
    return OptimisationResult(
        best=graph,
        best_ms=9.0,
        start_ms=10.0,
        trajectory=Trajectory("", 10.0, "analytic", "", ()),
        wall_time_s=2.0,
        effort=Effort(rewrites=80, prices_asked=70, prices_measured=3, rewriting_s=0.5, pricing_s=0.25),
        milestones=(Milestone(0, 0, 0.0, 10.0), Milestone(4, 1, 0.125, 9.5), Milestone(50, 2, 1.5, 9.0)),
        optimality=optimality,
    )


def test_a_row_is_what_the_search_finds(row: dict, graph: Graph):
    rules = library.load()
    result = Greedy(rules, Rewriter(rules.rules), AnalyticCost()).optimise(graph, Budget())
    assert row["improvement_percent"] == round(result.improvement_percent, 4) > 0
    assert (row["cost_after_ms"], row["evaluations"]) == (result.best_ms, result.effort.rewrites)
    assert row["steps"] == len(result.trajectory.steps) > 0


def test_a_row_comes_with_its_evidence(row: dict):
    assert (row["equivalent"], row["draws"]) == (True, 3)
    assert row["memory_mb"] is None or row["memory_mb"] > 20, "an interpreter with numpy takes more"
    schemas.validate(Headroom, with_rows({}, {("tiny_scale", "analytic", "greedy"): row}))


def test_a_result_of_sharing_matching_is_replayed_and_compared(subject: Subject):
    options = {"exploration": {"max_nodes": 200}}
    cell = Cell(subject, "equality_saturation", options, Budget(), EVALUATIONS, 2, 0)
    row = run_cell(cell)
    assert row["steps"] > 0
    assert row["equivalent"]
    assert row["proven"] is not None


def test_improvements_are_read_off_the_milestones(graph: Graph):
    at = figures(result_of(graph), (3, 4, 49, 1000))["at"]
    assert [reached["improvement_percent"] for reached in at.values()] == [0.0, 5.0, 5.0, 10.0]
    assert at["1000"] == {"improvement_percent": 10.0, "prices_measured": 2, "wall_time_s": 1.5}
    assert list(at) == ["3", "4", "49", "1000"]


def test_only_a_method_with_a_bound_proves_anything(graph: Graph):
    """An infinite gap, of a solver that found no bound, is none that JSON could hold."""
    keys = ("proven", "gap_percent", "limited_by")
    assert [figures(result_of(graph), EVALUATIONS)[key] for key in keys] == [None, None, None]
    for gap, told in ((0.5, 0.5), (float("inf"), None)):
        row = figures(result_of(graph, Optimality(False, 8.9, gap, "nodes")), EVALUATIONS)
        assert [row[key] for key in keys] == [False, told, "nodes"]


def test_the_best_known_is_marked_among_those_that_are_right(row: dict):
    """Ties to two decimals are both the best. The largest saving is a wrong graph's, which is never the best."""
    savings = {"greedy": 5.001, "chains": 5.0, "random": 4.9, "broken": 9.0}
    rows = {
        ("g", "analytic", m): row | {"improvement_percent": s, "equivalent": m != "broken"} for m, s in savings.items()
    }
    methods = with_rows({}, rows)["g"]["analytic"]
    assert [method for method in methods if methods[method]["best_known"]] == ["greedy", "chains"]


def test_where_nothing_is_saved_doing_nothing_is_best(row: dict):
    nothing = row | {"improvement_percent": 0.0, "cost_after_ms": row["cost_before_ms"]}
    methods = with_rows({}, {("g", "analytic", "greedy"): nothing})["g"]["analytic"]
    assert list(methods) == ["original", "greedy"]
    assert methods["original"]["best_known"]
    assert methods["original"]["cost_after_ms"] == row["cost_before_ms"]


def test_new_rows_replace_older_ones_and_leave_the_others(row: dict):
    published = with_rows({}, {("g", "analytic", m): row for m in ("greedy", "random")} | {("h", "gpu", "greedy"): row})
    better = row | {"improvement_percent": row["improvement_percent"] + 1}
    document = with_rows(published, {("g", "analytic", "greedy"): better})
    assert document["h"] == published["h"]
    assert list(document["g"]["analytic"]) == ["original", "greedy", "random"]
    assert document["g"]["analytic"]["greedy"]["improvement_percent"] == better["improvement_percent"]
    assert not document["g"]["analytic"]["random"]["best_known"], "it was, before"
    assert published["g"]["analytic"]["random"]["best_known"]


def test_rows_of_an_older_schema_are_left_behind(row: dict):
    published = {"g": {"analytic": {"greedy": {"improvement_percent": 1.0}}}}
    document = with_rows(published, {("g", "analytic", "random"): row})
    assert list(document["g"]["analytic"]) == ["original", "random"]
