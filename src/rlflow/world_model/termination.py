"""Whether M knows when an episode ends."""

from collections.abc import Sequence

import torch

from rlflow.representation.rollouts import Episode, Rollouts
from rlflow.world_model.dataset import pad_episodes
from rlflow.world_model.model import WorldModel


@torch.no_grad()
def termination_accuracy(
    model: WorldModel, rollouts: Rollouts, episodes: Sequence[Episode]
) -> tuple[float, float, int]:
    """Share of steps of episodes whose end or going on M predicts, that of the commoner of the two, and the steps.

    M knows the true states and actions up to the step.
    """
    sequences = pad_episodes(episodes)
    states, change = sequences.transitions(model.latents(rollouts))
    memory = model.memory
    predicted, _, _ = memory.sequence(states, sequences.action, memory.initial_hidden(len(episodes)))
    ended = change.terminated[sequences.valid]
    right = (predicted.terminated_logit[sequences.valid] > 0) == ended
    share = float(ended.float().mean())
    return float(right.float().mean()), max(share, 1.0 - share), len(ended)
