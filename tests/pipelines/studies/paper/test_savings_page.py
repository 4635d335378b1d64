"""What agents save, as the page tells it: wins and losses alike."""

from collections.abc import Callable
from typing import Any

import pytest
from support.papers import agents, document, variant

FIGURE_6 = "RLFlow, Figure 6 and Table 2"


def test_numbers_stand_with_their_intervals_beside_the_papers(section: Callable[[str], str]):
    table = section(FIGURE_6)
    assert "| bert | 4.00 | 5.00 | 6.00 | 5.50 [5.00, 6.00] | 3.00 [2.50, 3.50] | 2.00 [1.50, 2.50] |" in table
    assert f"| bert | {4.41 / 3.06:.2f} | {4.41 / 3.01:.2f} | {4.41 / 2.98:.2f} |" in table


@pytest.mark.parametrize(("rlflow", "said"), [(6.0, "on bert and less on none"), (4.0, "on none and less on bert")])
def test_a_win_and_a_loss_are_both_said(
    everything: dict[str, Any], section: Callable[[str], str], rlflow: float, said: str
):
    everything["agents"] = agents(rlflow)
    assert f"RLFlow saves more than TASO's search {said}" in section(FIGURE_6)


def test_the_controller_is_compared_with_the_model_free_agent_by_what_both_took(section: Callable[[str], str]):
    assert "saves more than the model-free agent on bert and less on none, with 100 to 100 %" in " ".join(
        section(FIGURE_6).split()
    )


@pytest.mark.parametrize(
    ("ratio", "low", "high", "said"),
    [(1.1, 1.05, 1.15, "faster beyond noise on 1 and slower on 0"), (1.01, 1.005, 1.02, "on 0 and slower on 0")],
)
def test_a_difference_within_noise_counts_as_none(
    everything: dict[str, Any], section: Callable[[str], str], ratio: float, low: float, high: float, said: str
):
    timed = {
        f"latency_ratio_{setting}{end}": value
        for setting in ("as_written", "deployed")
        for end, value in (("", ratio), ("_low", low), ("_high", high))
    }
    everything["latency"] = document(bert={agent: variant(1, **timed) for agent in ("original", "rlflow")})
    assert said in " ".join(section("RLFlow, Figure 6, measured").split())


def test_pytorch_is_slower_only_where_its_interval_says_so(everything: dict[str, Any], section: Callable[[str], str]):
    """The interval of the made-up ratio ends above 1, then below."""
    title = "RLFlow, Figure 6: PyTorch beside ONNX Runtime"
    assert "slower than ONNX Runtime as deployed on none: the latter takes 1.10 to 1.10" in " ".join(
        section(title).split()
    )
    pytorch = everything["frameworks"]["bert"]["pytorch"]["figures"]
    pytorch["latency_ratio_deployed"] |= {"value": 0.5}
    pytorch["latency_ratio_deployed_high"] |= {"value": 0.6}
    assert "as deployed on bert: the latter takes 0.50" in " ".join(section(title).split())


def test_training_is_counted_beside_the_time_without(section: Callable[[str], str]):
    """The paper leaves it out; here both searches take ten seconds, as the training does."""
    assert "| bert | 10.0 | 10.0 [9.5, 10.5] | 10 [10, 10] | 10 [10, 10] | 10 [10, 10] | 10.8 | 6.6 |" in section(
        "RLFlow, Figure 7"
    )


def test_the_rule_of_most_steps_is_told_by_seed(section: Callable[[str], str]):
    """Three times by two seeds."""
    assert "fuse is applied 2 times on bert by each seed" in section("RLFlow, Figure 10")


def test_a_search_that_needs_its_whole_budget_is_named(everything: dict[str, Any], section: Callable[[str], str]):
    """Half of it in the last nine tenths of its budget, or all of it before."""
    rows = {"100": 1.0, "1000": 1.0, "3000": 1.0, "10000": 2.0}
    at = {most: {"improvement_percent": saved} for most, saved in rows.items()}
    everything["headroom"] = {"bert": {"analytic": {"backtracking": {"at": at}}}}
    assert "ends with on bert." in " ".join(section("TASO's search").split())
    at["1000"]["improvement_percent"] = 2.0
    assert "ends with on none." in " ".join(section("TASO's search").split())
