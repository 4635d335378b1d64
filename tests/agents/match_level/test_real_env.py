"""Episodes on a real graph look to a policy as its dreams do, and their returns are what it saves."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from support.formulations import token_model
from support.token_worlds import small_process, small_token_rollouts

from rlflow.agents.match_level.controller import MatchLevelController, MatchLevelControllerArguments
from rlflow.agents.match_level.pointer_config import MatchLevelControllerConfig, RealEpisodesConfig
from rlflow.agents.match_level.real_env import final_graph, real_episodes, real_return
from rlflow.world_model.match_level.diagnostics import labels
from rlflow.world_model.match_level.dream_env import MatchLevelDreamEnv
from rlflow.world_model.match_level.match_deltas import match_deltas
from rlflow.world_model.match_level.match_level_config import MatchLevelDreamConfig
from rlflow.world_model.match_level.precomputed import PrecomputedModel
from rlflow.world_model.match_level.starts import visited_states

CONFIG = RealEpisodesConfig(num_envs=3, max_steps=4, max_kinds=64)


def test_a_dream_that_begins_at_the_original_looks_the_same() -> None:
    """The classes stand in another order. The matches that are apart are known of the original."""
    rollouts, model = small_token_rollouts(), token_model()
    starts = visited_states(rollouts.episodes, CONFIG.max_kinds)
    sets = match_deltas(rollouts.episodes, 8).sets
    config = MatchLevelDreamConfig(num_envs=1, max_kinds=CONFIG.max_kinds)
    known = labels([replace(e, states=e.states[:1], steps=()) for e in rollouts.episodes if e.states[0].cost == 100])
    precomputed = PrecomputedModel.of(model.memory, model.read(rollouts), sets, 4)
    precomputed = precomputed.counted(torch.from_numpy(known.token), torch.from_numpy(known.apart / known.count))
    dream = MatchLevelDreamEnv(model.memory, precomputed, starts, config, seed=0)
    original = next(
        place
        for place, (cost, initial) in enumerate(zip(starts.states.cost.tolist(), starts.initial.tolist(), strict=True))
        if initial and cost == 100.0
    )
    dreamed = dream.observe(dream.start_states(torch.tensor([original])))[0]
    real = real_episodes(small_process(), model, CONFIG).reset()[0]
    rows = [sorted(map(tuple, np.round(one[:-1].reshape(CONFIG.max_kinds, -1), 4))) for one in (dreamed, real)]
    np.testing.assert_allclose(rows[0], rows[1], atol=1e-3)
    assert dreamed[-1] == real[-1]


def test_the_return_of_a_controller_is_what_its_episode_saves() -> None:
    """And the graph in which that episode ends costs so much less."""
    model, process = token_model(), small_process()
    config = MatchLevelControllerConfig(width=8, terminate_bias=-20.0)
    controller = MatchLevelController.untrained(MatchLevelControllerArguments.of(model, config, 3), seed=0)
    trial = real_return(process, model, controller, 5)
    assert trial.rewrites == 5
    last = final_graph(process, model, controller, 5)
    assert trial.score_percent == pytest.approx(100.0 - process.at(last).percent, abs=1e-4)
    assert abs(trial.score_percent) > 1e-6
