"""The real process of rewriting a graph, seen as match tokens: what can be done, what it saves, what becomes of it.

    process = TokenProcess(graph, rewriter, cost_model)
    before = process.start()
    after, step = process.step(before, int(before.saving.argmax()))      # a kind of match; the first of that kind
    step.reward, step.born

Asked for what can be saved, a situation has every kind of match priced, whether it is taken or not; alike ones are
priced once. `rewrites` counts those that had to be carried out for that.

The invariant: rewards of consecutive steps add up to the drop of the price, in percent of the start's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np

from rlflow.cost.base import CostModel
from rlflow.cost.evaluator import Evaluator
from rlflow.errors import InputError
from rlflow.ir.graph import Graph
from rlflow.ir.node import Ref
from rlflow.representation.price_profile import PriceProfile
from rlflow.representation.state_tokens import StateTokens
from rlflow.representation.token_distances import MatchDistances
from rlflow.representation.token_rollouts import TokenStep
from rlflow.representation.tokeniser import Tokeniser
from rlflow.representation.vocabulary import Vocabulary
from rlflow.rules.matching.match import Match
from rlflow.rules.matching.rewriter import Location, Rewriter
from rlflow.rules.rule import Rule
from rlflow.trajectory.record import Step, Trajectory

T = TypeVar("T", float, np.ndarray)


Place = tuple[str, tuple[Ref, ...], tuple[tuple[str, Ref], ...], tuple[int, ...]]


@dataclass(frozen=True, eq=False)
class Situation:
    """A graph on the way, with the K kinds of matches that it has; cost: its price in percent of the start's.

    saving_of: what a rewrite of each of some kinds saves, in the same percent.
    """

    graph: Graph
    cost: float
    kinds: StateTokens
    saving_of: Callable[[Sequence[int]], np.ndarray]

    @cached_property
    def saving(self) -> np.ndarray:
        """(K,) float32: what a rewrite of each kind saves, in percent of the start's price; worked out when asked."""
        return self.saving_of(range(len(self.kinds.tokens)))

    @cached_property
    def distance(self) -> np.ndarray:
        """(K, K) int8 between kinds, see `token_distances`."""
        return self._distances.groups_apart()

    def distance_from(self, number: int) -> np.ndarray:
        """(K,) int8 from match `number` to the nearest of each kind."""
        return self._distances.apart_from(number)

    @cached_property
    def kind_at(self) -> dict[Place, int]:
        """The kind of each match, by what tells the match from all others of its graph."""
        return {
            place_of(match): kind
            for (_, match), kind in zip(self.kinds.matches, self.kinds.token_of.tolist(), strict=True)
        }

    @cached_property
    def number_at(self) -> dict[Location, int]:
        """The number of each match, by its rule and its location."""
        return {location: number for number, (location, _) in enumerate(self.kinds.matches)}

    def first(self, kind: int) -> int:
        """Return the number of the first match of a kind, in the order of rules and locations."""
        return self._firsts[kind]

    @cached_property
    def _firsts(self) -> list[int]:
        return _firsts(self.kinds)

    @cached_property
    def _distances(self) -> MatchDistances:
        return MatchDistances(self.graph, [match.nodes for _, match in self.kinds.matches], self.kinds.token_of)


class TokenProcess:
    """Rewrites one graph, from its start or from any graph on the way. `InputError` for a graph whose price is 0.

    evaluator: that of the search for which it does so, with the same rewriter and cost model; None: one of its own.
    """

    def __init__(
        self,
        graph: Graph,
        rewriter: Rewriter,
        cost_model: CostModel,
        vocabulary: Vocabulary | None = None,
        evaluator: Evaluator | None = None,
    ) -> None:
        self.evaluator = evaluator or Evaluator(rewriter, cost_model)
        self._tokeniser = Tokeniser(rewriter, cost_model, vocabulary)
        self.profile = PriceProfile.of(graph, self._tokeniser.cost_model)
        self._graph = graph
        self.start_ms = self.evaluator.confirmed_ms(graph)
        if not self.start_ms > 0:
            raise InputError("nothing can be saved of a graph whose price is 0: choose another cost model")

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules that it rewrites with."""
        return self.evaluator.rewriter.rules

    @property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary of the tokens."""
        return self._tokeniser.vocabulary

    @property
    def unit_percent(self) -> float:
        """The unit of prices in tokens, in percent of the start's price."""
        return 100.0 * self.profile.median_ms / self.start_ms

    @property
    def rewrites(self) -> int:
        """The rewrites that were carried out so far."""
        return self.evaluator.effort.rewrites

    def start(self) -> Situation:
        """The situation before any rewrite."""
        return self.at(self._graph)

    def at(self, graph: Graph) -> Situation:
        """The situation in a graph that rewriting has led to."""
        kinds = self._tokeniser.tokens(graph, self.profile)
        runtime_ms = self.evaluator.confirmed_ms(graph)

        def saving_of(numbers: Sequence[int]) -> np.ndarray:
            firsts = _firsts(kinds)
            places = ((number, kinds.matches[firsts[number]][1]) for number in numbers)
            foreseen = self.evaluator.foreseen(graph, places)
            after_ms = [self.evaluator.runtime_after_ms(graph, match) for _, match in foreseen]
            return self._percent(runtime_ms - np.array(after_ms)).astype(np.float32)

        return Situation(graph, self._percent(runtime_ms), kinds, saving_of)

    def step(self, before: Situation, kind: int) -> tuple[Situation, TokenStep]:
        """Carry out the first match of a kind; return the situation after it, and what became of the matches."""
        return self.take(before, before.first(kind))

    def take(self, before: Situation, number: int) -> tuple[Situation, TokenStep]:
        """Carry out one match, by its number in the situation; return what `step` does."""
        _, match = before.kinds.matches[number]
        after = self.at(self.evaluator.rewritten(before.graph, match))
        return after, _what_became(before, after, number)

    def recorded(self, before: Situation, step: Step) -> int:
        """Return the number of the match that a recorded step took. `InputError` where there is none like it."""
        location = Location(self._numbers.get(step.rule, -1), step.location)
        if location not in before.number_at:
            raise InputError(
                f"{step.rule} has no match {step.location} here, as was recorded: the rules or the graph differ"
            )
        return before.number_at[location]

    def follow(self, trajectory: Trajectory) -> Iterator[Situation]:
        """Yield the situations that a trajectory from the start leads through, the start first."""
        situation = self.start()
        yield situation
        for step in trajectory.steps:
            _, match = situation.kinds.matches[self.recorded(situation, step)]
            situation = self.at(self.evaluator.rewritten(situation.graph, match))
            yield situation

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {rule.id: number for number, rule in enumerate(self.rules)}

    def _percent(self, ms: T) -> T:
        return 100.0 * ms / self.start_ms


def _firsts(kinds: StateTokens) -> list[int]:
    """The place of the first match of each kind; kinds are numbered in the order in which they are met."""
    return np.unique(kinds.token_of, return_index=True)[1].tolist()  # type: ignore[no-any-return]


def _what_became(before: Situation, after: Situation, taken: int) -> TokenStep:
    """Compare the matches of two situations, between which match number `taken` was carried out."""
    was, now = dict(before.kind_at), after.kind_at
    gone = np.zeros(len(before.kinds.tokens), dtype=np.int64)
    turned: Counter[tuple[int, int]] = Counter()
    was.pop(place_of(before.kinds.matches[taken][1]))
    for place, old in was.items():
        if place not in now:
            gone[old] += 1
        elif before.kinds.tokens[old].key != after.kinds.tokens[now[place]].key:
            turned[old, now[place]] += 1
    born = Counter(new for place, new in now.items() if place not in was)
    return TokenStep(
        chosen=int(before.kinds.token_of[taken]),
        reward=before.cost - after.cost,
        distance=before.distance_from(taken),
        gone=gone,
        turned=np.array([(*kinds, number) for kinds, number in sorted(turned.items())], np.int64).reshape(-1, 3),
        born=np.array(sorted(born.items()), np.int64).reshape(-1, 2),
    )


def place_of(match: Match) -> Place:
    """The parts of a match that tell it from all others of its graph, and stay if an edit changes its looks alone."""
    return match.rule.id, match.roots, tuple(sorted(match.bindings.items())), match.source
