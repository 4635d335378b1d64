"""What is told of rewards, whichever of them is learned best by."""

from collections.abc import Callable
from typing import Any

import pytest
from support.papers import method, reward_study, variant

FIGURE_5, MEASURED = "RLFlow, Figure 5", "RLFlow, section 3.1.4"


def test_another_best_alpha_than_the_papers_is_said(everything: dict[str, Any], section: Callable[[str], str]):
    """With whether the intervals of both meet."""
    rewards = everything["rewards"]["bert"]
    assert "at alpha = 0.8, which is the paper's 0.8" in section(FIGURE_5)
    rewards["alpha 1.0"] = variant(improvement_percent=9.0)
    assert "at alpha = 1.0, where the paper has 0.8; the intervals of both are apart" in section(FIGURE_5)
    rewards["alpha 1.0"] = variant(improvement_percent=5.6)
    assert "the intervals of both overlap" in section(FIGURE_5)


def test_rewards_that_cannot_be_told_from_the_best_are_named(everything: dict[str, Any], section: Callable[[str], str]):
    """R1 saves 5.0 to 6.0 %, the others 4.5 to 5.5, and then one of them 1.5 to 2.5."""
    assert "R1 has the largest median of the five; its interval meets those of R2, R3, R4, R5." in section(FIGURE_5)
    everything["rewards"]["bert"]["R2"] = method(2.0)
    assert "meets those of R3, R4, R5." in section(FIGURE_5)


def test_how_soon_a_reward_is_learned_is_half_way_to_its_best_return(section: Callable[[str], str]):
    """Returns 1, 2, 4 and 2, 3, 5: above half way after the third update of both."""
    assert "| R1 | 0.8 / 0.2 | 5.50 [5.00, 6.00] | 3 | 48.7 |" in section(FIGURE_5)


@pytest.mark.parametrize(
    ("ratio", "said"),
    [
        (1.3, "faster by measured at every step, slower by none, and cannot be told apart by measured at the end"),
        (1.1, "faster by none, slower by measured at every step, and cannot be told apart by measured at the end"),
        (
            1.2,
            "faster by none, slower by none, and cannot be told apart by measured at every step, measured at the end",
        ),
    ],
)
def test_a_measured_reward_is_compared_with_the_estimate(
    everything: dict[str, Any], section: Callable[[str], str], ratio: float, said: str
):
    """By intervals of .02 to both sides: the estimate's begin at 1.18 and end at 1.22."""
    everything["reward_study"] = reward_study(every_step=ratio)
    assert said in " ".join(section(MEASURED).split())


def test_what_measuring_costs_is_told(section: Callable[[str], str]):
    """Ten times the seconds, five graphs that were timed, four fifths of the measured rewards noise."""
    told = section(MEASURED)
    assert "| measured at every step | 1.300 [1.280, 1.320] | 1.300 [1.280, 1.320] | 100 [90, 110] | 5 | 80 |" in told
    assert "| estimated | 1.200 [1.180, 1.220] | 1.200 [1.180, 1.220] | 10 [9, 11] | 0 |  |" in told
    assert "takes 10 to 10 times as long" in " ".join(told.split())
