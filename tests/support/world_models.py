"""Small rollouts, one small world model fitted on them, and dreams of it."""

import torch

from rlflow.agents.random_agent import RandomAgent
from rlflow.representation.rollouts import Rollouts
from rlflow.world_model.graph_level.dream_env import GraphLevelDreamEnv, visited_states
from rlflow.world_model.graph_level.graph_level_config import GraphLevelDreamConfig, GraphLevelModelConfig
from rlflow.world_model.graph_level.model import GraphLevelModel
from support.token_env import TokenEnv, collect

SMALL = GraphLevelModelConfig(
    latent=6,
    encoder_width=16,
    encoder_layers=2,
    encoder_epochs=2,
    encoder_steps=10,
    encoder_batch=16,
    hidden=24,
    mixtures=3,
    rule_embedding=4,
    head_width=32,
    epochs=6,
    episodes_per_batch=4,
    sequence_length=7,
    held_out_fraction=0.2,
)


def small_rollouts() -> Rollouts:
    env = TokenEnv(layers=2, max_locations=8)
    return collect(env, RandomAgent(env.action_space, terminate_probability=0.05), episodes=20, max_steps=15, seed=0)


def small_dream(world_model: GraphLevelModel, rollouts: Rollouts) -> GraphLevelDreamEnv:
    config = GraphLevelDreamConfig(num_envs=8, max_steps=12)
    return GraphLevelDreamEnv(world_model, visited_states(world_model, rollouts), config, seed=0)


def weights(model: GraphLevelModel) -> dict[str, torch.Tensor]:
    return dict(model.state_dict())


def assert_same(one: GraphLevelModel, two: GraphLevelModel) -> None:
    for name, value in weights(one).items():
        assert torch.equal(value, weights(two)[name]), name
