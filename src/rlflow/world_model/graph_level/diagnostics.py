"""Measures of how far a dream can be trusted: open-loop rollouts against the truth, beside trivial baselines."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from rlflow.representation.rollouts import Episode, Rollouts
from rlflow.world_model.graph_level.dataset import pad_episodes
from rlflow.world_model.graph_level.graph_level_config import GraphLevelDreamConfig
from rlflow.world_model.graph_level.imagination import imagine
from rlflow.world_model.graph_level.mdn_rnn import State
from rlflow.world_model.graph_level.model import GraphLevelModel

HORIZONS = (1, 5, 10, 20, 50)


@torch.no_grad()
def open_loop(
    model: GraphLevelModel,
    rollouts: Rollouts,
    latents: Tensor,
    episodes: Sequence[Episode],
    config: GraphLevelDreamConfig,
    *,
    seed: int,
    horizons: Sequence[int] = HORIZONS,
) -> dict[int, dict[str, float]]:
    """Errors after k imagined steps under the true actions, from every state of episodes, for k in horizons.

    latents (G, Z): of the rollouts' graphs, as `GraphLevelModel.latents` encodes them.

    Each entry holds `cases` and, each with its baseline: mean absolute errors `latent`, `counts`, `cost` (percent)
    against `..._copy`, the last known value; `reward` of the k-th step (percent) against `reward_mean`, the mean
    reward of the rollouts; `rule_mask` accuracy against `rule_mask_copy` and `rule_mask_majority` (each rule as it
    mostly is in these cases). `reward_minus_cost_drop`: mean absolute difference between the predicted reward and
    the predicted drop in cost, 0 for a consistent model of the incremental reward. Horizons that no episode
    reaches are left out.
    """
    generator = torch.Generator().manual_seed(seed)
    sequences = pad_episodes(episodes)
    truth = sequences.states(latents)

    # Every valid step is the start of one rollout: a case is a pair (episode, time).
    episode, time = torch.nonzero(sequences.valid, as_tuple=True)
    known = _at(truth, episode, time)
    left, _ = sequences.transitions(latents)
    h, c = model.memory.recall(left, sequences.action)
    state, hidden = known, (h[episode, time], c[episode, time])

    mean_reward = float(np.concatenate([episode.reward for episode in rollouts.episodes]).mean())
    report = {}
    for step in range(1, max(horizons) + 1):
        # Cases whose episode is over are imagined along, at a clamped time, and left out of every mean.
        now = torch.clamp(time + step - 1, max=sequences.num_steps - 1)
        reached = (time + step <= sequences.num_steps) & sequences.valid[episode, now]
        if not reached.any():
            break

        before = state
        state, reward, _, hidden = imagine(
            model.memory, state, sequences.action[episode, now], hidden, config, generator
        )
        if step in horizons:
            target = _at(truth, episode, torch.clamp(time + step, max=sequences.num_steps))
            true_reward = sequences.reward[episode, now]
            drop = before.cost - state.cost
            report[step] = {"cases": float(reached.sum())}
            report[step] |= _state_errors(state, target, known, reached)
            report[step] |= {
                "reward": _mean(reward - true_reward, reached),
                "reward_mean": _mean(mean_reward - true_reward, reached),
                "reward_minus_cost_drop": _mean(reward - drop, reached),
            }
    return report


@torch.no_grad()
def latent_spread(z: Tensor) -> dict[str, float]:
    """The spread of z (G, Z) over graphs, which shows whether V has collapsed.

    Least and mean variance over its dimensions (1 by construction on the graphs of the fit), and the effective number
    of dimensions, (sum of eigenvalues)^2 / sum of their squares.
    """
    centred = z - z.mean(dim=0)
    eigenvalues = torch.linalg.eigvalsh(centred.T @ centred / len(z)).clamp_min(0.0)
    variance = z.var(dim=0, correction=0)
    return {
        "latent_variance_min": float(variance.min()),
        "latent_variance_mean": float(variance.mean()),
        "latent_effective_dimensions": float(eigenvalues.sum() ** 2 / (eigenvalues**2).sum()),
    }


def _state_errors(state: State, target: State, known: State, reached: Tensor) -> dict[str, float]:
    """Errors of the predicted state and of its baseline, the last known state, over the cases reached."""
    errors = {}
    for name, field in (("latent", "z"), ("counts", "counts"), ("cost", "cost")):
        true = getattr(target, field)
        errors[name] = _mean(getattr(state, field) - true, reached)
        errors[f"{name}_copy"] = _mean(getattr(known, field) - true, reached)

    valid = target.counts[reached] > 0
    majority = valid.float().mean(dim=0)
    errors["rule_mask"] = float(((state.counts[reached] > 0) == valid).float().mean())
    errors["rule_mask_copy"] = float(((known.counts[reached] > 0) == valid).float().mean())
    errors["rule_mask_majority"] = float(torch.maximum(majority, 1.0 - majority).mean())
    return errors


def _at(state: State, episode: Tensor, time: Tensor) -> State:
    return State(state.z[episode, time], state.counts[episode, time], state.cost[episode, time])


def _mean(error: Tensor, reached: Tensor) -> float:
    return float(error[reached].abs().mean())
