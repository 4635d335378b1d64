"""Accuracy of prices: errors and signs counted by hand, and no region of a family among those learned from."""

import math

import pytest
from studies.price_model.accuracy import Change, Errors, errors, figures, met_in, pooled, taken, with_measured

from rlflow.cost.predicted.noise import Noise
from rlflow.cost.region_record import GraphRecord, RewriteRecord

MEASURED = {"a": 1.0, "b": 2.0, "c": 0.5, "d": 0.01}
NOISE = Noise(share=0.0, us=10.0)


def rewrite(before: str, after: str, views: int = 0, family: str = "bert") -> RewriteRecord:
    return RewriteRecord(tuple(before), tuple(after), views, "rule", family, "")


def whole(family: str = "bert", views: int = 0, **regions: int) -> GraphRecord:
    return GraphRecord(regions, views, "original", family, "")


def compared(predicted, rewrites=(), graphs=(), view_ms=0.0) -> Errors:
    return errors(MEASURED, predicted, rewrites, graphs, view_ms, NOISE)


def test_the_errors_of_regions_are_relative_and_short_regions_are_left_out() -> None:
    found = compared({"a": 1.1, "b": 1.0, "c": 0.5, "d": 5.0})
    assert found.regions == pytest.approx([0.1, 0.5, 0.0])


def test_the_error_of_a_graph_is_that_of_its_sum() -> None:
    found = compared({**MEASURED, "a": 1.5}, graphs=[whole(a=2, b=1, views=4)], view_ms=0.25)
    assert found.graphs == pytest.approx([1.0 / 5.0])


def test_a_change_is_after_less_before_and_what_stays_cancels() -> None:
    found = compared({"a": 1.0, "b": 2.5, "c": 1.0, "d": 0.01}, [rewrite("abb", "acb", views=1)], view_ms=0.1)
    (change,) = found.changes
    assert (change.real_ms, change.told_ms) == pytest.approx((0.5 - 2.0 + 0.1, 1.0 - 2.5 + 0.1))


def test_equal_changes_count_once() -> None:
    same = [rewrite("a", "b"), rewrite("ac", "bc"), rewrite("a", "b", family="vit")]
    assert len(compared(MEASURED, same).changes) == 1
    assert len(compared(MEASURED, [*same, rewrite("b", "a")]).changes) == 2


def test_a_change_within_twice_its_noise_is_left_out() -> None:
    """Ten microseconds a region: 14 for two regions, of which 28 are needed."""
    prices = {"a": 1.0, "b": 1.0 + 0.029, "c": 1.0 + 0.028}
    found = errors(prices, prices, [rewrite("a", "b"), rewrite("a", "c")], [], 0.0, NOISE)
    assert len(found.changes) == 2
    assert 0.028 < 2 * math.hypot(0.01, 0.01) < 0.029
    assert figures(found)["rewrites"]["cases"] == 1


def test_equal_regions_are_wrong_together() -> None:
    """Three of one kind err three times as much as one, and not by the root of three."""
    prices = {"a": 1.0, "b": 1.0, "c": 0.05}
    (change,) = errors(prices, prices, [rewrite("", "ccc")], [], 0.0, NOISE).changes
    assert change.noise_ms == change.told_noise_ms == pytest.approx(3 * 0.01)


def test_what_was_not_measured_in_full_is_left_out() -> None:
    found = compared(MEASURED, [rewrite("a", "x")], [whole(a=1, x=1)])
    assert (found.graphs, found.changes) == ([], [])


def changed(real_ms: float, told_ms: float) -> Change:
    """A change whose noise is 0.1 ms."""
    return Change(real_ms, told_ms, 0.1, 0.1)


def test_rewrites_that_are_taken_by_hand() -> None:
    """Ten milliseconds can be saved: by the first two, of which the second is only taken where any change counts."""
    changes = [changed(-9.0, -5.0), changed(-1.0, -0.15), changed(0.5, -1.0), changed(-0.0, 2.0)]
    assert taken(changes, 0.0) == {"saved": pytest.approx(0.95), "dearer": pytest.approx(1 / 3), "cases": 3}
    assert taken(changes, 2.0) == {"saved": pytest.approx(0.85), "dearer": pytest.approx(1 / 2), "cases": 2}
    assert taken([], 0.0) == {"saved": 0.0, "dearer": 0.0, "cases": 0}


def test_figures_by_hand() -> None:
    found = Errors([0.1, 0.2, 0.3], [], [changed(1, 2), changed(2, 3), changed(3, -1), changed(-4, -5)])
    content = figures(found)
    assert content["regions"] == {"median": pytest.approx(0.2), "p90": pytest.approx(0.28), "cases": 3}
    assert "graphs" not in content
    assert content["rewrites"]["sign"] == content["rewrites"]["majority_sign"] == 0.75
    assert content["rewrites"]["cases"] == 4
    assert content["rewrites"]["spearman"] == pytest.approx(
        0.4
    )  # ranks 2 3 4 1 and 3 4 2 1: 1 - 6 (1 + 1 + 4 + 0) / 60


def test_a_single_change_has_no_rank() -> None:
    assert figures(Errors(changes=[changed(1, 1)]))["rewrites"]["spearman"] == 0.0


def test_errors_are_pooled_and_not_averaged() -> None:
    total = pooled([Errors([0.1], [0.2], [changed(1, 1)]), Errors([0.3, 0.4])])
    assert total == Errors([0.1, 0.3, 0.4], [0.2], [changed(1, 1)])


def test_a_family_has_all_regions_of_its_graphs_and_rewrites() -> None:
    """BERT's regions that ViT met first would tell what BERT takes; "x" was never measured."""
    families = {"a": "bert", "b": "vit", "c": "vit", "d": "vit"}
    rewrites = [rewrite("a", "b"), rewrite("d", "d", family="vit")]
    assert met_in("bert", families, rewrites, [whole(c=1, x=1)]) == {"a", "b", "c"}


def test_measured_prices_take_the_place_of_some() -> None:
    assert with_measured({"a": 9.0, "b": 9.0}, MEASURED, {"b"}) == {"a": 9.0, "b": 2.0}
