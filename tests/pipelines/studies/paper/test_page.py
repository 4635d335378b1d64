"""The page of results as a whole: what was run is on it, what was not is said to be missing."""

from typing import Any

from studies.paper.documents import Paper
from studies.paper.page import PARTS, page
from studies.reward_study.documents import RewardStudy

from rlflow import schemas


def test_each_part_has_a_section(everything: dict[str, Any], published: Any):
    text = page(everything, published)
    for title in (
        "Table 1",
        "section 4.3",
        "section 3.1.4",
        "Figure 5",
        "Figure 6",
        "Figure 7",
        "Figures 8",
        "Figure 10",
        "Table 3",
    ):
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


def test_a_list_is_broken_between_its_items_alone(everything: dict[str, Any], published: Any):
    """Numbers within an item begin no line."""
    questions = page(everything, published).split("## The paper's five questions\n\n")[1].split("\n## ")[0]
    starts = [line[:2] for line in questions.splitlines() if line[:1].isdigit()]
    assert starts == ["1.", "2.", "3.", "4.", "5."]


def test_documents_of_these_tests_follow_the_schema(everything: dict[str, Any]):
    """Those of every part, or `validate` raises."""
    assert {*PARTS} <= everything.keys()
    for part in PARTS:
        schemas.validate(Paper, everything[part])
    schemas.validate(RewardStudy, everything["reward_study"])
