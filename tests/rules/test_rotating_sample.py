"""Each commit makes some certificates again, byte for byte; the test ids and the summary of the run name them."""

import json
import subprocess
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.repository import REPOSITORY
from support.rotating_sample import sample, turn

from rlflow.rules.library import Library, load
from rlflow.rules.rule import Rule
from rlflow.rules.verification.certify import recertified
from rlflow.rules.verification.verify import VerificationConfig

SIZE = 24
TODAY = sample(load().rules, turn(REPOSITORY, date.today()), SIZE)


@pytest.mark.parametrize("rule", TODAY, ids=lambda rule: rule.id)
def test_a_certificate_comes_out_as_it_is_on_file(rule: Rule, record_property: Callable[[str, object], None]) -> None:
    """The rule is verified from nothing, on whatever processor this is, and its line of the library is written."""
    record_property("certificate made again", rule.id)
    (again,) = recertified(Library((replace(rule, certificate=None),)), VerificationConfig()).rules
    assert json.dumps(again.to_json()) == json.dumps(rule.to_json())


@given(count=st.integers(0, 2000), size=st.integers(1, 50), start=st.integers(0, 10**6))
def test_turns_in_a_row_reach_every_item_once(count: int, size: int, start: int) -> None:
    parts = max(1, -(-count // size))
    drawn = [sample(range(count), turn, size) for turn in range(start, start + parts)]
    assert sorted(item for part in drawn for item in part) == list(range(count))
    assert all(len(part) <= size for part in drawn)


def test_the_pick_in_numbers() -> None:
    assert sample("abcdefg", 0, 3) == ["a", "d", "g"]
    assert sample("abcdefg", 1, 3) == ["b", "e"]
    assert sample("abcdefg", 5, 3) == ["c", "f"]
    assert sample("", 5, 3) == []
    assert 20 <= len(TODAY) <= SIZE


def test_a_turn_is_the_number_of_commits(tmp_path: Path) -> None:
    """Without a repository, and in a shallow clone, whose history is cut off, it is the day."""
    day = date(2026, 11, 22)
    assert turn(tmp_path, day) == day.toordinal()

    def git(*arguments: str) -> None:
        who = ["-c", "user.name=someone", "-c", "user.email=someone@example.org"]
        subprocess.run(["git", *who, *arguments], cwd=tmp_path, check=True, capture_output=True)

    git("init", "whole")
    for number in range(3):
        git("-C", "whole", "commit", "--allow-empty", "-m", f"{number}")
    assert turn(tmp_path / "whole", day) == 3
    git("clone", "--depth", "1", f"file://{tmp_path}/whole", "shallow")
    assert turn(tmp_path / "shallow", day) == day.toordinal()
