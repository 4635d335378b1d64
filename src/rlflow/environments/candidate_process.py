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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from typing import Any, NamedTuple, TypeVar

import numpy as np
from gymnasium import spaces

from rlflow.cost.base import CostModel
from rlflow.cost.evaluator import Evaluator
from rlflow.errors import InputError
from rlflow.ir.graph import Graph
from rlflow.ir.structural_hash import structural_hash
from rlflow.processes.process import Process, ProcessState
from rlflow.representation.candidate_arrays import CandidateWriter
from rlflow.representation.vocabulary import Vocabulary
from rlflow.rules.matching.match import Match
from rlflow.rules.matching.rewriter import Location, Matches, Rewriter

T = TypeVar("T", float, np.ndarray)

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
class CandidateState(ProcessState):
    """A graph and its candidates, in the order of rules and locations.

    alike: rewrites that give the graph of a candidate, or the current one. beyond: rewrites that were not looked at,
    since there were K candidates.
    """

    candidates: tuple[Candidate, ...]
    alike: int
    beyond: int

    @cached_property
    def saving_ms(self) -> np.ndarray:
        """(K,) float64: what each candidate saves, worked out when asked."""
        matches = (candidate.match for candidate in self.candidates)
        return self.runtime_ms - np.array(self.evaluator.runtimes_after_ms(self.graph, matches), np.float64)

    @property
    def graphs(self) -> list[Graph]:
        """The graphs of the candidates."""
        return [candidate.graph for candidate in self.candidates]


class CandidateProcess(Process[CandidateState, int]):
    """Rewrites one graph; choices are numbers of candidates. `InputError` for a graph whose price is 0.

    evaluator: that of the search for which it does so, with the same rewriter and cost model; None: one of its own.
    Observations are written in `vocabulary`, today's by default.
    """

    def __init__(
        self,
        graph: Graph,
        rewriter: Rewriter,
        cost_model: CostModel,
        config: CandidateConfig,
        vocabulary: Vocabulary | None = None,
        evaluator: Evaluator | None = None,
    ) -> None:
        self.config = config
        self.evaluator = evaluator or Evaluator(rewriter, cost_model)
        self._graph, self._vocabulary = graph, vocabulary
        self._states: OrderedDict[str, CandidateState] = OrderedDict()
        self.start_ms = self.evaluator.confirmed_ms(graph)
        if not self.start_ms > 0:
            raise InputError("nothing can be saved of a graph whose price is 0: choose another cost model")

    @cached_property
    def writer(self) -> CandidateWriter:
        """The writer of observed graphs."""
        return CandidateWriter(self._vocabulary)

    def start(self) -> CandidateState:
        return self.at(self._graph)

    def at(self, graph: Graph) -> CandidateState:
        """The state of a graph that rewriting has led to."""
        return self._remembered(structural_hash(graph), graph)

    def choices(self, state: CandidateState) -> range:
        return range(len(state.candidates))

    def step(self, state: CandidateState, choice: int) -> CandidateState:
        chosen = state.candidates[choice]
        return self._remembered(chosen.hash, chosen.graph)

    def location(self, state: CandidateState, choice: int) -> Location:
        return state.candidates[choice].location

    def savings(self, state: CandidateState, choices: Sequence[int]) -> np.ndarray:
        """(N,) float64 in ms; all candidates of a state are priced at once."""
        return state.saving_ms[list(choices)]

    def observe(self, state: CandidateState) -> dict[str, Any]:
        """The observation of docs/spaces.md."""
        prices_ms = np.array([state.runtime_ms, *(state.runtime_ms - state.saving_ms)])
        cost = np.zeros(self.config.max_candidates + 1, np.float32)
        cost[: len(prices_ms)] = self.percent(prices_ms)
        return {
            "current": self._instance(state.graph),
            "candidates": tuple(self._instance(graph) for graph in state.graphs),
            "cost": cost,
            "action_mask": self.action_mask(state).astype(np.int8),
        }

    def action_mask(self, state: CandidateState) -> np.ndarray:
        """(K + 1,) bool: the candidates that there are, and terminate."""
        mask = np.arange(self.config.max_candidates + 1) < len(state.candidates)
        mask[-1] = True
        return mask

    def percent(self, ms: T) -> T:
        """Return times in percent of the start's."""
        return 100.0 * ms / self.start_ms

    def greedy_states(self) -> list[CandidateState]:
        """The states along which the candidate that saves most is taken, from the start to where none saves anything.

        They may be fewer or end elsewhere than a greedy search, which looks at every rewrite.
        """
        states = [self.start()]
        while len(states) <= self.config.max_steps and (
            states[-1].saving_ms.max(initial=0.0) > _LEAST_SHARE * self.start_ms
        ):
            states.append(self.step(states[-1], int(states[-1].saving_ms.argmax())))
        return states

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
        alike, beyond = looked_at - len(candidates), sum(matches.counts) - looked_at
        return CandidateState(graph, self.evaluator, candidates, alike, beyond)

    def _instance(self, graph: Graph) -> spaces.GraphInstance:
        whole = self.writer.arrays(graph, [])
        forward = ~whole.backward
        return spaces.GraphInstance(
            nodes=self.writer.node_rows()[whole.look],
            edges=self.writer.edge_rows()[whole.edge[forward]],
            edge_links=whole.messages[forward],
        )


def in_turn(matches: Matches, rng: np.random.Generator) -> Iterator[tuple[Location, Match]]:
    """Yield one match of each rule in turn until there are none; those of a rule in an order that is drawn."""
    of_rules = [
        [(Location(rule, int(place)), of_rule[place]) for place in rng.permutation(len(of_rule))]
        for rule, of_rule in matches.found()
    ]
    for turn in zip_longest(*of_rules):
        yield from (place for place in turn if place is not None)
