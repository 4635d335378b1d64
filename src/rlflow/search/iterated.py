"""Iterated local search: greedy descent again and again, from where random kicks led.

Greedy search ends in the first valley. A kick, a few random rewrites of which each touches what the last one made,
leads out of it; greedy search from there ends in a valley near by, which is gone on from if it is no dearer, and
sometimes if it is, as simulated annealing does (Lourenço, Martin and Stützle 2003; Kirkpatrick and others 1983).

The invariant: what is returned is the cheapest of all valleys, whichever the search went on from.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import exp

import numpy as np

from rlflow.errors import InputError
from rlflow.method import OnProgress, State, Workspace
from rlflow.rules.matching.match import Match
from rlflow.rules.matching.rewriter import Location, Matches
from rlflow.search.base import Search
from rlflow.search.greedy import descend, saves
from rlflow.search.locality import touches_last_change


@dataclass(frozen=True)
class Iterated(Search):
    """Ends after `stall` kicks in a row without a cheaper graph, or with the budget.

    - `kick_steps`: a kick has from 1 to so many rewrites, the first anywhere. A rule is drawn, then one of its matches.
    - `temperature_percent`: a valley that is dearer by so many percent of the best price is gone on from with
      probability 1/e, one that is twice as much dearer with that squared; at 0 none is.

    An expansion looks at all rewrites of one graph, in a kick or in a descent. `InputError` if `kick_steps` or `stall`
    is below 1 or the temperature is negative.
    """

    kick_steps: int = 3
    temperature_percent: float = 0.05
    stall: int = 200
    seed: int = 0
    name: str = "iterated"

    def __post_init__(self) -> None:
        for option in ("kick_steps", "stall"):
            if getattr(self, option) < 1:
                raise InputError(f"iterated search needs a {option} of at least 1, not {getattr(self, option)}")
        if not self.temperature_percent >= 0:
            raise InputError(f"a temperature cannot be negative: temperature_percent is {self.temperature_percent}")

    def improve(self, work: Workspace, state: State, on_progress: OnProgress | None = None) -> State:
        rng = np.random.default_rng(self.seed)
        best = valley = descend(work, state, on_progress)
        idle = 0
        while idle < self.stall and not work.is_spent:
            found = descend(work, self._kicked(work, valley, rng))
            idle += 1
            if saves(work, best, found):
                best, idle = found, 0
            loss_percent = 100.0 * (found.runtime_ms - valley.runtime_ms) / (best.runtime_ms or 1.0)
            if rng.random() < self._acceptance(loss_percent):
                valley = found
            if on_progress:
                on_progress(work.fraction, f"best {best.runtime_ms:.3f} ms, {idle} kicks without gain")
        return best

    def _kicked(self, work: Workspace, state: State, rng: np.random.Generator) -> State:
        """Return the state after a kick, which ends early where no rewrite touches the last one."""
        for step in range(int(rng.integers(self.kick_steps)) + 1):
            wanted = touches_last_change(state) if step else _any_match
            places = _places(work.rewriter.matches(state.graph), wanted)
            if not places:
                break
            rule = list(places)[int(rng.integers(len(places)))]
            state = work.step(state, Location(rule, places[rule][int(rng.integers(len(places[rule])))]))
            work.ledger.tally.expansions += 1
        return state

    def _acceptance(self, dearer_percent: float) -> float:
        """Return the probability of going on from a valley that is dearer by so much than the one before."""
        if dearer_percent <= 0:
            return 1.0
        return exp(-dearer_percent / self.temperature_percent) if self.temperature_percent else 0.0


def _any_match(match: Match) -> bool:
    return True


def _places(matches: Matches, wanted: Callable[[Match], bool]) -> dict[int, list[int]]:
    """Return the numbers of the wanted matches of each rule that has some."""
    places = {rule: [i for i, match in enumerate(of_rule) if wanted(match)] for rule, of_rule in matches.found()}
    return {rule: wanted_ones for rule, wanted_ones in places.items() if wanted_ones}
