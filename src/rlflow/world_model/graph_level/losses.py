"""The losses of M, each (B, T) before it is averaged over the valid steps, so that padding never counts."""

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.nn import functional

from rlflow.errors import InputError, RLFlowError
from rlflow.world_model.graph_level.mdn_rnn import MDNRNN, Change, Prediction


def step_losses(prediction: Prediction, change: Change, model: MDNRNN) -> dict[str, Tensor]:
    """The losses of every step, by name, each (B, T).

    Negative log-likelihoods of latent (per dimension), reward, terminated and counts (per rule), and the Huber loss of
    cost. Reward and cost are in units of the applied rule's spread.
    """
    unit = model.latent_change_scale.log().sum()  # densities in units of each dimension's spread
    latent = -(prediction.latent_change.log_prob(change.latent) + unit) / model.latent

    reward_scale = model.reward_scale[change.rule]
    error = (prediction.reward - change.reward) / reward_scale
    reward = _gaussian(error, prediction.reward_sigma / reward_scale)

    terminated = functional.binary_cross_entropy_with_logits(
        prediction.terminated_logit, change.terminated.float(), reduction="none"
    )

    logits = prediction.count_change_logits.movedim(-1, 1)  # cross_entropy wants the classes second
    counts = functional.cross_entropy(logits, model.change_index(change.counts), reduction="none").mean(dim=-1)

    cost_scale = model.cost_change_scale[change.rule]
    cost = functional.smooth_l1_loss(prediction.cost_change / cost_scale, change.cost / cost_scale, reduction="none")

    return {"latent": latent, "reward": reward, "terminated": terminated, "counts": counts, "cost": cost}


def _gaussian(error: Tensor, sigma: Tensor) -> Tensor:
    """Negative log-likelihood of an error under N(0, sigma), without its constant."""
    return 0.5 * (error / sigma) ** 2 + sigma.log()


def masked_mean(loss: Tensor, valid: Tensor) -> Tensor:
    """Mean of loss (B, T) over the steps where valid (B, T)."""
    if loss.shape != valid.shape:
        raise RLFlowError(f"loss of shape {tuple(loss.shape)} under a mask of shape {tuple(valid.shape)}")
    # where, not a product: a padded step may be infinite
    return torch.where(valid, loss, 0.0).sum() / valid.sum().clamp_min(1)


def world_model_loss(
    prediction: Prediction, change: Change, valid: Tensor, model: MDNRNN, weights: Mapping[str, float]
) -> tuple[Tensor, dict[str, float]]:
    """The weighted sum of the losses, and each term. Raises InputError unless exactly these losses have a weight."""
    losses = step_losses(prediction, change, model)
    if set(losses) != set(weights):
        raise InputError(
            f"loss_weights name {sorted(weights)}, but the losses are {sorted(losses)}; give each of these a weight"
        )
    means = {name: masked_mean(loss, valid) for name, loss in losses.items()}
    total = sum((weights[name] * mean for name, mean in means.items()), torch.zeros(()))
    return total, {name: mean.item() for name, mean in means.items()}
