"""Padding never counts, every term is weighted, shapes are asserted."""

import math
from dataclasses import replace

import pytest
import torch
from support.memories import L, R, actions, memory, states

from rlflow.errors import InputError, RLFlowError
from rlflow.world_model.graph_level.graph_level_config import GraphLevelModelConfig
from rlflow.world_model.graph_level.losses import masked_mean, step_losses, world_model_loss
from rlflow.world_model.graph_level.mdn_rnn import Change

B, T = 4, 5
WEIGHTS = GraphLevelModelConfig().loss_weights


def change(time: int = T) -> Change:
    generator = torch.Generator().manual_seed(5)
    return Change(
        latent=torch.randn(B, time, 4, generator=generator),
        reward=torch.randn(B, time, generator=generator),
        terminated=torch.rand(B, time, generator=generator) < 0.5,
        counts=torch.randint(-2, 3, (B, time, R), generator=generator).float(),
        cost=torch.randn(B, time, generator=generator),
        rule=actions(B, time)[..., 0],
    )


def test_padding_changes_nothing() -> None:
    """Garbage on padded steps, prediction and target alike, leaves every loss and every gradient as they are."""
    lengths = torch.tensor([5, 3, 4, 1])
    valid = torch.arange(T) < lengths[:, None]
    results = []
    for garbage in (0.0, 1e6):
        model, known, truth = memory(), states(B, T), change()
        known = replace(known, z=torch.where(valid[..., None], known.z, garbage))
        truth = replace(
            truth,
            latent=torch.where(valid[..., None], truth.latent, garbage),
            reward=torch.where(valid, truth.reward, garbage),
            cost=torch.where(valid, truth.cost, -garbage),
        )
        prediction, _, _ = model.sequence(known, actions(B, T), model.initial_hidden(B))
        loss, terms = world_model_loss(prediction, truth, valid, model, WEIGHTS)
        loss.backward()
        results.append((terms, [p.grad for p in model.parameters()]))
    assert results[0][0] == results[1][0]
    torch.testing.assert_close(results[0][1], results[1][1], rtol=0, atol=0)


def test_masked_mean_is_the_mean_over_valid_steps() -> None:
    loss, valid = torch.tensor([[1.0, 2.0], [6.0, torch.inf]]), torch.tensor([[True, True], [True, False]])
    assert masked_mean(loss, valid) == 3.0
    with pytest.raises(RLFlowError, match="under a mask of shape"):
        masked_mean(loss[..., None], valid)


def test_every_loss_is_per_step() -> None:
    """A prototype's loss silently became (T, B, T, B)."""
    model = memory()
    prediction, _, _ = model.sequence(states(B, T), actions(B, T), model.initial_hidden(B))
    losses = step_losses(prediction, change(), model)
    assert {loss.shape for loss in losses.values()} == {(B, T)}


def test_the_latent_loss_is_in_units_of_the_change() -> None:
    """Scaling targets and scale alike leaves the loss as it is."""
    values = []
    for scale in (1.0, 10.0):
        model = memory()
        model.latent_change_scale.fill_(scale)
        prediction, _, _ = model.sequence(states(B, T), actions(B, T), model.initial_hidden(B))
        values.append(step_losses(prediction, replace(change(), latent=scale * change().latent), model)["latent"])
    torch.testing.assert_close(values[0], values[1], rtol=1e-4, atol=1e-5)


def test_counts_cost_entropy_of_a_uniform_guess() -> None:
    model = memory()
    prediction, _, _ = model.sequence(states(B, T), actions(B, T), model.initial_hidden(B))
    flat = replace(prediction, count_change_logits=torch.zeros(B, T, R, 5))
    torch.testing.assert_close(step_losses(flat, change(), model)["counts"], torch.full((B, T), math.log(5)))
    assert L > 2  # changes beyond D = 2 are possible, and clipped: no index error
    step_losses(flat, replace(change(), counts=change().counts * 9), model)


def test_weights_must_name_exactly_the_losses() -> None:
    model = memory()
    prediction, _, _ = model.sequence(states(B, T), actions(B, T), model.initial_hidden(B))
    with pytest.raises(InputError, match="give each of these a weight"):
        world_model_loss(prediction, change(), torch.ones(B, T, dtype=torch.bool), model, {"latent": 1.0})
