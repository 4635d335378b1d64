"""The acceptance test of V, M and C together: trained in the dream alone, good in reality."""

import numpy as np
import pytest
import torch
from support.token_env import TokenEnv, collect

from rlflow.agents.dream_training import train_in_dream
from rlflow.agents.graph_level.controller import Controller
from rlflow.agents.graph_level.controller_config import ControllerConfig
from rlflow.agents.graph_level.dream import GraphLevelDream
from rlflow.agents.random_agent import RandomAgent
from rlflow.agents.selection import Trial
from rlflow.world_model.graph_level.diagnostics import open_loop
from rlflow.world_model.graph_level.graph_level_config import GraphLevelDreamConfig, GraphLevelModelConfig
from rlflow.world_model.graph_level.latent_state import advance, begin, layout_of
from rlflow.world_model.graph_level.model import GraphLevelModel
from rlflow.world_model.graph_level.trainer import fit_world_model
from rlflow.world_model.held_out import split_episodes

HORIZON = 150


def act_in_reality(model: GraphLevelModel, controller: Controller, env: TokenEnv) -> float:
    """Largest improvement in percent on the way of one deterministic episode."""
    env.reset()
    layout, lowest = layout_of(model), env.cost
    seen = begin(model, env.arrays(), env.counts(), env.cost)
    for _ in range(HORIZON):
        rule, location = (int(part) for part in controller.act(seen.observation(layout)))
        if rule == env.action_space.terminate:
            break
        env.step(rule, location)
        lowest = min(lowest, env.cost)
        seen = advance(model, seen, (rule, location), env.arrays(), env.counts(), env.cost)
    return 100.0 - lowest


@pytest.mark.study  # two minutes
def test_a_controller_trained_in_the_dream_reaches_ninety_percent_of_the_optimum() -> None:
    """12 rules, 96 profitable steps, a harmful, a ruinous, an enabling, two undoing and two idle rules; 80 random
    episodes with the paper's uniform agent, which get to about 12 % where the optimum is 30 %. The snapshot is kept
    that does best in reality, as the pipeline keeps it, and so do most others: late in the training PPO may find where
    the dream is wrong, and with which seed and on which processor it does, is chance. Observed: 100 %, in the median
    99 %, the last snapshot between 81 and 100 % (50 s of fit, 50 s of PPO on one core)."""
    torch.set_num_threads(1)
    env = TokenEnv()
    rollouts = collect(env, RandomAgent(env.action_space, 0.005), episodes=80, max_steps=HORIZON, seed=0)
    random_best = 100.0 - min(episode.cost.min() for episode in rollouts.episodes)
    assert random_best < 0.6 * env.optimum  # else the task would be too easy to tell anything

    fit = GraphLevelModelConfig(epochs=40)  # of few episodes more passes
    model = fit_world_model(rollouts, fit, seed=0)
    _, held_out = split_episodes(rollouts.episodes, fit.held_out_fraction, seed=0)
    report = open_loop(model, rollouts, model.latents(rollouts), held_out, GraphLevelDreamConfig(), seed=0)
    for horizon in (1, 20, 50):
        errors = report[horizon]
        assert errors["cases"] > 100
        for name, baseline in (
            ("latent", "latent_copy"),
            ("counts", "counts_copy"),
            ("cost", "cost_copy"),
            ("reward", "reward_mean"),
        ):
            assert errors[name] < 0.75 * errors[baseline], (horizon, name)  # up to 0.61 on some processors
        assert errors["rule_mask"] > max(errors["rule_mask_copy"], errors["rule_mask_majority"])

    scores: list[float] = []

    def in_reality(controller: Controller) -> Trial:
        scores.append(act_in_reality(model, controller, env))
        return Trial(scores[-1], HORIZON)

    dream = GraphLevelDream.of(model, rollouts, GraphLevelDreamConfig(max_steps=HORIZON))
    training = train_in_dream(dream, ControllerConfig(), seed=0, judge=in_reality)
    improvement = act_in_reality(model, training.controller, env)
    assert improvement >= 0.9 * env.optimum
    assert np.median(scores) >= 0.9 * env.optimum
    assert improvement > random_best


def test_random_agents_of_the_synthetic_environment_cover_its_rules() -> None:
    """The acceptance test is not vacuous: every rule fires, and harmful ones do harm."""
    env = TokenEnv()
    rollouts = collect(env, RandomAgent(env.action_space, 0.005), episodes=5, max_steps=HORIZON, seed=0)
    applied = np.concatenate([episode.action[:, 0] for episode in rollouts.episodes])
    assert set(range(len(env.rules))) <= set(applied.tolist())
    rewards = np.concatenate([episode.reward for episode in rollouts.episodes])
    assert rewards.min() < -0.9
