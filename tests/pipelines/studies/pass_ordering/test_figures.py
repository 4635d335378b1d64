"""The figures of pass ordering, by hand."""

import pytest
from studies.pass_ordering.figures import count_ratio_percent, over_percent, summary
from studies.pass_ordering.rows import Outcome, Row


def test_the_papers_measure_compares_what_was_removed() -> None:
    """20 and 10 removed where the default removes 10 and 10: ratios 2 and 1, a geometric mean of 2 ** .5."""
    assert over_percent([100, 100], [80, 90], [90, 90]) == pytest.approx(100 * (2**0.5 - 1))
    assert over_percent([100], [90], [90]) == 0.0


def test_graphs_on_which_the_reference_removes_nothing_are_left_out() -> None:
    assert over_percent([100, 50], [80, 10], [90, 50]) == pytest.approx(100.0)
    assert over_percent([50], [10], [60]) is None


def test_who_removes_nothing_somewhere_is_at_minus_100() -> None:
    assert over_percent([100, 100], [100, 50], [90, 90]) == -100.0
    assert over_percent([100], [120], [90]) == -100.0


def test_the_count_ratio_compares_what_is_left() -> None:
    assert count_ratio_percent([50, 100], [100, 100]) == pytest.approx(100 * (2**0.5 - 1))


def test_figures_of_entrants_over_seeds_and_families() -> None:
    def row(**left: int) -> Row:
        return Row({source: Outcome(operations, tried=4) for source, operations in left.items()})

    rows = {
        "start": {0: row(a=100, b=50)},
        "default": {0: row(a=90, b=50)},
        "fixpoint": {0: row(a=80, b=40)},
        "agent": {0: row(a=80, b=40), 1: row(a=70, b=40), 2: row(a=60, b=40)},
    }
    times = {"a": {"default": 2.0, "agent": 1.0}, "b": {"default": 2.0, "agent": 2.0}}
    found = summary(rows, times, {"x": ["a"], "y": ["b"]})
    assert set(found) == {"default", "fixpoint", "agent", "best_known"}, "the start is no entrant"
    agent = found["agent"]
    assert agent["over_default_percent"]["values"] == pytest.approx([100.0, 200.0, 300.0])
    assert agent["over_default_percent"]["value"] == pytest.approx(200.0)
    assert (agent["apart"], agent["graphs"], agent["seeds"], agent["wrong_outputs"]) == (1, 2, [0, 1, 2], 0)
    assert agent["run_time_ratio"] == pytest.approx(2**0.5)
    assert found["fixpoint"]["run_time_ratio"] is None, "it was not timed"
    assert agent["families"]["y"]["over_default_percent"] is None
    assert agent["families"]["y"]["fixpoint_count_ratio_percent"]["value"] == pytest.approx(0.0)
    assert found["default"]["fixpoint_count_ratio_percent"]["value"] < 0.0


def test_wrong_outputs_are_counted() -> None:
    rows = {name: {0: Row({"a": Outcome(5)})} for name in ("start", "default", "fixpoint")}
    rows["bad"] = {0: Row({"a": Outcome(1, difference="output 0")}), 1: Row({"a": Outcome(1)})}
    assert summary(rows, {}, {"x": ["a"]})["bad"]["wrong_outputs"] == 1


def test_the_best_known_is_the_fewest_that_compute_the_same() -> None:
    def row(a: Outcome, b: Outcome) -> Row:
        return Row({"a": a, "b": b})

    rows = {name: {0: row(Outcome(80), Outcome(80))} for name in ("start", "default", "fixpoint")}
    rows["wrong"] = {0: row(Outcome(1, difference="output 0"), Outcome(40, tried=3))}
    rows["agent"] = {0: row(Outcome(40, tried=4), Outcome(60)), 1: row(Outcome(50, tried=5), Outcome(70))}
    best = summary(rows, {}, {"x": ["a", "b"]})["best_known"]
    assert best["fixpoint_count_ratio_percent"]["value"] == pytest.approx(100.0), "half of the operations on each"
    assert best["passes_run"]["value"] == (4 + 5 + 3) / 2
    assert best["wrong_outputs"] == 0
