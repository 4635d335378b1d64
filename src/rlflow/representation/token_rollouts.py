"""Episodes over match tokens: what could be done in each state, what was done, and what became of it.

A state lists the classes of matches that it has, each with their number and with what one of them saves, whether it was
taken or not. A step names the class that was taken, and how it changed the list:

    state   A x 12, B x 12            step: all A were taken
    after   B x 1, C x 12             gone: the B that shared a node with one; born: C

Tokens are stored once (`TokenRollouts.tokens`), and a state holds indices, since most states share most of them.

The invariant: rollouts that load are whole. Every index, number and length is checked when one is built.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from rlflow.errors import InputError
from rlflow.representation.match_token import MatchToken
from rlflow.representation.packing import Along
from rlflow.representation.vocabulary import Vocabulary

FAR_AWAY = 4
"""The largest distance between matches that is told from others."""


@dataclass(frozen=True, eq=False)
class TokenState:
    """K classes of matches of one graph.

    token (K,) int64 into `TokenRollouts.tokens`; count (K,) int64, matches of the class; apart (K,) int64, how many of
    these can be taken in their order so that no two share a node; distance (K, K) int8, the
    least number of edges between a match of one class and one of the other (`FAR_AWAY` at most). saving (K,) float32:
    what such a rewrite saves, and cost: the price of the graph, both in percent of the episode's start. hash: the
    structural hash of the graph.
    """

    token: Annotated[np.ndarray, Along("kinds")]
    count: Annotated[np.ndarray, Along("kinds")]
    apart: Annotated[np.ndarray, Along("kinds")]
    distance: Annotated[np.ndarray, Along("kinds", integers=np.int8, symmetric=True)]
    saving: Annotated[np.ndarray, Along("kinds")]
    cost: float
    hash: str

    def __post_init__(self) -> None:
        classes = len(self.token)
        each = {name: (classes,) for name in ("token", "count", "apart", "saving")}
        shapes = each | {"distance": (classes, classes)}
        _check_shapes(f"a state of {classes} classes", self, shapes)
        if len(np.unique(self.token)) != classes or self.count.min(initial=1) < 1:
            raise InputError("token rollouts: a state lists a kind twice, or one of which it has no match")
        if ((self.apart < 1) | (self.apart > self.count)).any():
            raise InputError("token rollouts: of a class with matches, one at least is apart, and all of them at most")
        if (
            not _are_distances(self.distance)
            or self.distance.diagonal().any()
            or (self.distance != self.distance.T).any()
        ):
            raise InputError("token rollouts: the distances between the kinds of a state are none")
        if not (np.isfinite(self.saving).all() and np.isfinite(self.cost)):
            raise InputError("token rollouts: a saving or a cost is not finite")


@dataclass(frozen=True, eq=False)
class TokenStep:
    """Rewrites and what became of the matches; places are those of classes in the state before and the one after.

    - `chosen`: the place of the class; `taken`: how many of its matches were rewritten, one after another; `reward` of
      all of them, what they saved of the price, in percent of the episode's start.
    - `distance` (K,) int8: from the matches that were taken to the nearest one of each class.
    - `gone` (K,) int64: matches of each class that are no more, beside those that were taken.
    - `turned` (C, 3) int64: place before, place after and number of matches that look different now.
    - `born` (B, 2) int64: place after and number of the matches that were not there before.
    - `memory_saved`: of the memory accesses, in percent of the start's; NaN if nobody has looked. `latency_saved`: of
      the latency, likewise, since it was measured before; NaN if it was not measured after this step.
    """

    chosen: int
    taken: int
    reward: float
    distance: Annotated[np.ndarray, Along("kinds", integers=np.int8)]
    gone: Annotated[np.ndarray, Along("kinds")]
    turned: Annotated[np.ndarray, Along("turns")]
    born: Annotated[np.ndarray, Along("births")]
    memory_saved: float = math.nan
    latency_saved: float = math.nan

    def is_whole(self, before: TokenState) -> bool:
        """Return whether no match of its class was left to take."""
        return self.taken + int(self.gone[self.chosen]) == int(before.count[self.chosen])


def nearness_after(before: np.ndarray, step: TokenStep, after: np.ndarray) -> np.ndarray:
    """(K',) int8: how far each class in the state after a step lies from that step's rewrite.

    before (K,), after (K',) int64: the tokens of the classes. Matches that were born or look different lie there;
    others lie as far away as before.
    """
    near = np.full(len(after), FAR_AWAY, dtype=np.int8)
    distance_of = dict(zip(before.tolist(), step.distance.tolist(), strict=True))
    for place, token in enumerate(after.tolist()):
        near[place] = distance_of.get(token, 0)
    near[step.turned[:, 1]] = 0
    near[step.born[:, 0]] = 0
    return near


@dataclass(frozen=True, eq=False)
class Demonstration:
    """An expert's choices in an episode of T + 1 states: was one of the K classes in each taken, then or later?

    Equality saturation and chains find sequences in which many a step saves nothing by itself. The order of steps in
    different places of a graph is of no account, and so does not show here.

    taken, each (K,) float32: the share of its matches that the expert takes, in this step or later. gain, each (K,)
    float32: the most that such a match leads to, in percent of the start's price, discounted, and 0 at least.
    """

    taken: tuple[np.ndarray, ...]
    gain: tuple[np.ndarray, ...]


@dataclass(frozen=True, eq=False)
class TokenEpisode:
    """T steps through T + 1 states of graph number `graph`; `terminated` if the agent ended it by choice.

    `unit_percent` is the unit of prices in its tokens, in percent of the start's price; `demonstration` is what it
    tells if an expert played it.
    """

    graph: int
    unit_percent: float
    states: tuple[TokenState, ...]
    steps: tuple[TokenStep, ...]
    terminated: bool
    demonstration: Demonstration | None = None

    def __post_init__(self) -> None:
        if len(self.states) != len(self.steps) + 1:
            raise InputError(f"token rollouts: an episode of {len(self.steps)} steps has {len(self.states)} states")
        if not self.unit_percent > 0:
            raise InputError(f"token rollouts: the unit of prices must be positive, not {self.unit_percent} percent")
        for before, step, after in zip(self.states, self.steps, self.states[1:], strict=False):
            _check_step(before, step, after)
        if self.demonstration is not None:
            _check_demonstration(self.demonstration, self.states)

    @property
    def num_steps(self) -> int:
        """T."""
        return len(self.steps)


def _check_demonstration(demonstration: Demonstration, states: Sequence[TokenState]) -> None:
    """Raise `InputError` unless every class of every state has both labels, and they are finite."""
    classes = [(len(state.token),) for state in states]
    for labels in (demonstration.taken, demonstration.gain):
        if [of_classes.shape for of_classes in labels] != classes or not all(np.isfinite(of).all() for of in labels):
            raise InputError("token rollouts: a demonstration does not tell of every kind in its episode's states")


def _check_step(before: TokenState, step: TokenStep, after: TokenState) -> None:
    """Raise `InputError` unless the matches before, less those gone, plus those born, are the matches after."""
    classes, classes_after = len(before.token), len(after.token)
    shapes = {"distance": (classes,), "gone": (classes,), "turned": (len(step.turned), 3), "born": (len(step.born), 2)}
    _check_shapes(f"a step from {classes} classes", step, shapes)
    ends = np.array([classes, classes_after, np.iinfo(np.int64).max])
    in_range = (
        0 <= step.chosen < classes
        and step.taken >= 1
        and step.gone.min(initial=0) >= 0
        and ((step.turned >= (0, 0, 1)) & (step.turned < ends)).all()
        and ((step.born >= (0, 1)) & (step.born < ends[1:])).all()
    )
    if not in_range or not _are_distances(step.distance) or not np.isfinite(step.reward):
        raise InputError(f"token rollouts: a step does not fit its state of {classes} classes, or that after it")
    left, come = before.count - step.gone, np.zeros(len(after.token), dtype=np.int64)
    left[step.chosen] -= step.taken
    np.subtract.at(left, step.turned[:, 0], step.turned[:, 2])
    np.add.at(come, step.turned[:, 1], step.turned[:, 2])
    np.add.at(come, step.born[:, 0], step.born[:, 1])
    stayed = dict(zip(before.token.tolist(), left.tolist(), strict=True))
    expected = {
        token: stayed.pop(token, 0) + more for token, more in zip(after.token.tolist(), come.tolist(), strict=True)
    }
    actual = dict(zip(after.token.tolist(), after.count.tolist(), strict=True))
    if expected != actual or any(stayed.values()):
        raise InputError("token rollouts: the matches after a step are not those before it, less gone, plus born")


def _check_shapes(what: str, holder: object, shapes: Mapping[str, tuple[int, ...]]) -> None:
    wrong = [name for name, shape in shapes.items() if getattr(holder, name).shape != shape]
    if wrong:
        raise InputError(f"token rollouts: {what} has {', '.join(wrong)} of another shape")


def _are_distances(distance: np.ndarray) -> bool:
    return bool(((distance >= 0) & (distance <= FAR_AWAY)).all())


@dataclass(frozen=True, eq=False)
class TokenRollouts:
    """Distinct tokens and the episodes that show them.

    rule_of: of each token the first, by its stable id, of the rules by which it was met; for diagnostics and baselines,
    never a network's input. graphs: names of the graphs that were optimised. vocabulary: of the tokens. library_hash:
    of the rule library that the episodes were collected with.
    """

    tokens: tuple[MatchToken, ...]
    rule_of: tuple[str, ...]
    episodes: tuple[TokenEpisode, ...]
    graphs: tuple[str, ...]
    vocabulary: Vocabulary
    library_hash: str

    def __post_init__(self) -> None:
        known = len(self.tokens)
        if len(self.rule_of) != known:
            raise InputError(f"token rollouts: {len(self.rule_of)} rules for {known} tokens; name one for each")
        if len({token.key for token in self.tokens}) != known:
            raise InputError("token rollouts: a token is there twice")
        operators, features = len(self.vocabulary.operators), len(self.vocabulary.features)
        if any(token.op.max(initial=0) >= operators or token.features.shape[1] != features for token in self.tokens):
            raise InputError(f"token rollouts: a token is not in the vocabulary of {operators} operators")
        for number, episode in enumerate(self.episodes):
            if not 0 <= episode.graph < len(self.graphs):
                raise InputError(f"token rollouts: episode {number} is of a graph that has no name")
            for state in episode.states:
                if state.token.size and not (0 <= state.token.min() and state.token.max() < known):
                    raise InputError(f"token rollouts: episode {number} names a token that is not there")

    @property
    def num_steps(self) -> int:
        """The number of steps in the real environment."""
        return sum(episode.num_steps for episode in self.episodes)
