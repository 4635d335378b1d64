"""Fit M on the embeddings of a frozen V."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from rlflow.representation.token_rollouts import FAR_AWAY, TokenEpisode
from rlflow.world_model.match_level.match_deltas import NONE, MatchDeltas, StepSets
from rlflow.world_model.match_level.match_level_config import MatchLevelModelConfig
from rlflow.world_model.match_level.token_memory import TokenMemory, outcome_of
from rlflow.world_model.optimisation import descend

_PAIRS_PER_STEP = 16  # classes of matches, of each step of a batch, whose survival is asked for


@dataclass(frozen=True)
class Pairs:
    """N pairs of a class whose matches were rewritten and a class of the same state, all (N,) int64.

    chosen, other: their tokens; distance; count: matches of the latter; gone: the outcome of these (`outcome_of`).
    """

    chosen: Tensor
    other: Tensor
    distance: Tensor
    count: Tensor
    gone: Tensor

    def rows(self, index: Tensor) -> Pairs:
        return Pairs(*(getattr(self, name)[index] for name in ("chosen", "other", "distance", "count", "gone")))


def pairs(episodes: Sequence[TokenEpisode]) -> Pairs:
    """The pairs of two classes that lie near each other: what is far away is not asked of a dream, and stays.

    Steps that left matches of the class that they chose, as those of experts do, are none of a dream's.
    """
    columns: list[tuple[np.ndarray, ...]] = []
    for episode in episodes:
        for state, step in zip(episode.states, episode.steps, strict=False):
            if not step.is_whole(state):
                continue
            parent = np.full(len(state.token), state.token[step.chosen])
            distance = step.distance.astype(np.int64)
            near = (distance < FAR_AWAY) & (np.arange(len(distance)) != step.chosen)
            rewrites = np.full(len(distance), step.taken)
            columns.append(tuple(c[near] for c in (parent, state.token, distance, state.count, step.gone, rewrites)))
    if not columns:
        return Pairs(*(torch.zeros(0, dtype=torch.int64) for _ in range(5)))
    together = [torch.from_numpy(np.concatenate(column)) for column in zip(*columns, strict=True)]
    chosen, other, away, count, gone, taken = together
    return Pairs(chosen, other, away, count, outcome_of(gone, count, taken))


def same_outcome(sets: MatchDeltas, operators: np.ndarray) -> Tensor:
    """(S,) int64: a number for each birth set, equal for those that bring the same operators, to a rewrite.

    operators (T, 2V): what each token removes and adds. So outcomes are the same whatever the sizes of tensors.
    """
    born = (sets.token != NONE) & (sets.before == NONE)
    token, count = sets.token.numpy(), torch.where(born, sets.count, 0).numpy()
    total = (operators[np.maximum(token, 0)] * count[..., None]).sum(axis=1)
    each = np.rint(total / sets.taken.numpy()[:, None])
    _, outcome = np.unique(each, axis=0, return_inverse=True)
    return torch.from_numpy(outcome)


class TokenMemoryFit:
    """M's share of the fit: passes over the steps of the training episodes."""

    def __init__(
        self,
        memory: TokenMemory,
        embedding: Tensor,
        steps: StepSets,
        outcome: Tensor,
        known: Pairs,
        config: MatchLevelModelConfig,
    ) -> None:
        self.memory, self.embedding, self.steps, self.config = memory, embedding, steps, config
        self.outcome, self.pairs = outcome, known
        self.optimiser = torch.optim.Adam(memory.parameters())

    def run_epoch(self, epoch: int, generator: torch.Generator) -> dict[str, float]:
        """Run one pass; returns the mean losses, 0 where no step left no match of its class."""
        if not (len(self.steps.of_step) and len(self.pairs.gone)):
            return {"memory/births": 0.0, "memory/gone": 0.0}
        config, parameters = self.config, list(self.memory.parameters())
        self.memory.train()
        batches = torch.randperm(len(self.steps.of_step), generator=generator).split(config.steps_per_batch)
        totals = {"births": 0.0, "gone": 0.0}
        for number, rows in enumerate(batches):
            asked = torch.randint(len(self.pairs.gone), (len(rows) * _PAIRS_PER_STEP,), generator=generator)
            losses = {"births": self.births_loss(rows), "gone": self.gone_loss(self.pairs.rows(asked))}
            progress = (epoch + number / len(batches)) / config.epochs
            total = losses["births"] + losses["gone"]
            descend(total, self.optimiser, parameters, config.learning_rate, progress, config.max_gradient_norm)
            for name, value in losses.items():
                totals[name] += value.item() / len(batches)
        return {f"memory/{name}": value for name, value in totals.items()}

    def births_loss(self, rows: Tensor) -> Tensor:
        """Mean negative log-likelihood, in nats, of the outcomes of steps, each under the sets of all other steps.

        A step whose outcome no other one had teaches nothing and is left out.
        """
        sets, own = self.steps.sets, self.steps.of_step[rows]
        seen = sets.seen.expand(len(rows), -1).clone()
        seen[torch.arange(len(rows)), own] -= 1.0
        token, parent = sets.parent[own], sets.parent
        same = token[:, None] == parent
        logits = self.memory.birth_logits(self.embedding[token], self.embedding[parent], sets.seen, same)
        logits = logits + (seen / sets.seen).log()
        right = self.outcome[own][:, None] == self.outcome[None]
        has_right = (right & (seen > 0)).any(dim=1)
        if not has_right.any():
            return torch.zeros((), requires_grad=True)
        logits, right = logits[has_right], right[has_right]
        of_right = torch.logsumexp(logits.masked_fill(~right, -torch.inf), dim=1)
        return (torch.logsumexp(logits, dim=1) - of_right).mean()

    def gone_loss(self, asked: Pairs) -> Tensor:
        """Mean cross-entropy, in nats, of how many matches of a class end."""
        chosen, other = self.embedding[asked.chosen], self.embedding[asked.other]
        return functional.cross_entropy(self.memory.gone_logits(chosen, other, asked.distance, asked.count), asked.gone)
