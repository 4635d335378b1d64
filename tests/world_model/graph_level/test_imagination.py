"""What a dream may claim: no reward, count or z that the rollouts have not shown."""

from dataclasses import replace

import pytest
import torch

from rlflow.representation.rollouts import Rollouts
from rlflow.world_model.graph_level.dream_env import Starts, visited_states
from rlflow.world_model.graph_level.graph_level_config import GraphLevelDreamConfig
from rlflow.world_model.graph_level.imagination import imagine
from rlflow.world_model.graph_level.mdn_rnn import State
from rlflow.world_model.graph_level.model import GraphLevelModel

CONFIG = GraphLevelDreamConfig()


@pytest.fixture(scope="module")
def starts(world_model: GraphLevelModel, rollouts: Rollouts) -> Starts:
    return visited_states(world_model, rollouts)


def first_valid(counts: torch.Tensor) -> torch.Tensor:
    rule = (counts > 0).float().argmax(dim=-1)
    return torch.stack([rule, torch.zeros_like(rule)], dim=-1)


@pytest.mark.parametrize("temperature", [0.0, 1.0, 50.0])
def test_predictions_stay_within_what_was_seen(
    world_model: GraphLevelModel, starts: Starts, temperature: float
) -> None:
    memory, generator = world_model.memory, torch.Generator().manual_seed(0)
    state, hidden = starts.state, starts.hidden
    config = replace(CONFIG, temperature=temperature, count_changes="sample", pessimism=0.0)
    for _ in range(20):
        action = first_valid(state.counts)
        state, reward, _, hidden = imagine(memory, state, action, hidden, config, generator)
        assert (reward >= memory.reward_low[action[:, 0]]).all()
        assert (reward <= memory.reward_high[action[:, 0]]).all()
        assert ((state.counts >= 0) & (state.counts <= memory.max_locations)).all()
        assert (state.counts == state.counts.round()).all()
        assert (state.z >= memory.state_low[: memory.latent]).all()
        assert (state.z <= memory.state_high[: memory.latent]).all()


def test_pessimism_takes_the_expected_error_off_a_reward(world_model: GraphLevelModel, starts: Starts) -> None:
    """Not vacuous: the model expects to be off by something everywhere."""
    action = first_valid(starts.state.counts)
    rewards = []
    for pessimism in (0.0, 1.0, 2.0):
        config = replace(CONFIG, pessimism=pessimism)
        rewards.append(imagine(world_model.memory, starts.state, action, starts.hidden, config, None)[1])
    sigma = world_model.memory.step(starts.state, action, starts.hidden)[0].reward_sigma
    assert (sigma > 0).all()
    torch.testing.assert_close(rewards[0] - rewards[1], sigma)
    torch.testing.assert_close(rewards[0] - rewards[2], 2 * sigma)


def test_an_absurd_reward_head_cannot_be_exploited(world_model: GraphLevelModel, starts: Starts) -> None:
    memory = world_model.memory
    action = first_valid(starts.state.counts)
    kept = memory.reward_scale.clone()
    memory.reward_scale.mul_(1e6)
    try:
        _, reward, _, _ = imagine(memory, starts.state, action, starts.hidden, CONFIG, None)
    finally:
        memory.reward_scale.copy_(kept)
    assert (reward <= memory.reward_high.max()).all()


def test_terminate_ends_and_leaves_the_graph_alone(world_model: GraphLevelModel, starts: Starts) -> None:
    memory = world_model.memory
    action = torch.tensor([[memory.num_rules, 0]]).expand(len(starts.initial), 2)
    state, reward, terminated, _ = imagine(memory, starts.state, action, starts.hidden, CONFIG, None)
    assert terminated.all()
    for name in ("z", "counts", "cost"):
        assert torch.equal(getattr(state, name), getattr(starts.state, name))
    assert not reward.any()  # terminate never gained anything in these rollouts


def test_temperature_spreads_the_dream(world_model: GraphLevelModel, starts: Starts) -> None:
    """From one state, many times: none of it at 0, more at 4 than at 1."""
    many = torch.zeros(500, dtype=torch.int64)
    state = State(starts.state.z[many], starts.state.counts[many], starts.state.cost[many])
    hidden = (starts.hidden[0][many], starts.hidden[1][many])
    spread = []
    for temperature in (0.0, 1.0, 4.0):
        following, _, _, _ = imagine(
            world_model.memory,
            state,
            first_valid(state.counts),
            hidden,
            replace(CONFIG, temperature=temperature),
            torch.Generator().manual_seed(0),
        )
        spread.append((following.z - state.z).std(dim=0).mean().item())
    assert spread[0] == pytest.approx(0.0, abs=1e-6)
    assert 0 < spread[1] < spread[2]
