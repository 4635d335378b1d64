"""Observations of a graph with its classes of matches: a table of choices, or one graph that has the choices as nodes.

    observation = OBSERVATIONS["graph"](max_choices=128, num_rules=716)
    observation.space                       # spaces.Graph
    observation.of(state, shown)            # GraphInstance; the last node is terminate, before it the choices lie

The invariant: what is told of a choice is the same in both, and `CHOICE_FEATURES` names it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from gymnasium import spaces

from rlflow.processes.token_process import MatchLevelState
from rlflow.representation.edit_graph import ADDED, REMOVED
from rlflow.representation.features import Featuriser
from rlflow.representation.match_token import MatchToken
from rlflow.representation.own_features import COUNT_SCALE
from rlflow.representation.token_rollouts import FAR_AWAY
from rlflow.representation.vocabulary import Vocabulary

CHOICE_FEATURES = ("rule", "matches", "saving_percent", "distance", "removed", "added")
"""The columns of a choice: its rule's place in the library, from above 0 to 1; log2 of one more than its matches; what
they save, in percent of the start's price; the distance to the last rewrites, from 0 to 1; and the nodes that one of
them removes and adds.
"""
EDGE_FEATURES = ("operand", "matched")
"""The columns of an edge: the place among the operands that run, from 0; and 1 from a matched node to its choice."""


class ClassObservation(ABC):
    """An observation of at most `max_choices` classes of matches of `num_rules` rules; `space` holds it."""

    space: spaces.Space[Any]

    def __init__(self, max_choices: int, num_rules: int, vocabulary: Vocabulary | None = None) -> None:
        self.max_choices, self._num_rules = max_choices, num_rules
        self._featuriser = Featuriser(vocabulary)
        self._sizes: dict[bytes, tuple[int, int]] = {}
        self._rows: WeakKeyDictionary[MatchLevelState, np.ndarray] = WeakKeyDictionary()

    @abstractmethod
    def of(self, state: MatchLevelState, shown: np.ndarray) -> Any:
        """Return the observation of a state with the classes (P,) int64 that are shown of it."""

    @property
    def vocabulary(self) -> Vocabulary:
        """The words in which graphs are written."""
        return self._featuriser.vocabulary

    def choices(self, state: MatchLevelState, shown: np.ndarray) -> np.ndarray:
        """(P, 6) float32, a row for each class that is shown, with the columns `CHOICE_FEATURES`."""
        rows = self._rows.get(state)
        if rows is None:
            rows = self._rows[state] = self._told(state, shown)
        return rows

    def _told(self, state: MatchLevelState, shown: np.ndarray) -> np.ndarray:
        classes, apart = state.classes, state.classes.apart[shown]
        rules = [classes.matches[state.first(match_class)][0].rule for match_class in shown.tolist()]
        sizes = [self._size(classes.tokens[match_class]) for match_class in shown.tolist()]
        rows = np.zeros((len(shown), len(CHOICE_FEATURES)), np.float32)
        rows[:, 0] = (np.array(rules) + 1) / self._num_rules
        rows[:, 1] = np.log2(1 + apart)
        rows[:, 2] = state.saving_of_all[shown]
        rows[:, 3] = state.memory.near[shown] / FAR_AWAY
        rows[:, 4:] = COUNT_SCALE * np.array(sizes).reshape(-1, 2)
        return rows

    def _size(self, token: MatchToken) -> tuple[int, int]:
        """Count the nodes that a rewrite removes, and those that it adds."""
        known = self._sizes.get(token.key)
        if known is None:
            known = int((token.role == REMOVED).sum()), int((token.role == ADDED).sum())
            self._sizes[token.key] = known
        return known


class ChoiceTable(ClassObservation):
    """Arrays of fixed size: `choices` (K, 6), 0 where there is none; `cost` (1,), the price in percent of the start's;
    `action_mask` (K + 1,).
    """

    def __init__(self, max_choices: int, num_rules: int, vocabulary: Vocabulary | None = None) -> None:
        super().__init__(max_choices, num_rules, vocabulary)
        shape = (max_choices, len(CHOICE_FEATURES))
        parts: Mapping[str, spaces.Space[Any]] = {
            "choices": spaces.Box(-np.inf, np.inf, shape, np.float32),
            "cost": spaces.Box(0.0, np.inf, (1,), np.float32),
            "action_mask": spaces.MultiBinary(max_choices + 1),
        }
        self.space = spaces.Dict(dict(parts))

    def of(self, state: MatchLevelState, shown: np.ndarray) -> dict[str, np.ndarray]:
        choices = np.zeros((self.max_choices, len(CHOICE_FEATURES)), np.float32)
        choices[: len(shown)] = self.choices(state, shown)
        mask = np.zeros(self.max_choices + 1, np.int8)
        mask[: len(shown)] = mask[-1] = 1
        return {"choices": choices, "cost": np.array([state.percent], np.float32), "action_mask": mask}


class ChoiceGraph(ClassObservation):
    """One `GraphInstance`: inputs and operators in the graph's order, then a node for each choice, then terminate.

    nodes (N, 1 + F + 6 + 1): the operator in `vocabulary`, 0 for choices and terminate; its features; the columns of a
    choice; the price in percent of the start's, which stands at terminate. edges (E, 2): `EDGE_FEATURES`.
    """

    def __init__(self, max_choices: int, num_rules: int, vocabulary: Vocabulary | None = None) -> None:
        super().__init__(max_choices, num_rules, vocabulary)
        self._width = 1 + len(self.vocabulary.features) + len(CHOICE_FEATURES) + 1
        self.space: spaces.Graph = spaces.Graph(
            spaces.Box(-np.inf, np.inf, (self._width,), np.float32),
            spaces.Box(0.0, np.inf, (len(EDGE_FEATURES),), np.float32),
        )

    def of(self, state: MatchLevelState, shown: np.ndarray) -> spaces.GraphInstance:
        arrays = self._featuriser.arrays(state.graph)
        operators, width = arrays.num_nodes, 1 + len(self.vocabulary.features)
        nodes = np.zeros((operators + len(shown) + 1, self._width), np.float32)
        nodes[:operators, 0] = arrays.op
        nodes[:operators, 1:width] = arrays.features
        nodes[operators:-1, width:-1] = self.choices(state, shown)
        nodes[-1, -1] = state.percent

        matched = np.array(sorted({*_matched(state, shown, operators)}), np.int64).reshape(-1, 2)
        edges = np.zeros((len(arrays.edges) + len(matched), len(EDGE_FEATURES)), np.float32)
        edges[: len(arrays.edges), 0] = _places_of_operands(state.graph.layout.counts)
        edges[len(arrays.edges) :, 1] = 1.0
        return spaces.GraphInstance(nodes, edges, np.concatenate([arrays.edges, matched]))


OBSERVATIONS: Mapping[str, type[ClassObservation]] = {"choices": ChoiceTable, "graph": ChoiceGraph}
"""The observations that can be chosen by name."""


def _matched(state: MatchLevelState, shown: np.ndarray, first: int) -> Iterator[tuple[int, int]]:
    """Yield the place of each node that a match takes, with that of its class; those shown begin at `first`."""
    place, choice_of = state.graph.places(), {match_class: at for at, match_class in enumerate(shown.tolist(), first)}
    for (_, match), match_class in zip(state.classes.matches, state.classes.token_of.tolist(), strict=True):
        if match_class in choice_of:
            yield from ((int(place[node]), choice_of[match_class]) for node in match.nodes)


def _places_of_operands(counts: np.ndarray) -> np.ndarray:
    """(E,) int64: of each edge, reader after reader of which each has so many, its number among that reader's."""
    ends = np.cumsum(counts)
    return np.arange(int(counts.sum())) - np.repeat(ends - counts, counts)
