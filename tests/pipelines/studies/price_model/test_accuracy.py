"""Accuracy of prices: errors, signs and ranks counted by hand."""

from dataclasses import replace

import pytest
from studies.price_model.accuracy import Change, Errors, errors, figures, pooled

from rlflow.cost.region_record import GraphRecord, RegionTime

TIMES = {"a": 1.0, "b": 2.0, "c": 0.5, "d": 0.01}


def whole(variant: str = "original", ms: float = 0.0, sigma_ms: float = 0.0, **regions: int) -> GraphRecord:
    times = {signature: RegionTime(count, TIMES[signature]) for signature, count in regions.items()}
    return GraphRecord(variant, "bert", "small", "epyc", 1.0, times, ms, sigma_ms, reorders_ms=0.0, views=0)


def compared(prices: dict[str, float], *graphs: GraphRecord, view_ms: float = 0.0) -> Errors:
    return errors(graphs, lambda signature, _: prices[signature], lambda _: view_ms)


def test_the_errors_of_regions_are_relative_and_short_regions_are_left_out() -> None:
    """A region that two graphs have counts once."""
    graphs = (whole(a=1, b=1, c=3, d=1), whole("walk", a=2))
    assert compared({"a": 1.1, "b": 1.0, "c": 0.5, "d": 5.0}, *graphs).regions == pytest.approx([0.1, 0.5, 0.0])


def test_the_error_of_a_graph_is_that_of_its_run_end_to_end() -> None:
    """Two at 1.5 ms, one at 2, a view and reorders, where the run took 4 ms."""
    graph = GraphRecord(
        "original", "bert", "small", "epyc", 1.0, {"a": RegionTime(2, 1.0), "b": RegionTime(1, 2.0)}, 4.0, 0.0, 0.25, 1
    )
    assert compared({**TIMES, "a": 1.5}, graph, view_ms=0.75).graphs == pytest.approx([6.0 / 4.0 - 1.0])


def test_a_graph_of_microseconds_has_no_error() -> None:
    found = compared(TIMES, whole(a=2), whole("walk", ms=0.01, d=1))
    assert (found.graphs, found.changes) == ([], [])
    assert found.regions


def test_a_change_is_a_share_of_the_original() -> None:
    """The noise is 1 %, of 4 and 3 ms: that of both together, although two sessions of one agreed by chance."""
    errors_of = 0.01 * 2**0.5
    graphs = (whole(ms=4.0, sigma_ms=4.0 * errors_of, a=4), whole("greedy", ms=3.0, sigma_ms=0.0, a=1, b=1))
    (change,) = compared(TIMES, *graphs).changes
    assert change == pytest.approx((-0.25, -0.25, 0.05 / 4.0, -0.25))


def test_what_both_graphs_have_is_the_control_of_a_change() -> None:
    """The machine was a tenth slower when the variant ran: that is no change."""
    before = whole(ms=4.0, a=2, b=1)
    after = replace(whole("greedy", ms=3.3), regions={"a": RegionTime(3, 1.1)})
    (change,) = compared(TIMES, before, after).changes
    assert change == pytest.approx((3.3 / 4.0 - 1.0, -0.25, 0.0, (1.1 - 2.0) / 4.0))


def test_a_variant_is_compared_with_the_original_of_its_round() -> None:
    """In the third round all took a quarter less, for no work of theirs; the second round kept no original."""
    graphs = (
        *(whole(ms=4.0, a=4), whole("original, round 3", ms=3.0, a=4)),
        *(whole(f"greedy, round {number}", ms=ms, a=3) for number, ms in ((1, 3.2), (2, 3.0), (3, 2.4))),
    )
    assert [change.real for change in compared(TIMES, *graphs).changes] == pytest.approx([-0.2, -0.25, -0.2])


def test_signs_count_beyond_twice_the_noise() -> None:
    changes = [(-0.1, -0.2, 0.01), (-0.1, 0.2, 0.04), (0.1, 0.0, 0.06), (-0.2, -0.1, 0.01)]
    found = figures(Errors(changes=[Change(*change, changed=0.1) for change in changes]))
    assert found["changes"] == {"sign": pytest.approx(2 / 3), "majority_sign": 1.0, "cases": 3}
    assert found["changed_regions"] == {"sign": pytest.approx(1 / 3), "majority_sign": 1.0, "cases": 3}


def test_variants_of_one_graph_are_put_in_order() -> None:
    """Five of them, of which prices exchange two; fewer are no order, nor are equal ones."""
    graphs = [whole(ms=1.0, a=1)]
    graphs += [whole(f"walk {n}", ms=1.0 + n, a=n + 1) for n in (1, 2, 3)]
    graphs.append(whole("greedy", ms=5.0, b=3))
    (rank,) = compared({**TIMES, "b": 1.1}, *graphs).ranks
    assert rank == pytest.approx(0.9)
    assert compared({**TIMES, "b": 1.1}, *graphs[:4]).ranks == []
    noisy = [whole(graph.variant, graph.ms, 5.0, **{s: t.times for s, t in graph.regions.items()}) for graph in graphs]
    assert compared({**TIMES, "b": 1.1}, *noisy).ranks == []


def test_errors_are_pooled() -> None:
    one, other = Errors(regions=[0.1], ranks=[0.5]), Errors(regions=[0.3], graphs=[0.2])
    together = pooled([one, other])
    assert together == Errors(regions=[0.1, 0.3], graphs=[0.2], ranks=[0.5])
    found = figures(together)
    assert found["regions"] == {"median": pytest.approx(0.2), "p90": pytest.approx(0.28), "cases": 2}
    assert found["ranks"] == {"median": 0.5, "cases": 1}
    assert "changes" not in found
