"""A curve is read past what greedy search had carried out; means have the intervals of Student's distribution."""

from pathlib import Path

import pytest
from studies.learned.cells import Cell, Rows, mean_ci95, run_cells, saved_percent
from studies.subject import Subject
from support.learned_rows import ROWS

from rlflow.cost.base import CostContext
from rlflow.method import Budget


def rows() -> Rows:
    return Rows(ROWS, frozenset({"rlflow"}))


@pytest.mark.parametrize(
    ("rewrites", "percent"), [(-1, 0.0), (0, 0.0), (89, 0.0), (90, 6.0), (120, 8.0), (599, 8.0), (9999, 9.0)]
)
def test_a_curve_is_what_there_was_by_then(rewrites: int, percent: float):
    assert saved_percent(ROWS["gpt2", "rlflow", 0], rewrites) == percent


def test_curves_begin_where_greedy_search_ends():
    """Which carries out 100 rewrites, the last ten of them for nothing."""
    first = ROWS["gpt2", "rlflow", 0]
    assert [rows().at("gpt2", first, past) for past in (0, 19, 20, 500)] == [6.0, 6.0, 8.0, 9.0]


def test_means_have_student_s_intervals():
    """Of 1, 2 and 3: 4.3027 times the root of a third."""
    mean, interval = mean_ci95([1.0, 2.0, 3.0])
    assert mean == 2.0
    assert interval == pytest.approx([2 - 2.48414, 2 + 2.48414], abs=1e-4)
    assert mean_ci95([5.0]) == (5.0, None)
    assert mean_ci95([5.0, 5.0]) == (5.0, [5.0, 5.0])


def test_the_gap_is_between_greedy_search_and_the_best_known():
    assert rows().best_known("gpt2") == (10.0, "chains")
    assert [rows().gap_closed("gpt2", percent) for percent in (6.0, 8.0, 10.0)] == [0.0, 0.5, 1.0]
    assert rows().gap_closed("vit", 6.05) is None, "a gap of 0.05 points"


def test_figures_are_means_over_seeds():
    found = rows().figures("gpt2", "rlflow", (100, 500))
    assert (found["improvement_percent_100"], found["improvement_percent_500"]) == (7.0, 8.5)
    assert found["improvement_percent_500_ci95"] == pytest.approx([8.5 - 6.3531, 8.5 + 6.3531], abs=1e-3)
    assert found["gap_closed_500"] == 0.625
    assert found["improvement_percent"] == 8.5
    assert (found["evaluations"], found["search_s"], found["seeds"]) == (460.0, 45.0, [0, 1])


def test_what_does_not_draw_is_known_exactly():
    """And one seed of what draws says nothing of others."""
    assert rows().figures("gpt2", "chains", (500,))["improvement_percent_500_ci95"] == [6.5, 6.5]
    assert rows().figures("vit", "rlflow", (500,))["improvement_percent_500_ci95"] is None
    assert rows().figures("vit", "rlflow", (500,))["gap_closed_500"] is None


@pytest.mark.slow
def test_a_cell_is_a_search(tiny_merge: Path):
    """By methods that are on the list of all, and by one that is there for comparison alone."""
    cells = {
        method: Cell(Subject(tiny_merge, "analytic", CostContext()), method, {}, Budget())
        for method in ("greedy", "chains_random")
    }
    found = run_cells(cells)
    assert list(found) == ["greedy", "chains_random"]
    greedy = found["greedy"]
    assert greedy["improvement_percent"] == greedy["milestones"][-1][3] > 10
    assert greedy["milestones"][0][::3] == [0, 0.0]
    assert found["chains_random"]["improvement_percent"] >= greedy["improvement_percent"]
