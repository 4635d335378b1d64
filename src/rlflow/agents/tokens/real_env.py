"""Episodes on a real graph, side by side, which look to a policy as dreams do.

    env = RealTokenEnv(process, RealObserver(world_model), RealEpisodesConfig(num_envs=16, max_steps=12))
    real_return(process, world_model, controller, max_steps=12)          beside dream_score(dream, controller, seed=0)

Each step is a rewrite that is carried out, and `interactions` counts them.

The invariant: an episode depends on its actions alone, so what is kept of one is which kinds it took.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from gymnasium import spaces

from rlflow.agents.scores import mean_return
from rlflow.agents.selection import Trial
from rlflow.agents.tokens.controller import TokenController
from rlflow.agents.tokens.real_observation import RealObserver, Seen
from rlflow.environments.token_process import Situation, TokenProcess
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


@dataclass
class _Episode:
    """An episode on its way: where it is, the kinds that the policy sees, (K,) int64 places, and those it took."""

    situation: Situation
    seen: Seen
    shown: np.ndarray
    taken: list[int] = field(default_factory=list)


def real_return(process: TokenProcess, model: TokenWorldModel, controller: TokenController, max_steps: int) -> Trial:
    """The return, in percent, of one episode of the controller's most probable actions, with its rewrites."""
    env = RealTokenEnv(process, RealObserver(model), RealEpisodesConfig(num_envs=1, max_steps=max_steps))
    return Trial(mean_return(env, controller.act), env.interactions)


class RealTokenEnv(BatchEnv):
    """B episodes from the original. Observations and actions are those of `TokenDreamEnv`, rewards are in percent.

    An episode ends by terminate, and is truncated at `max_steps` with `TimeLimit.truncated` and `terminal_observation`
    in its info. An invalid action costs 100 and changes nothing.
    """

    def __init__(self, process: TokenProcess, observer: RealObserver, config: RealEpisodesConfig) -> None:
        self.process, self.observer, self.config = process, observer, config
        self.layout = TokenLayout(config.max_kinds, observer.width)
        self.interactions = 0
        super().__init__(
            config.num_envs,
            spaces.Box(-np.inf, np.inf, (self.layout.size,), np.float32),
            spaces.Discrete(config.max_kinds + 1),
        )
        self._start = process.start()
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
            if not terminated:
                reward[place] = self._act(episode, action)
            done[place] = terminated or len(episode.taken) >= self.config.max_steps
            if done[place]:
                last = self._observation(episode)
                infos[place] = {"terminal_observation": last, "TimeLimit.truncated": not terminated}
                self._episodes[place] = self._new_episode()
        return self._observations(), reward, done, infos

    def state_dict(self) -> dict[str, Any]:
        """The kinds that each episode took so far, what V has read, and the rewrites that were carried out."""
        return {
            "taken": [list(episode.taken) for episode in self._episodes],
            "observer": self.observer.state_dict(),
            "interactions": self.interactions,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from what `state_dict` returned; the episodes are played again, which does not count."""
        self.observer.load_state_dict(state["observer"])
        self._first = self.observer.first(self._start)
        self._episodes = self._begun()
        for episode, taken in zip(self._episodes, state["taken"], strict=True):
            for kind in taken:
                self._take(episode, kind)
        self.interactions = state["interactions"]

    def _begun(self) -> list[_Episode]:
        return [self._new_episode() for _ in range(self.config.num_envs)]

    def _new_episode(self) -> _Episode:
        return _Episode(self._start, self._first, self._shown(self._first))

    def _act(self, episode: _Episode, action: int) -> float:
        return self._take(episode, int(episode.shown[action]) if action < len(episode.shown) else _NOTHING)

    def _take(self, episode: _Episode, kind: int) -> float:
        """Carry out a rewrite of a kind; returns the reward, which is what it saved."""
        episode.taken.append(kind)
        if kind == _NOTHING:
            return INVALID_ACTION_REWARD
        episode.situation, step = self.process.step(episode.situation, kind)
        episode.seen = self.observer.after(episode.seen, step, episode.situation)
        episode.shown = self._shown(episode.seen)
        self.interactions += 1
        return step.reward

    def _shown(self, seen: Seen) -> np.ndarray:
        return self.observer.foremost(seen, self.config.max_kinds)

    def _observations(self) -> np.ndarray:
        return np.stack([self._observation(episode) for episode in self._episodes])

    def _observation(self, episode: _Episode) -> np.ndarray:
        """(size,) float32: the kinds that are shown, then empty places, which are 0, then the cost."""
        flat = self.observer.observation(episode.seen.rows(episode.shown), self.process.unit_percent)
        empty = np.zeros(self.layout.size - len(flat), np.float32)
        return np.concatenate([flat[:-1], empty, flat[-1:]])
