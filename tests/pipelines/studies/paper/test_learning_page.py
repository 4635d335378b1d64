"""How agents learn, as the page tells it: whichever way the figures fall."""

from collections.abc import Callable
from typing import Any

import pytest
from support.papers import document, variant

TABLE_3 = "RLFlow, Table 3"


@pytest.mark.parametrize(("dreamt", "verdict"), [(1.1, "within"), (2.0, "beyond")])
def test_a_dream_that_is_away_from_reality_is_told(
    everything: dict[str, Any], section: Callable[[str], str], dreamt: float, verdict: str
):
    taus = {f"tau {tau}": variant(dream_percent=dreamt, real_percent=1.0) for tau in (0.5, 1, 1.5)}
    everything["temperatures"] = document(bert=taus | {"tau 3": variant(dream_percent=9.0, real_percent=1.0)})
    told = section(TABLE_3)
    assert f"({verdict} the 15 %" in told, "the hottest dream is outside of what was asked for"
    assert "| 3 | 9.00 [8.50, 9.50] | 1.00 [0.50, 1.50] |  |  | 10.38 | 51.32 |" in told
    everything["temperatures"]["bert"]["pooled tau 1"] = variant(dream_percent=3.0, real_percent=1.0)
    assert "that of one vector by at most 200 %" in " ".join(section(TABLE_3).split())


def test_the_strongest_correlation_is_named(everything: dict[str, Any], section: Callable[[str], str]):
    walk = everything["graphs"]["bert"]["walk"]["figures"]
    walk["correlation_runtime_ms_launches"] = {"value": 0.9, "ci95": [0.8, 1.0], "values": [0.8, 1.0]}
    assert "the strongest is that with launches" in section("RLFlow, section 4.3")
    del walk["correlation_runtime_ms_launches"]
    assert "launches 0" not in section("RLFlow, section 4.3"), "what does not vary has no correlation"


def test_unseen_states_are_compared_with_greedy_search(everything: dict[str, Any], section: Callable[[str], str]):
    assert "in 0 of 1 cases" in section("RLFlow, question 2")
    everything["agents"]["bert"]["unseen 16"] = variant(improvement_percent=4.0, greedy_percent=4.0)
    assert "in 1 of 2 cases" in section("RLFlow, question 2")
