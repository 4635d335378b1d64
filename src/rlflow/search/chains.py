"""Chains: short sequences of rewrites of which only the last has to pay.

Greedy search stops where no single rewrite saves anything. Often a rewrite that saves nothing, or costs a little, makes
one possible that saves much. In a decoder that reads its last token,

    x -> Square -> ReduceMean -> Gather     Gather(ReduceMean(Square(x)))  32 rows are squared, 1 is read
    x -> Square -> Gather -> ReduceMean     one step: no gain
    x -> Gather -> Square -> ReduceMean     two steps: 1 row is squared

The search descends greedily, tries chains of rewrites that each touch what the last one made, takes the chain that
saves most, repeats it at all places that are alike, and goes on from there. A chain is remembered by its first step's
surroundings, so that of alike layers one is tried, and none is tried again while nothing near it has changed.

The invariant: every chain that is taken saves something, so the price of the state falls from round to round.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from heapq import nsmallest
from math import inf
from typing import NamedTuple

from rlflow.errors import InputError
from rlflow.method import OnProgress, Option, State, Workspace
from rlflow.search.abridged import in_short
from rlflow.search.alike import Places, everywhere
from rlflow.search.base import Search
from rlflow.search.greedy import descend, enough_ms, saves
from rlflow.search.locality import Surroundings, surroundings_in, touches_last_change

_NEAR = 4  # edges: what lies farther from a chain's first step hardly ever changes what the chain saves


@dataclass(frozen=True)
class Chains(Search):
    """Runs until no chain of at most `depth` rewrites saves anything, unless the budget ends it.

    Of the rewrites that touch what the last one made, the `width` cheapest are tried. An expansion looks at all
    rewrites of one graph, or at those that touch its last change. A graph of more than `whole_nodes` nodes that run is
    searched in short (`search.abridged`) if a part of it repeats; None: none is. `InputError` for a depth below 2 or a
    width below 1.
    """

    depth: int = 3
    width: int = 6
    whole_nodes: int | None = 550
    name: str = "chains"

    def __post_init__(self) -> None:
        if self.depth < 2:
            raise InputError(f"a chain has at least 2 rewrites: depth cannot be {self.depth}")
        if self.width < 1:
            raise InputError(f"a chain goes on in at least 1 way: width cannot be {self.width}")

    def improve(self, work: Workspace, state: State, on_progress: OnProgress | None = None) -> State:
        carried = in_short(work, state, self.whole_nodes, partial(self.improve, on_progress=on_progress))
        if carried is not None:
            return carried
        gains_ms: dict[Surroundings, float] = {}
        state = descend(work, state, on_progress)
        while not work.is_spent:
            chain = self._best_chain(work, state, gains_ms)
            if chain is None or not saves(work, state, end := work.take(chain.end.before, chain.end.last)):
                break
            state = descend(work, everywhere(work, state, end, chain.alike), on_progress)
            if on_progress:
                on_progress(work.fraction, f"{state.runtime_ms:.3f} ms by a chain")
        return state

    def _best_chain(self, work: Workspace, start: State, gains_ms: dict[Surroundings, float]) -> _Chain | None:
        """Return the chain from `start` that saves most; None if none saves anything.

        `gains_ms` remembers what the best chain from a first step with the same surroundings saved, 0 if none did.
        First steps that are not remembered are tried first, the cheapest before others. Of those remembered only the
        ones that saved more than the best one of this time are tried again.
        """
        surroundings = surroundings_in(start.graph, _NEAR)
        steps = [(surroundings(option.match), option) for option in work.options(start)]
        steps.sort(key=lambda step: (-gains_ms.get(step[0], inf), step[1].runtime_ms))

        best, most_ms = None, 0.0
        for place, option in steps:
            if gains_ms.get(place, inf) <= most_ms:
                continue
            end = min(self._ends(work, start, option), key=lambda end: end.last.runtime_ms, default=None)
            if end is None and work.is_spent:
                break
            gains_ms[place] = start.runtime_ms - end.last.runtime_ms if end else 0.0
            if end is not None and gains_ms[place] > most_ms:
                alike = [other.match.nodes for where, other in steps if where == place and other is not option]
                best, most_ms = _Chain(end, alike), gains_ms[place]
        return best

    def _ends(self, work: Workspace, start: State, first: Option) -> Iterator[_End]:
        """Yield the last rewrites of chains that begin with `first` and save something, short chains before long."""
        enough, seen = enough_ms(start), {start.hash}
        waiting = deque([(work.take(start, first), self.depth - 1)])
        while waiting and not work.is_spent:
            state, steps = waiting.popleft()
            if state.hash in seen:
                continue
            seen.add(state.hash)
            options = work.options(state, touches_last_change(state))
            nearby = nsmallest(self.width, options, key=lambda option: option.runtime_ms)
            if nearby and nearby[0].runtime_ms < enough:
                yield _End(state, nearby[0])
            if steps > 1:
                waiting.extend((work.take(state, option), steps - 1) for option in nearby)


class _End(NamedTuple):
    """The last rewrite of a chain, and the state in which it is possible."""

    before: State
    last: Option


class _Chain(NamedTuple):
    """A chain by its end, and the places at which it can be repeated, as they look."""

    end: _End
    alike: Places
