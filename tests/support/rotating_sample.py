"""A part of the rules for each commit, so that a few dozen commits in a row reach all of them."""

import subprocess
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import TypeVar

Item = TypeVar("Item")


def turn(checkout: Path, today: date) -> int:
    """How many commits lie behind this one; where git does not know them all, how many days behind today."""
    shallow = _git(checkout, "rev-parse", "--is-shallow-repository")
    count = _git(checkout, "rev-list", "--count", "HEAD") if shallow == "false" else ""
    return int(count) if count else today.toordinal()


def sample(items: Sequence[Item], turn: int, size: int) -> list[Item]:
    """At most `size` of the items; as many turns in a row as there are parts of this size give each of them once.

    A part is taken from all over: every n-th item, from the place on that the turn says.
    """
    parts = -(-len(items) // size) or 1
    return list(items[turn % parts :: parts])


def _git(checkout: Path, *arguments: str) -> str:
    """Empty where there is no git, or no repository."""
    try:
        answer = subprocess.run(["git", *arguments], cwd=checkout, capture_output=True, text=True)
    except FileNotFoundError:
        return ""
    return answer.stdout.strip() if answer.returncode == 0 else ""
