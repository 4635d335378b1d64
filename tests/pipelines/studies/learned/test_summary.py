"""What rows say together: shares of gaps by seed, points beyond backtracking, and when training has paid for itself."""

import numpy as np
import pytest
from experiment.documents.curves import TrainingCurves
from studies.learned.cells import Key, Row, Rows
from studies.learned.documents import Summary
from studies.learned.summary import curves, curves_by_prices, summary
from support.learned_rows import ROWS, row

from rlflow import schemas

BERT: dict[Key, Row] = {
    ("bert", "greedy", 0): row((0, 0.0), (90, 2.0)),
    ("bert", "backtracking", 0): row((0, 0.0), (90, 2.0), (5000, 2.5)),
    ("bert", "equality_saturation", 0): row((0, 0.0), (90, 2.0), (800, 4.0)),
    ("bert", "rlflow", 0): row((0, 0.0), (90, 2.0), (200, 4.0), training_s=350.0, training_rewrites=1201),
    ("bert", "rlflow", 1): row((0, 0.0), (90, 2.0), (200, 3.0), training_s=350.0, training_rewrites=1201),
}


def summed(more: dict[Key, Row] | None = None) -> dict:
    document = summary(Rows({**ROWS, **BERT, **(more or {})}, frozenset({"rlflow"})), (100, 500), 10_000, ["bert"])
    schemas.validate(Summary, document)
    return document


def test_shares_are_averaged_over_graphs_first():
    """Seed 0 closes 0.75 of gpt2's gap and all of bert's, seed 1 half of both; vit has none."""
    share = summed()["gap_closed"]["500"]["rlflow"]
    assert (share["graphs"], share["seeds"]) == (2, [0, 1])
    assert share["share"] == pytest.approx((0.875 + 0.5) / 2, abs=1e-4)
    arm = 12.7062 * abs(0.875 - 0.5) / 2
    assert share["share_ci95"] == pytest.approx([0.6875 - arm, 0.6875 + arm], abs=1e-3)


def test_graphs_count_on_which_all_seeds_have_searched():
    """Of a study that was cut short: one seed on bert, two on gpt2."""
    fewer = {key: found for key, found in {**ROWS, **BERT}.items() if key != ("bert", "rlflow", 1)}
    document = summary(Rows(fewer, frozenset({"rlflow"})), (500,), 10_000, [])
    assert summed()["compared"] == ["gpt2", "bert"]
    assert document["compared"] == ["gpt2"]
    share = document["gap_closed"]["500"]["rlflow"]
    assert (share["seeds"], share["share"], share["graphs"]) == ([0, 1], 0.625, 1)


def test_what_does_not_draw_closes_its_share_exactly():
    shares = summed()["gap_closed"]["500"]
    assert shares["greedy"]["share_ci95"] == [0.0, 0.0]
    assert shares["chains"]["share_ci95"] == [shares["chains"]["share"]] * 2
    assert shares["chains"]["graphs"] == 1


def test_backtracking_has_its_long_run():
    """2.5 after 5000 evaluations, of which rlflow has 500."""
    beyond = summed()["beyond_backtracking"]
    assert list(beyond) == ["bert"]
    assert beyond["bert"]["rlflow"]["points"] == 1.0


def test_the_share_of_the_best_has_greedy_search_s_part_in_it():
    assert summed()["share_of_best"] == {"bert": {"rlflow": 3.5 / 4.0}}


def test_a_policy_that_knows_the_family_stands_beside_the_one_that_does_not():
    deep = {("bert", "depth_transfer", seed): row((0, 0.0), (90, 2.0), (300, 4.0)) for seed in (0, 1)}
    document = summed(deep)
    assert document["beyond_backtracking"]["bert"]["depth_transfer"] == {"points": 1.5, "points_ci95": [1.5, 1.5]}
    assert document["share_of_best"]["bert"] == {"rlflow": 0.875, "depth_transfer": 1.0}


def test_who_ends_below_greedy_search_is_named():
    assert summed()["below_greedy"] == []
    assert summed({("bert", "rlflow", 2): row((0, 0.0), (90, 1.9))})["below_greedy"] == ["bert"]


def test_training_pays_for_itself_by_what_is_saved_on_each_graph():
    """All seeds reach 3 % after 200 evaluations and 20 s, equality saturation after 800 and 80 s; nobody else does."""
    training = summed()["training"]["bert"]
    assert training["saving_percent"] == pytest.approx(2.995)
    assert training["evaluations"] == {
        "own": 200.0,
        "against": "equality_saturation",
        "others": 800.0,
        "graphs": 3,
    }
    assert training["seconds"]["graphs"] == 6


def test_what_nobody_else_reaches_and_what_others_reach_sooner_never_pays():
    alone = summed({("bert", "equality_saturation", 0): row((0, 0.0), (90, 2.0), (800, 2.1))})
    assert alone["training"]["bert"]["seconds"]["against"] is None
    assert alone["training"]["bert"]["seconds"]["graphs"] is None
    sooner = summed({("bert", "equality_saturation", 0): row((0, 0.0), (90, 2.0), (100, 4.0))})
    assert sooner["training"]["bert"]["evaluations"] == {
        "own": 200.0,
        "against": "equality_saturation",
        "others": 100.0,
        "graphs": None,
    }


def test_curves_have_bands_where_seeds_differ_and_end_with_the_evaluations():
    most = {"greedy": 500, "chains": 1000, "rlflow": 500}
    document = curves(Rows(ROWS, frozenset({"rlflow"})), (0, 100, 500, 1000), most)
    schemas.validate(TrainingCurves, document)
    drawn = document["gpt2"]
    assert drawn["rlflow"]["step"] == [0, 100, 500]
    assert drawn["rlflow"]["value"] == [6.0, 7.0, 8.5]
    assert drawn["chains"]["value"] == [0.0, 6.5, 6.5, 10.0]
    assert set(drawn) == {"greedy", "chains", "rlflow", "rlflow, low", "rlflow, high"}
    ends = np.array([drawn[f"rlflow, {end}"]["value"] for end in ("low", "high")])
    assert ends.mean(axis=0) == pytest.approx(drawn["rlflow"]["value"])
    assert set(document["vit"]) == {"greedy", "rlflow"}, "one seed has no band"


def test_curves_by_prices_begin_with_none_and_are_of_measured_graphs_alone():
    """Of a search whose third price is the first that pays; all others of the rows measured nothing."""
    assert curves_by_prices(Rows(ROWS, frozenset({"rlflow"})), (0, 10)) == {}
    measured = {
        ("bert", "greedy", 0): row((0, 0.0), (90, 2.0))
        | {"prices_measured": 5, "milestones": [[0, 2, 0.1, 0.0], [90, 3, 9.0, 2.0]]},
        ("bert", "chains", 0): row((0, 0.0), (90, 4.0))
        | {"prices_measured": 40, "milestones": [[0, 2, 0.1, 0.0], [90, 40, 9.0, 4.0]]},
    }
    document = curves_by_prices(Rows({**ROWS, **measured}, frozenset({"rlflow"})), (0, 2, 3, 40))
    schemas.validate(TrainingCurves, document)
    assert list(document) == ["bert"]
    assert document["bert"]["greedy"]["value"] == [0.0, 0.0, 2.0, 2.0]
    assert document["bert"]["chains"]["value"] == [0.0, 0.0, 0.0, 4.0]
    assert document["bert"]["greedy"]["step_name"] == "prices measured"
