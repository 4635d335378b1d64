"""The process of rewriting a graph, seen as the choice of the next graph among candidates (X-RLflow).

    process = CandidateProcess(graph, rewriter, cost_model, CandidateConfig(max_candidates=32))
    state = process.start()
    after = process.step(state, 2)              # the third candidate is the current graph now
    after.beyond, after.alike                   # rewrites that are no candidates: left out, and alike to one that is

A graph may have more rewrites than a policy can look at. Which of them are candidates is decided without their prices:
one of each rule in turn, a rule's in an order that is drawn from the seed and the graph. Of rewrites that give the same
graph one is a candidate, and none of those that change nothing.

The invariant: the candidates depend on the graph's structure, the rules and the settings alone, never on prices or on
the way to the graph.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from typing import NamedTuple

import numpy as np

from rlflow.cost.base import Cost, CostModel
from rlflow.cost.evaluator import Evaluator
from rlflow.errors import InputError
from rlflow.ir.graph import Graph
from rlflow.ir.structural_hash import structural_hash
from rlflow.rules.matching.match import Match
from rlflow.rules.matching.rewriter import Location, Matches, Rewriter
from rlflow.trajectory.record import Step

_LEAST_SHARE = 1e-9  # of the start's price: a saving below this is rounding
_MAX_STATES = 64  # that are kept, with all graphs of their candidates


@dataclass(frozen=True)
class CandidateConfig:
    """Settings of episodes over candidates.

    max_candidates: K. max_steps: the horizon. seed: of the choice of candidates where there are more than K.
    """

    max_candidates: int = 32
    max_steps: int = 32
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("max_candidates", "max_steps"):
            if getattr(self, name) < 1:
                raise InputError(f"candidates: {name} must be at least 1, not {getattr(self, name)}")


class Candidate(NamedTuple):
    """A rewrite of the current graph and what it gives."""

    location: Location
    match: Match
    graph: Graph
    hash: str


@dataclass(frozen=True, eq=False)
class CandidateState:
    """A graph and its candidates, in the order of rules and locations.

    alike: rewrites that give the graph of a candidate, or the current one. beyond: rewrites that were not looked at,
    since there were K candidates. price and price_ms: price the graph, and `prices_ms` its candidates, by the cost
    model.
    """

    graph: Graph
    hash: str
    candidates: tuple[Candidate, ...]
    alike: int
    beyond: int
    price: Callable[[], Cost]
    price_ms: Callable[[], float]
    prices_ms: Callable[[], list[float]]

    @cached_property
    def cost(self) -> Cost:
        """The whole cost of the graph, worked out when a reward asks."""
        return self.price()

    @cached_property
    def runtime_ms(self) -> float:
        """The price of the graph, worked out when asked."""
        return self.price_ms()

    @cached_property
    def saving_ms(self) -> np.ndarray:
        """(K,) float64: what each candidate saves, worked out when asked."""
        return self.runtime_ms - np.array(self.prices_ms(), np.float64)

    @property
    def graphs(self) -> list[Graph]:
        """The graphs of the candidates."""
        return [candidate.graph for candidate in self.candidates]


class CandidateProcess:
    """Rewrites one graph. `InputError` for a graph whose price is 0.

    evaluator: that of the search for which it does so, with the same rewriter and cost model; None: one of its own.
    """

    def __init__(
        self,
        graph: Graph,
        rewriter: Rewriter,
        cost_model: CostModel,
        config: CandidateConfig,
        evaluator: Evaluator | None = None,
    ) -> None:
        self.config = config
        self.evaluator = evaluator or Evaluator(rewriter, cost_model)
        self._graph = graph
        self._states: OrderedDict[str, CandidateState] = OrderedDict()
        self.start_ms = self.evaluator.confirmed_ms(graph)
        if not self.start_ms > 0:
            raise InputError("nothing can be saved of a graph whose price is 0: choose another cost model")

    def start(self) -> CandidateState:
        """The graph before any rewrite."""
        return self.at(self._graph)

    def step(self, state: CandidateState, number: int) -> CandidateState:
        """Make a candidate the current graph."""
        chosen = state.candidates[number]
        return self._remembered(chosen.hash, chosen.graph)

    def at(self, graph: Graph) -> CandidateState:
        """The state of a graph that rewriting has led to."""
        return self._remembered(structural_hash(graph), graph)

    def percent(self, ms: float) -> float:
        """Return a time in percent of the start's."""
        return 100.0 * ms / self.start_ms

    def recorded(self, before: CandidateState, number: int, after: CandidateState) -> Step:
        """Write down a step that has made a candidate the current graph."""
        candidate = before.candidates[number]
        saved = self.percent(before.runtime_ms - after.runtime_ms)
        return Step(candidate.match.rule.id, candidate.location.location, candidate.hash, after.runtime_ms, saved)

    def greedy_way(self) -> list[CandidateState]:
        """The states along which the candidate that saves most is taken, from the start to where none saves anything.

        It may be shorter or end elsewhere than a greedy search, which looks at every rewrite.
        """
        way = [self.start()]
        while len(way) <= self.config.max_steps and way[-1].saving_ms.max(initial=0.0) > _LEAST_SHARE * self.start_ms:
            way.append(self.step(way[-1], int(way[-1].saving_ms.argmax())))
        return way

    def _remembered(self, hash_: str, graph: Graph) -> CandidateState:
        state = self._states.get(hash_)
        if state is None:
            state = self._states[hash_] = self._looked_at(hash_, graph)
            if len(self._states) > _MAX_STATES:
                self._states.popitem(last=False)
        self._states.move_to_end(hash_)
        return state

    def _looked_at(self, hash_: str, graph: Graph) -> CandidateState:
        matches = self.evaluator.rewriter.matches(graph)
        rng = np.random.default_rng([self.config.seed, int(hash_, 16)])
        found: dict[str, Candidate] = {}
        looked_at = 0
        for location, match in in_turn(matches, rng):
            if len(found) == self.config.max_candidates:
                break
            looked_at += 1
            child = self.evaluator.rewritten(graph, match)
            made = structural_hash(child)
            if made != hash_:
                found.setdefault(made, Candidate(location, match, child, made))

        candidates = tuple(sorted(found.values(), key=lambda candidate: candidate.location))
        return CandidateState(
            graph,
            hash_,
            candidates,
            alike=looked_at - len(candidates),
            beyond=sum(matches.counts) - looked_at,
            price=lambda: self.evaluator.cost(graph),
            price_ms=lambda: self.evaluator.confirmed_ms(graph),
            prices_ms=lambda: self._priced(graph, candidates),
        )

    def _priced(self, graph: Graph, candidates: tuple[Candidate, ...]) -> list[float]:
        places = ((candidate, candidate.match) for candidate in candidates)
        foreseen = self.evaluator.foreseen(graph, places)
        return [self.evaluator.runtime_after_ms(graph, match) for _, match in foreseen]


def in_turn(matches: Matches, rng: np.random.Generator) -> Iterator[tuple[Location, Match]]:
    """Yield one match of each rule in turn until there are none; those of a rule in an order that is drawn."""
    of_rules = [
        [(Location(rule, int(place)), of_rule[place]) for place in rng.permutation(len(of_rule))]
        for rule, of_rule in matches.found()
    ]
    for turn in zip_longest(*of_rules):
        yield from (place for place in turn if place is not None)
