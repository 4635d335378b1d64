"""The fit trains all it should, on what it should, and is the same run whatever interrupts it."""

from dataclasses import replace

import pytest
import torch
from support.world_models import SMALL, assert_same

from rlflow.errors import InputError
from rlflow.representation.rollouts import Rollouts
from rlflow.world_model.graph_level.model import GraphLevelModel
from rlflow.world_model.graph_level.trainer import fit_world_model


def test_every_parameter_of_v_and_m_is_trained(rollouts: Rollouts, world_model: GraphLevelModel) -> None:
    """The prototypes' encoder was outside the tape and never moved. Against a run without a gradient step."""
    untrained = fit_world_model(rollouts, replace(SMALL, encoder_epochs=0, epochs=0), seed=0)
    before, after = dict(untrained.named_parameters()), dict(world_model.named_parameters())
    assert {name for name in after if torch.equal(before[name], after[name])} == set()


def test_the_same_seed_gives_the_same_weights(rollouts: Rollouts, world_model: GraphLevelModel) -> None:
    torch.rand(3)  # torch's global state must not matter
    assert_same(fit_world_model(rollouts, SMALL, seed=0), world_model)
    other = fit_world_model(rollouts, SMALL, seed=1)
    assert not torch.equal(other.memory.lstm.weight_ih, world_model.memory.lstm.weight_ih)


def test_rollouts_without_a_step_are_refused(rollouts: Rollouts) -> None:
    with pytest.raises(InputError, match="collect_rollouts"):
        fit_world_model(replace(rollouts, episodes=()), SMALL, seed=0)
