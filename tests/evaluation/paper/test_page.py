"""The page of results: what it says follows from the figures, whichever way they fall; and it is the committed one."""

from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf
from support.papers import agents, document, results, variant

from rlflow import schemas
from rlflow.evaluation.paper.page import PARTS, page


@pytest.fixture(scope="module")
def published(repository: Path) -> Any:
    return OmegaConf.to_container(OmegaConf.load(repository / "conf/published.yaml"))


@pytest.fixture
def everything(repository: Path) -> dict[str, Any]:
    return results(repository)


def section(text: str, title: str) -> str:
    """From a heading to the next."""
    return text.split(f"## {title}", 1)[1].split("\n## ", 1)[0]


def test_each_part_has_a_section(everything: dict[str, Any], published: Any):
    text = page(everything, published)
    for title in ("Table 1", "section 4.3", "Figure 5", "Figure 6", "Figure 7", "Figures 8", "Figure 10", "Table 3"):
        assert f"## RLFlow, {title}" in text
    assert text.count("\n## X-RLflow") == 4
    assert "Not run yet" not in text
    assert all(len(line) <= 120 for line in text.splitlines() if not line.startswith("|"))


def test_a_part_that_was_not_run_is_said_to_be_missing(everything: dict[str, Any], published: Any):
    """And nothing is said of it."""
    for part in ("rewards", "shapes"):
        everything.pop(part)
    text = page(everything, published)
    assert "Not run yet at any size: rewards, shapes." in text
    assert "Figure 5" not in text
    assert "one policy over tensor shapes\n" not in text


def test_numbers_stand_with_their_intervals_beside_the_papers(everything: dict[str, Any], published: Any):
    table = section(page(everything, published), "RLFlow, Figure 6 and Table 2")
    assert "| bert | 4.00 | 5.00 | 5.50 [5.00, 6.00] | 3.00 [2.50, 3.50] | 2.00 [1.50, 2.50] |" in table
    assert f"| bert | {4.41 / 3.06:.2f} | {4.41 / 3.01:.2f} | {4.41 / 2.98:.2f} |" in table


@pytest.mark.parametrize(("rlflow", "said"), [(6.0, "on bert and less on none"), (4.0, "on none and less on bert")])
def test_a_win_and_a_loss_are_both_said(everything: dict[str, Any], published: Any, rlflow: float, said: str):
    everything["agents"] = agents(rlflow)
    assert f"RLFlow saves more than TASO's search {said}" in page(everything, published)


@pytest.mark.parametrize(("dreamt", "verdict"), [(1.1, "within"), (2.0, "beyond")])
def test_a_dream_that_is_away_from_reality_is_told(
    everything: dict[str, Any], published: Any, dreamt: float, verdict: str
):
    taus = {f"tau {tau}": variant(dream_percent=dreamt, real_percent=1.0) for tau in (0.5, 1, 1.5)}
    everything["temperatures"] = document(bert=taus | {"tau 3": variant(dream_percent=9.0, real_percent=1.0)})
    told = section(page(everything, published), "RLFlow, Table 3")
    assert f"({verdict} the 15 %" in told, "the hottest dream is outside of what was asked for"
    assert "| 3 | 9.00 [8.50, 9.50] | 1.00 [0.50, 1.50] |  |  | 10.38 | 51.32 |" in told
    everything["temperatures"]["bert"]["pooled tau 1"] = variant(dream_percent=3.0, real_percent=1.0)
    assert "that of one vector by at most 200 %" in page(everything, published)


def test_another_best_alpha_than_the_papers_is_said(everything: dict[str, Any], published: Any):
    """With whether the intervals of both meet."""
    rewards = everything["rewards"]["bert"]
    assert "at alpha = 0.8, which is the paper's 0.8" in page(everything, published)
    rewards["alpha 1.0"] = variant(improvement_percent=9.0)
    assert "at alpha = 1.0, where the paper has 0.8; the intervals of both are apart" in page(everything, published)
    rewards["alpha 1.0"] = variant(improvement_percent=5.6)
    assert "the intervals of both overlap" in page(everything, published)


def test_documents_of_this_test_follow_the_schema(everything: dict[str, Any]):
    for part in PARTS:
        schemas.validate("paper", everything[part])
