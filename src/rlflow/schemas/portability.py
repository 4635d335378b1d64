"""The document on portable rules: what a rewrite gains in each runtime, of every rule that fires."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Annotated, Any, Literal

from msgspec import Meta

from rlflow.schemas.figures import NOT_EMPTY, TIMING, Cases, Document, Interval, Load, Milliseconds, Ratio, Text

Decision = Literal["faster", "slower", "same", "undecided"]
Portable = Literal["partly", "portable", "nowhere", "undecided"]
"""Whether a rewrite is faster in some runtimes alone, in all of them, or in none; undecided where timing was."""


class TimedRewrite(Document):
    """A part of a graph before one rewrite and after it, in one runtime."""

    decision: Decision
    ratio: Ratio
    interval: Interval | None
    """Null after too few rounds for one."""
    before_ms: Milliseconds
    after_ms: Milliseconds
    rounds: Cases


class RuleGains(Document):
    """One rule where it was predicted to save most of a part's time."""

    name: Text
    graph: Text
    """In which it fires there."""
    operators: Text
    """Of the part: what is replaced, and its neighbours."""
    portable: Portable
    gains: dict[Text, TimedRewrite]
    """By setting."""
    refused: dict[Text, Text]
    """Settings that do not run both, and why."""

    @classmethod
    def contradictions(cls, document: dict[str, Any]) -> Iterator[tuple[str, str]]:
        decisions = [each["decision"] for each in document["gains"].values()]
        found = portable(decisions, len(document["refused"]))
        if document["portable"] != found:
            yield "portable", f"{document['portable']}, but the decisions say {found}"


class Portability(Document):
    """All rules that fire, by what their rewrites gain in several runtimes."""

    processor: Text
    threads: Annotated[int, Meta(ge=1)]
    runtimes: Annotated[dict[Text, Text], NOT_EMPTY]
    """Setting -> name and version."""
    load: Annotated[Load, TIMING]
    rules: Annotated[dict[Text, RuleGains], TIMING]
    """By id."""


def portable(decisions: Collection[str], refused: int = 0) -> Portable:
    """Return what the decisions in all runtimes say, of which some have `refused` the rewrite.

    >>> portable(["faster", "same"])
    'partly'
    """
    if "undecided" in decisions or not decisions:
        return "undecided"
    if "faster" not in decisions:
        return "nowhere"
    return "portable" if {*decisions} == {"faster"} and not refused else "partly"
