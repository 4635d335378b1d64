"""The study of timing errors: what is counted, on comparisons and drawn times whose answers are known."""

import numpy as np
import psutil
import pytest
from studies.busy_loops import beside_busy_loops
from studies.timing_study.trials import (
    NOISES,
    Trial,
    figures,
    first_decisions,
    simulated,
    trial,
)

from rlflow import zoo
from rlflow.optimise.gate import GateConfig
from rlflow.runtime.timing.sequential import SequentialTest, decisions


def test_the_figures_of_a_group_are_shares_and_means() -> None:
    trials = [
        Trial("slower", 0.97, 10, 1, 0.5, "slower", "undecided"),
        Trial("slower", 0.96, 20, 0, 1.5, "undecided", "slower"),
        Trial("undecided", 0.99, 30, 2, 1.0, "undecided", "faster"),
        Trial("same", 1.0, 40, 0, 1.0, "same", "undecided"),
    ]
    assert figures(trials) == {
        "faster_share": 0.0,
        "slower_share": 0.5,
        "same_share": 0.25,
        "proven": {"faster_share": 0.0, "slower_share": 0.25, "same_share": 0.25},
        "fixed_rounds": {"faster_share": 0.25, "slower_share": 0.25, "same_share": 0.0},
        "ratio": pytest.approx(0.98),
        "mean_rounds": 25.0,
        "mean_rounds_retaken": 0.75,
        "mean_s": 1.0,
        "cases": 4,
    }


def test_a_case_stops_with_its_first_decision() -> None:
    said = np.array(
        [["undecided", "faster", "slower"], ["undecided", "undecided", "undecided"], ["same", "faster", "faster"]]
    )
    decided, rounds = first_decisions(said)
    assert decided.tolist() == ["faster", "undecided", "same"]
    assert rounds.tolist() == [2, 3, 1]


@pytest.mark.parametrize("kind", NOISES)
def test_drawn_times_favour_no_model(kind: str) -> None:
    """Each of the four is the shortest in a quarter of 6,000 rounds, within four standard errors of 0.6 %."""
    logs = NOISES[kind](0.02)(np.random.default_rng(0), (60, 100, 4))
    assert np.bincount(logs.argmin(axis=-1).ravel()) / 6000 == pytest.approx([1 / 4] * 4, abs=0.025)


def test_a_large_slowdown_is_found_in_the_fewest_rounds() -> None:
    """Without noise to speak of, four rounds win enough (test_sequential.py)."""
    found = simulated(NOISES["quiet"](1e-4), 0.5, decisions, rounds=20, cases=10, seed=0)
    assert found == {"faster_share": 0.0, "slower_share": 1.0, "same_share": 0.0, "mean_rounds": 4.0, "cases": 10}
    again = simulated(NOISES["drift"](0.02), 0.03, decisions, rounds=20, cases=10, seed=0)
    assert again == simulated(NOISES["drift"](0.02), 0.03, decisions, rounds=20, cases=10, seed=0)


def test_busy_loops_end_with_what_they_are_beside() -> None:
    before = set(psutil.Process().children())
    with beside_busy_loops(2):
        loops = set(psutil.Process().children()) - before
        assert len(loops) == 2
    assert not any(loop.is_running() for loop in loops)


@pytest.mark.study
def test_a_trial_of_twenty_times_the_work() -> None:
    """So much more that none of the rules can miss it on any machine."""
    little, much = (zoo.build("mlp", layers=layers, inputs=256, hidden=256, outputs=256) for layers in (1, 20))
    found = trial(little, much, "as_written", GateConfig(runs_per_round=2, time_s=60.0), SequentialTest())
    assert (found.decision, found.proven_decision, found.fixed_decision) == ("slower", "slower", "slower")
    assert found.ratio < 0.5
    assert found.rounds >= 2
    assert found.wall_s > 0
