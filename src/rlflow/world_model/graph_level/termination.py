"""The accuracy with which M predicts the end of an episode."""

from collections.abc import Sequence

import torch
from torch import Tensor

from rlflow.representation.rollouts import Episode
from rlflow.world_model.graph_level.dataset import pad_episodes
from rlflow.world_model.graph_level.model import GraphLevelModel


@torch.no_grad()
def termination_accuracy(
    model: GraphLevelModel, latents: Tensor, episodes: Sequence[Episode]
) -> tuple[float, float, int]:
    """M's accuracy, the accuracy of always guessing the commoner outcome, and the number of steps.

    latents (G, Z): of the rollouts' graphs, as `GraphLevelModel.latents` encodes them.
    A step counts as right if M predicts whether the episode ends with it, knowing the true states and actions so far.
    """
    sequences = pad_episodes(episodes)
    states, change = sequences.transitions(latents)
    memory = model.memory
    predicted, _, _ = memory.sequence(states, sequences.action, memory.initial_hidden(len(episodes)))
    ended = change.terminated[sequences.valid]
    right = (predicted.terminated_logit[sequences.valid] > 0) == ended
    share = float(ended.float().mean())
    return float(right.float().mean()), max(share, 1.0 - share), len(ended)
