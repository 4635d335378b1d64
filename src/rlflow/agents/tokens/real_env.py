"""Episodes on a real graph, side by side, which look to a policy as dreams do.

    env = RealTokenEnv(process, RealObserver(world_model), RealEpisodesConfig(num_envs=16, max_steps=12))
    real_return(process, world_model, controller, max_steps=12)          beside dream_score(dream, controller, seed=0)

Each step is a rewrite that is carried out, and `interactions` counts them. The reward is any of `environments.rewards`;
a measured one remembers its measurements for all episodes.

The invariant: an episode depends on its actions alone, so what is kept of one is which kinds it took, and what was
measured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from gymnasium import spaces

from rlflow.agents.scores import mean_return
from rlflow.agents.selection import Trial
from rlflow.agents.tokens.controller import TokenController
from rlflow.agents.tokens.real_observation import RealObserver, Seen
from rlflow.cost.base import Cost
from rlflow.environments.rewards import Reward, RewardConfig, reward_of
from rlflow.environments.token_process import Situation, TokenProcess
from rlflow.environments.transition import Transition
from rlflow.ir.graph import Graph
from rlflow.world_model.batch_env import BatchEnv
from rlflow.world_model.dream_env import INVALID_ACTION_REWARD
from rlflow.world_model.tokens.model import TokenWorldModel
from rlflow.world_model.tokens.observation import TokenLayout

_NOTHING = -1  # what an invalid action takes


@dataclass(frozen=True)
class RealEpisodesConfig:
    """Episodes of at most `max_steps` rewrites from the original, in which a policy sees at most `max_kinds` kinds."""

    num_envs: int = 16
    max_steps: int = 12
    max_kinds: int = 128


@dataclass(frozen=True, eq=False)
class _Visited:
    """A graph on the way, which is priced if a reward asks for its cost."""

    graph: Graph
    price: Callable[[Graph], Cost]

    @cached_property
    def cost(self) -> Cost:
        return self.price(self.graph)


@dataclass
class _Episode:
    """An episode on its way: where it is, the kinds that the policy sees, (K,) int64 places, those that it took, and
    the graphs that it went through.
    """

    situation: Situation
    seen: Seen
    shown: np.ndarray
    visited: list[_Visited]
    taken: list[int] = field(default_factory=list)


def real_return(
    process: TokenProcess,
    model: TokenWorldModel,
    controller: TokenController,
    max_steps: int,
    reward: Reward | None = None,
) -> Trial:
    """The return, in percent, of one episode of the controller's most probable actions, with its rewrites."""
    env = RealTokenEnv(process, RealObserver(model), RealEpisodesConfig(num_envs=1, max_steps=max_steps), reward)
    return Trial(mean_return(env, controller.act), env.interactions)


def final_graph(process: TokenProcess, model: TokenWorldModel, controller: TokenController, max_steps: int) -> Graph:
    """The graph in which that episode ends."""
    env = RealTokenEnv(process, RealObserver(model), RealEpisodesConfig(num_envs=1, max_steps=max_steps))
    observation: Any = env.reset()
    done, infos = np.zeros(1, bool), list[dict[str, Any]]()
    while not done.all():
        observation, _, done, infos = env.step(controller.act(observation))
    graph: Graph = infos[0]["final_graph"]
    return graph


class RealTokenEnv(BatchEnv):
    """B episodes from the original. Observations and actions are those of `TokenDreamEnv`, rewards are in percent.

    An episode ends by terminate, and is truncated at `max_steps`; its info has `TimeLimit.truncated`,
    `terminal_observation` and `final_graph`. An invalid action costs 100 and changes nothing. The reward is what the
    rewrite saves by price (`incremental`), unless another is given.
    """

    def __init__(
        self,
        process: TokenProcess,
        observer: RealObserver,
        config: RealEpisodesConfig,
        reward: Reward | None = None,
    ) -> None:
        self.process, self.observer, self.config = process, observer, config
        self.reward = reward or reward_of(RewardConfig())
        self.layout = TokenLayout(config.max_kinds, observer.width)
        self.interactions = 0
        super().__init__(
            config.num_envs,
            spaces.Box(-np.inf, np.inf, (self.layout.size,), np.float32),
            spaces.Discrete(config.max_kinds + 1),
        )
        self._start = process.start()
        self._visited_start = self._visit(self._start)
        self._first = observer.first(self._start)
        self._episodes = self._begun()

    def reset(self) -> np.ndarray:
        """Begin all episodes anew; returns their observations."""
        self._episodes = self._begun()
        return self._observations()

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Carry out the actions; episodes that end begin anew in the same call."""
        reward, done = np.zeros(self.num_envs, np.float32), np.zeros(self.num_envs, bool)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for place, (action, episode) in enumerate(zip(self._actions.tolist(), self._episodes, strict=True)):
            terminated = action == self.config.max_kinds
            done[place] = terminated or len(episode.taken) + 1 >= self.config.max_steps
            reward[place] = self._act(episode, action, ended=bool(done[place]))
            if done[place]:
                infos[place] = {
                    "terminal_observation": self._observation(episode),
                    "TimeLimit.truncated": not terminated,
                    "final_graph": episode.situation.graph,
                }
                self._episodes[place] = self._new_episode()
        return self._observations(), reward, done, infos

    def state_dict(self) -> dict[str, Any]:
        """The kinds that each episode took so far, what V has read, what was measured, and the number of rewrites."""
        return {
            "taken": [list(episode.taken) for episode in self._episodes],
            "observer": self.observer.state_dict(),
            "reward": self.reward.state_dict(),
            "interactions": self.interactions,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from what `state_dict` returned; the episodes are played again, which does not count."""
        self.observer.load_state_dict(state["observer"])
        self.reward.load_state_dict(state["reward"])
        self._first = self.observer.first(self._start)
        self._episodes = self._begun()
        for episode, taken in zip(self._episodes, state["taken"], strict=True):
            for kind in taken:
                self._take(episode, kind)
        self.interactions = state["interactions"]

    def _begun(self) -> list[_Episode]:
        return [self._new_episode() for _ in range(self.config.num_envs)]

    def _new_episode(self) -> _Episode:
        return _Episode(self._start, self._first, self._shown(self._first), [self._visited_start])

    def _visit(self, situation: Situation) -> _Visited:
        return _Visited(situation.graph, self.process.evaluator.cost_model.cost)

    def _act(self, episode: _Episode, action: int, ended: bool) -> float:
        """Carry out an action; returns its reward."""
        if action == self.config.max_kinds:
            return self.reward(Transition([*episode.visited, episode.visited[-1]], ended))
        kind = int(episode.shown[action]) if action < len(episode.shown) else _NOTHING
        self._take(episode, kind)
        return self.reward(Transition(episode.visited, ended)) if kind != _NOTHING else INVALID_ACTION_REWARD

    def _take(self, episode: _Episode, kind: int) -> None:
        """Carry out a rewrite of a kind, if it is one."""
        episode.taken.append(kind)
        if kind == _NOTHING:
            return
        episode.situation, step = self.process.step(episode.situation, kind)
        episode.seen = self.observer.after(episode.seen, step, episode.situation)
        episode.shown = self._shown(episode.seen)
        episode.visited.append(self._visit(episode.situation))
        self.interactions += 1

    def _shown(self, seen: Seen) -> np.ndarray:
        return self.observer.foremost(seen, self.config.max_kinds)

    def _observations(self) -> np.ndarray:
        return np.stack([self._observation(episode) for episode in self._episodes])

    def _observation(self, episode: _Episode) -> np.ndarray:
        """(size,) float32: the kinds that are shown, then empty places, which are 0, then the cost."""
        flat = self.observer.observation(episode.seen.rows(episode.shown), self.process.unit_percent)
        empty = np.zeros(self.layout.size - len(flat), np.float32)
        return np.concatenate([flat[:-1], empty, flat[-1:]])
