"""Rewrites repeated at alike places: twelve layers that are alike are one decision.

    end = work.take(start, cheapest)
    end = everywhere(work, start, end, alike)       # as many rewrites as there are places

A chain of rewrites is repeated as a whole: at a place that is like its first match's, then by the same rules where each
rewrite touches what the last one made.

The invariant: each rewrite is priced again before it is carried out, and saves as much as the one that it repeats.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import pairwise
from typing import NamedTuple

from rlflow.method import Option, State, Workspace
from rlflow.rules.matching.match import Match
from rlflow.rules.matching.rewriter import Location
from rlflow.rules.rule import Rule
from rlflow.search.locality import touches_last_change

_ROUNDING = 1e-9  # of a graph's price, which is a rounded sum

Places = Collection[tuple[int, ...]]
"""The nodes of matches."""


class _Rewrite(NamedTuple):
    """A rewrite to repeat: the index of its rule, and what it saves at least."""

    rule: int
    saving_ms: float


def everywhere(work: Workspace, start: State, end: State, places: Places) -> State:
    """Repeat the rewrites that led from `start` to `end` at other places, one after another while the budget lasts.

    A place is left out where one of them no longer matches or saves less.
    """
    rewrites = [_repeatable(before, after) for before, after in pairwise(end.path(start))]
    left = set(places)
    while left and not work.is_spent:
        again = _once_more(work, end, rewrites, left)
        if again is None:
            break
        again.leave_behind(end)
        end = again
    return end


def _repeatable(before: State, after: State) -> _Rewrite:
    assert after.action is not None, "a state on the way was reached by a rewrite"
    return _Rewrite(after.action.rule, before.runtime_ms - after.runtime_ms - _ROUNDING * before.runtime_ms)


def _once_more(work: Workspace, state: State, rewrites: Sequence[_Rewrite], left: set[tuple[int, ...]]) -> State | None:
    """Return the state after the rewrites at the first place of those `left` at which they can be repeated; it and
    those before it are no longer left.
    """
    first, *others = rewrites
    for location, match in enumerate(work.rewriter.matches(state.graph)[first.rule]):
        if match.nodes in left:
            left.remove(match.nodes)
            option = work.option(state, Location(first.rule, location), match)
            if _saves_as_much(state, option, first):
                end = _followed(work, work.take(state, option), others)
                if end is not None or work.is_spent:
                    return end
    return None


def _followed(work: Workspace, state: State, rewrites: Sequence[_Rewrite]) -> State | None:
    """Return the state after rewrites that each touch what the last one made; None where one cannot be repeated."""
    for rewrite in rewrites:
        options = work.options(state, _follows(state, work.rewriter.rules[rewrite.rule]))
        again = next((option for option in options if _saves_as_much(state, option, rewrite)), None)
        if again is None:
            return None
        state = work.take(state, again)
    return state


def _follows(state: State, rule: Rule) -> Callable[[Match], bool]:
    """Return a test for matches of a rule that touch what the last rewrite made."""
    touches = touches_last_change(state)
    return lambda match: match.rule is rule and touches(match)


def _saves_as_much(state: State, option: Option, rewrite: _Rewrite) -> bool:
    return state.runtime_ms - option.runtime_ms >= rewrite.saving_ms
