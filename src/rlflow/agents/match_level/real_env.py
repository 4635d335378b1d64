"""Episodes on a real graph, side by side, which look to a policy as dreams do.

env = real_episodes(process, world_model, RealEpisodesConfig(num_envs=16, max_steps=12))
real_return(process, world_model, controller, max_steps=12)          beside dream_score(dream, controller, seed=0)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from rlflow.agents.match_level.controller import MatchLevelController
from rlflow.agents.match_level.match_level_process import MatchLevelProcess
from rlflow.agents.match_level.pointer_config import RealEpisodesConfig
from rlflow.agents.real_episodes import RealEpisodes
from rlflow.agents.scores import mean_return
from rlflow.agents.selection import Trial
from rlflow.environments.rewards import Reward
from rlflow.ir.graph import Graph
from rlflow.processes.token_process import TokenProcess
from rlflow.world_model.match_level.model import MatchLevelModel
from rlflow.world_model.match_level.observation import TokenLayout


def real_episodes(
    process: TokenProcess, model: MatchLevelModel, config: RealEpisodesConfig, reward: Reward | None = None
) -> RealEpisodes[MatchLevelProcess]:
    """Make the environment; observations and actions are those of `MatchLevelDreamEnv`, rewards are in percent."""
    seen = MatchLevelProcess(process, model, config.max_kinds)
    size = TokenLayout(config.max_kinds, seen.width).size
    return RealEpisodes(
        seen,
        num_envs=config.num_envs,
        max_steps=config.max_steps,
        observed=spaces.Box(-np.inf, np.inf, (size,), np.float32),
        max_choices=config.max_kinds,
        reward=reward,
    )


def real_return(
    process: TokenProcess,
    model: MatchLevelModel,
    controller: MatchLevelController,
    max_steps: int,
    reward: Reward | None = None,
) -> Trial:
    """The return, in percent, of one episode of the controller's most probable actions, with its rewrites."""
    env = real_episodes(process, model, RealEpisodesConfig(num_envs=1, max_steps=max_steps), reward)
    return Trial(mean_return(env, controller.act), env.rewrites)


def final_graph(
    process: TokenProcess, model: MatchLevelModel, controller: MatchLevelController, max_steps: int
) -> Graph:
    """The graph in which that episode ends."""
    env = real_episodes(process, model, RealEpisodesConfig(num_envs=1, max_steps=max_steps))
    observation: Any = env.reset()
    done, infos = np.zeros(1, bool), list[dict[str, Any]]()
    while not done.all():
        observation, _, done, infos = env.step(controller.act(observation))
    graph: Graph = infos[0]["final_graph"]
    return graph
