"""The real process of rewriting a graph, seen as match tokens: what can be done, what it saves, what becomes of it.

    process = TokenProcess(graph, rewriter, cost_model)
    before = process.start()
    after, step, way = process.step(before, int(before.saving.argmax()))      # all matches of a class
    step.reward, step.born

Asked for what can be saved, a state has every class of match priced, whether it is taken or not; alike ones are
priced once. `rewrites` counts those that had to be carried out for that.

The invariant: rewards of consecutive steps add up to the drop of the price, in percent of the start's.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from rlflow.cost.base import CostModel
from rlflow.cost.evaluator import Evaluator
from rlflow.errors import InputError
from rlflow.ir.graph import Graph
from rlflow.ir.node import Ref
from rlflow.processes.process import ProcessState
from rlflow.representation.price_profile import PriceProfile
from rlflow.representation.state_tokens import StateTokens
from rlflow.representation.token_distances import MatchDistances
from rlflow.representation.token_rollouts import TokenStep
from rlflow.representation.tokeniser import Tokeniser
from rlflow.representation.vocabulary import Vocabulary
from rlflow.rules.matching.match import Match
from rlflow.rules.matching.rewriter import Location, Rewriter
from rlflow.rules.rule import Rule
from rlflow.trajectory.record import Step

Place = tuple[str, tuple[Ref, ...], tuple[tuple[str, Ref], ...], tuple[int, ...]]


@dataclass(frozen=True, eq=False)
class MatchLevelState(ProcessState):
    """A graph on the way, with the K classes of matches that it has."""

    start_ms: float
    classes: StateTokens

    @property
    def percent(self) -> float:
        """The price in percent of the start's."""
        return 100.0 * self.runtime_ms / self.start_ms

    def saving_of(self, classes: Sequence[int]) -> np.ndarray:
        """(N,) float32: what a rewrite of each of some classes saves, in percent of the start's price."""
        matches = (self.match(self.first(match_class)) for match_class in classes)
        after_ms = np.array(self.evaluator.runtimes_after_ms(self.graph, matches), np.float64)
        return (100.0 * (self.runtime_ms - after_ms) / self.start_ms).astype(np.float32)

    @cached_property
    def saving(self) -> np.ndarray:
        """(K,) float32: what a rewrite of each class saves, worked out when asked."""
        return self.saving_of(range(len(self.classes.tokens)))

    @cached_property
    def saving_of_all(self) -> np.ndarray:
        """(K,) float32: what one of each class saves, times its matches that can all be rewritten."""
        return self.saving * self.classes.apart.astype(np.float32)

    @cached_property
    def distance(self) -> np.ndarray:
        """(K, K) int8 between classes, see `token_distances`."""
        return self._distances.groups_apart()

    def distance_from(self, numbers: Sequence[int]) -> np.ndarray:
        """(K,) int8 from the nearest of the matches `numbers` to the nearest of each class."""
        return self._distances.apart_from(numbers)

    @cached_property
    def class_at(self) -> dict[Place, int]:
        """The class of each match, by what tells the match from all others of its graph."""
        return {
            place_of(match): match_class
            for (_, match), match_class in zip(self.classes.matches, self.classes.token_of.tolist(), strict=True)
        }

    @cached_property
    def number_at(self) -> dict[Location, int]:
        """The number of each match, by its rule and its location."""
        return {location: number for number, (location, _) in enumerate(self.classes.matches)}

    def match(self, number: int) -> Match:
        """Return a match by its number, in the order of rules and locations."""
        return self.classes.matches[number][1]

    def first(self, match_class: int) -> int:
        """Return the number of the first match of a class."""
        return self._firsts[match_class]

    @cached_property
    def _firsts(self) -> list[int]:
        """The first match of each class; classes are numbered in the order in which they are met."""
        return np.unique(self.classes.token_of, return_index=True)[1].tolist()  # type: ignore[no-any-return]

    @cached_property
    def _distances(self) -> MatchDistances:
        return MatchDistances(self.graph, [match.nodes for _, match in self.classes.matches], self.classes.token_of)


class Rewritten(NamedTuple):
    """The state after the rewrites of a class, what became of the matches, and each rewrite with its graph."""

    state: MatchLevelState
    step: TokenStep
    way: Sequence[tuple[Location, ProcessState]]


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
        self.origin = ProcessState(graph, self.evaluator)
        self.start_ms = self.origin.runtime_ms
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

    def start(self) -> MatchLevelState:
        """The state before any rewrite."""
        return self.at(self.origin.graph)

    def at(self, graph: Graph) -> MatchLevelState:
        """The state of a graph that rewriting has led to."""
        return MatchLevelState(graph, self.evaluator, self.start_ms, self._tokeniser.tokens(graph, self.profile))

    def step(self, before: MatchLevelState, match_class: int) -> Rewritten:
        """Carry out all matches of a class, one after another, as long as they are there."""
        state: ProcessState = before
        way: list[tuple[Location, ProcessState]] = []
        numbers, taken = np.flatnonzero(before.classes.token_of == match_class).tolist(), []
        for number in numbers:
            if (found := self._at_place(state.graph, place_of(before.match(number)))) is not None:
                location, match = found
                state = ProcessState(self.evaluator.rewritten(state.graph, match), self.evaluator)
                way.append((location, state))
                taken.append(number)
        after = self.at(state.graph)
        return Rewritten(after, _what_became(before, after, taken, before.distance_from(numbers)), way)

    def take(self, before: MatchLevelState, number: int) -> tuple[MatchLevelState, TokenStep]:
        """Carry out one match, by its number in the state."""
        after = self.at(self.evaluator.rewritten(before.graph, before.match(number)))
        return after, _what_became(before, after, [number], before.distance_from([number]))

    def _at_place(self, graph: Graph, place: Place) -> tuple[Location, Match] | None:
        rule = self._numbers[place[0]]
        for location, match in enumerate(self.evaluator.rewriter.matches(graph)[rule]):
            if place_of(match) == place:
                return Location(rule, location), match
        return None

    def recorded(self, before: MatchLevelState, step: Step) -> int:
        """Return the number of the match that a recorded step took. `InputError` where there is none like it."""
        location = Location(self._numbers.get(step.rule, -1), step.location)
        if location not in before.number_at:
            raise InputError(
                f"{step.rule} has no match {step.location} here, as was recorded: the rules or the graph differ"
            )
        return before.number_at[location]

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {rule.id: number for number, rule in enumerate(self.rules)}


def _what_became(
    before: MatchLevelState, after: MatchLevelState, taken: Sequence[int], distance: np.ndarray
) -> TokenStep:
    """Compare the matches of two states, between which the matches `taken`, of one class, were carried out.

    distance (K,): from these to the nearest match of each class. A match that ends while one of the same rule is born
    has turned into it, one of the same roots if there is any, else of the same token, as its nodes have other numbers
    now. So nothing seems to be born where nothing was.
    """
    was, now = dict(before.class_at), after.class_at
    for number in taken:
        was.pop(place_of(before.match(number)))
    stayed = [(old, now[place]) for place, old in was.items() if place in now]
    ended = [(place, old) for place, old in was.items() if place not in now]
    begun = [(place, new) for place, new in now.items() if place not in was]
    was_key, now_key = ([token.key for token in state.classes.tokens] for state in (before, after))
    stayed += _replaced(ended, begun, lambda place, key: (place[0], place[1]), was_key, now_key)
    stayed += _replaced(ended, begun, lambda place, key: (place[0], key), was_key, now_key)
    stayed += _replaced(ended, begun, lambda place, _: place[0], was_key, now_key)
    turned = Counter((old, new) for old, new in stayed if was_key[old] != now_key[new])
    born, gone = Counter(new for _, new in begun), np.zeros(len(before.classes.tokens), dtype=np.int64)
    np.add.at(gone, [old for _, old in ended], 1)
    return TokenStep(
        chosen=int(before.classes.token_of[taken[0]]),
        taken=len(taken),
        reward=before.percent - after.percent,
        distance=distance,
        gone=gone,
        turned=np.array([(*classes, number) for classes, number in sorted(turned.items())], np.int64).reshape(-1, 3),
        born=np.array(sorted(born.items()), np.int64).reshape(-1, 2),
    )


def _replaced(
    ended: list[tuple[Place, int]],
    begun: list[tuple[Place, int]],
    likeness: Callable[[Place, bytes], Hashable],
    was_key: Sequence[bytes],
    now_key: Sequence[bytes],
) -> list[tuple[int, int]]:
    """Take the pairs of alike matches, by place and token, off those that ended and began; return their classes."""
    waiting: dict[Hashable, list[int]] = defaultdict(list)
    for number, (place, new) in reversed([*enumerate(begun)]):
        waiting[likeness(place, now_key[new])].append(number)
    pairs, left, taken = list[tuple[int, int]](), list[tuple[Place, int]](), set[int]()
    for place, old in ended:
        if candidates := waiting[likeness(place, was_key[old])]:
            taken.add(candidates[-1])
            pairs.append((old, begun[candidates.pop()][1]))
        else:
            left.append((place, old))
    ended[:], begun[:] = left, [each for number, each in enumerate(begun) if number not in taken]
    return pairs


def place_of(match: Match) -> Place:
    """The parts of a match that tell it from all others of its graph, and stay if an edit changes its looks alone."""
    return match.rule.id, match.roots, tuple(sorted(match.bindings.items())), match.source
