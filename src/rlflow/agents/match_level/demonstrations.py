"""Make demonstrations out of what searches find on small graphs (`Demonstration`).

    trajectory = method.optimise(graph, budget).trajectory        of a method whose rewriter shares
    episode = demonstrate(process, bank, trajectory, GainConfig())

A step leads to the steps that depend on it: those that take or read what it made or rewired, and what
these made in turn. Its gain is the best that any number of them saves together, discounted by how many they are, so
that a step that loses a little and lets a later one gain much is worth much.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from rlflow.agents.token_collection import state_of
from rlflow.ir.graph import Graph
from rlflow.processes.token_process import MatchLevelState, Place, TokenProcess, place_of
from rlflow.representation.token_rollouts import Demonstration, TokenEpisode, TokenStep
from rlflow.representation.token_shards import TokenBank
from rlflow.rules.matching.match import Match
from rlflow.trajectory.record import Trajectory


@dataclass(frozen=True)
class GainConfig:
    """The discount of a gain for each dependent step that it takes, and the number of these after which none counts."""

    discount: float = 0.95
    horizon: int = 30


def demonstrate(process: TokenProcess, bank: TokenBank, trajectory: Trajectory, config: GainConfig) -> TokenEpisode:
    """Follow a trajectory from the process's start; what it was recorded with must match as the process does."""
    visited, steps, taken = [process.start()], list[TokenStep](), list[Match]()
    for recorded in trajectory.steps:
        before = visited[-1]
        number = process.recorded(before, recorded)
        taken.append(before.match(number))
        after, step = process.take(before, number)
        visited.append(after)
        steps.append(step)

    gains = _gains(visited, taken, config)
    states = tuple(state_of(state, bank) for state in visited)
    left = {place_of(match): (number, gain) for number, (match, gain) in enumerate(zip(taken, gains, strict=True))}
    labels = [_labels(state, number, left) for number, state in enumerate(visited)]
    told = Demonstration(tuple(share for share, _ in labels), tuple(gain for _, gain in labels))
    return TokenEpisode(0, process.unit_percent, states, tuple(steps), terminated=True, demonstration=told)


def _labels(state: MatchLevelState, now: int, left: Mapping[Place, tuple[int, float]]) -> tuple[np.ndarray, np.ndarray]:
    """The share of each class's matches among the steps from `now` on, and the greatest gain of these."""
    classes = state.classes
    taken, gain = np.zeros(len(classes.tokens), np.float32), np.zeros(len(classes.tokens), np.float32)
    for match_class, (_, match) in zip(classes.token_of.tolist(), classes.matches, strict=True):
        number, worth = left.get(place_of(match), (-1, 0.0))
        if number >= now:
            taken[match_class] += 1
            gain[match_class] = max(gain[match_class], worth)
    return taken / classes.counts, gain


def _gains(visited: Sequence[MatchLevelState], taken: Sequence[Match], config: GainConfig) -> list[float]:
    """The gain of each step, in percent, by the steps that depend on it."""
    saved = [before.percent - after.percent for before, after in pairwise(visited)]
    made = [_made(before.graph, after.graph) for before, after in pairwise(visited)]
    read = [_read(before.graph, match) for before, match in zip(visited, taken, strict=False)]
    gains = []
    for step in range(len(taken)):
        reach, total, best, depth = set(made[step]), saved[step], saved[step], 0
        for later in range(step + 1, len(taken)):
            if depth == config.horizon:
                break
            if reach.isdisjoint(read[later]):
                continue
            reach |= made[later]
            depth += 1
            total += saved[later]
            best = max(best, total * config.discount**depth)
        gains.append(best)
    return gains


def _made(before: Graph, after: Graph) -> set[int]:
    """The nodes that an edit added, and those whose operands it changed."""
    assert after.edit is not None
    change = after.edit.change
    return {*change.added, *(i for i in change.touched if after.nodes[i] is not before.nodes.get(i))}


def _read(graph: Graph, match: Match) -> set[int]:
    """The nodes that a match takes, and those that vary that it reads."""
    bound = (ref.node for ref in match.bindings.values())
    return {*match.nodes, *(node for node in bound if not graph.nodes[node].constant)}
