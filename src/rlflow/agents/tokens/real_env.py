"""Episodes on a real graph, side by side, which look to a policy as dreams do.

    env = RealTokenEnv(process, RealObserver(world_model), RealEpisodesConfig(num_envs=16, max_steps=12))
    real_return(process, world_model, controller, max_steps=12)          beside dream_score(dream, controller, seed=0)

The reward is what a rewrite saves by price, unless another is given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from gymnasium import spaces

from rlflow.agents.real_episodes import NOTHING, RealEpisodes
from rlflow.agents.scores import mean_return
from rlflow.agents.selection import Trial
from rlflow.agents.tokens.controller import TokenController
from rlflow.agents.tokens.real_observation import RealObserver, Seen
from rlflow.cost.base import Cost
from rlflow.environments.rewards import Reward, RewardConfig, reward_of
from rlflow.environments.token_process import Situation, TokenProcess
from rlflow.ir.graph import Graph
from rlflow.world_model.tokens.model import TokenWorldModel
from rlflow.world_model.tokens.observation import TokenLayout


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
    """An episode on its way: where it is, the kinds that the policy sees, (K,) int64 places, the graphs that it went
    through, and the kinds that it took.
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
    return Trial(mean_return(env, controller.act), env.rewrites)


def final_graph(process: TokenProcess, model: TokenWorldModel, controller: TokenController, max_steps: int) -> Graph:
    """The graph in which that episode ends."""
    env = RealTokenEnv(process, RealObserver(model), RealEpisodesConfig(num_envs=1, max_steps=max_steps))
    observation: Any = env.reset()
    done, infos = np.zeros(1, bool), list[dict[str, Any]]()
    while not done.all():
        observation, _, done, infos = env.step(controller.act(observation))
    graph: Graph = infos[0]["final_graph"]
    return graph


class RealTokenEnv(RealEpisodes[_Episode]):
    """Observations and actions are those of `TokenDreamEnv`, rewards are in percent."""

    def __init__(
        self,
        process: TokenProcess,
        observer: RealObserver,
        config: RealEpisodesConfig,
        reward: Reward | None = None,
    ) -> None:
        self.process, self.observer, self.config = process, observer, config
        self.layout = TokenLayout(config.max_kinds, observer.width)
        observed = spaces.Box(-np.inf, np.inf, (self.layout.size,), np.float32)
        paid = reward or reward_of(RewardConfig())
        super().__init__(config.num_envs, config.max_steps, observed, config.max_kinds, paid)
        self._start = process.start()
        self._visited_start = self._visit(self._start)
        self.begin()

    def begin(self) -> None:
        """Begin all episodes."""
        self._first = self.observer.first(self._start)
        super().begin()

    def new_episode(self) -> _Episode:
        """Begin an episode."""
        return _Episode(self._start, self._first, self._shown(self._first), [self._visited_start])

    def choice(self, episode: _Episode, action: int) -> int:
        """Return the kind that is shown at a place."""
        return int(episode.shown[action]) if action < len(episode.shown) else NOTHING

    def take(self, episode: _Episode, choice: int) -> _Visited:
        """Carry out a rewrite of a kind."""
        episode.situation, step = self.process.step(episode.situation, choice)
        episode.seen = self.observer.after(episode.seen, step, episode.situation)
        episode.shown = self._shown(episode.seen)
        return self._visit(episode.situation)

    def observation(self, episode: _Episode) -> np.ndarray:
        """(size,) float32: the kinds that are shown, then empty places, which are 0, then the cost."""
        flat = self.observer.observation(episode.seen.rows(episode.shown), self.process.unit_percent)
        empty = np.zeros(self.layout.size - len(flat), np.float32)
        return np.concatenate([flat[:-1], empty, flat[-1:]])

    def state_dict(self) -> dict[str, Any]:
        """Return what each episode took so far, what V has read, what was measured, and the number of rewrites."""
        return super().state_dict() | {"observer": self.observer.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from what `state_dict` returned; the episodes are played again, which does not count."""
        self.observer.load_state_dict(state["observer"])
        super().load_state_dict(state)

    def _visit(self, situation: Situation) -> _Visited:
        return _Visited(situation.graph, self.process.evaluator.cost_model.cost)

    def _shown(self, seen: Seen) -> np.ndarray:
        return self.observer.foremost(seen, self.config.max_kinds)
