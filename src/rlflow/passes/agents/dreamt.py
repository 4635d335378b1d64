"""The paper's world model on pass ordering: V, M and C of substitutions, unchanged, in an environment of another kind.

    agent = train_in_dream(config, transitions, sources, episode, seed=0)
    found = play(agent, transitions, "gpt2/step", PlayConfig(episodes=4), seed=0)   (`rlflow.passes.agents.playing`)

V and M are fitted on random episodes (`pass_rollouts`), and C is trained in their dream, where no pass is run. On a
real program, C sees what V makes of its graph, and M's memory of the passes so far.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from rlflow.agents import dream_training
from rlflow.agents.graph_level.controller import Controller
from rlflow.agents.graph_level.dream import GraphLevelDream
from rlflow.passes.agents.pass_agent_config import DreamtConfig
from rlflow.passes.agents.pass_rollouts import collect, cost_percent, counts_of
from rlflow.passes.agents.playing import Chooser
from rlflow.passes.environment.pass_ordering_env import Observation, PassOrderingConfig, PassOrderingEnv
from rlflow.passes.transitions import Transitions
from rlflow.representation.rollouts import Rollouts
from rlflow.world_model.graph_level import latent_state
from rlflow.world_model.graph_level.diagnostics import open_loop
from rlflow.world_model.graph_level.graph_level_config import GraphLevelDreamConfig
from rlflow.world_model.graph_level.latent_state import LatentState
from rlflow.world_model.graph_level.model import GraphLevelModel
from rlflow.world_model.graph_level.trainer import fit_world_model
from rlflow.world_model.held_out import split_episodes

OpenLoop = Mapping[int, Mapping[str, float]]
"""Passes ahead -> errors of what M foresees, beside their baselines (`rlflow.world_model.graph_level.diagnostics`)."""


@dataclass(frozen=True)
class DreamtAgent:
    """A world model and a controller that was trained in its dream.

    open_loop: how far the dream is from episodes that it was not fitted on. curve: the mean return of dreams, by
    updates in which one has ended.
    """

    model: GraphLevelModel
    controller: Controller
    episode: PassOrderingConfig
    open_loop: OpenLoop = field(default_factory=dict)
    curve: tuple[float, ...] = ()

    def chooser(self) -> Chooser:
        """Return what plays an episode."""
        return _Dreaming(self.model, self.controller)


def train_in_dream(
    config: DreamtConfig,
    transitions: Transitions,
    sources: Sequence[str],
    episode: PassOrderingConfig,
    *,
    seed: int,
    on_progress: Callable[[float, str], None] | None = None,
) -> DreamtAgent:
    """Collect random episodes on `sources`, fit the world model to them, and train a controller in its dream."""
    rollouts = collect(transitions, sources, episode, episodes=config.episodes, seed=seed, on_progress=on_progress)
    model = fit_world_model(rollouts, config.world_model, seed=seed)
    curve: list[float] = []
    trained = dream_training.train_in_dream(
        GraphLevelDream.of(model, rollouts, config.dream),
        config.controller,
        seed=seed,
        on_round=lambda _, metrics: curve.extend(_returns(metrics)),
    )
    foreseen = _open_loop(model, rollouts, config, seed)
    return DreamtAgent(model, trained.controller, episode, foreseen, tuple(curve))


def _returns(metrics: Mapping[str, float]) -> list[float]:
    """The mean return of the dreams that have ended in an update, if any has."""
    return [metrics["return_percent"]] if "return_percent" in metrics else []


def _open_loop(model: GraphLevelModel, rollouts: Rollouts, config: DreamtConfig, seed: int) -> OpenLoop:
    """The errors on the episodes that were held out, or on all if none was, in the dream of default settings."""
    training, held_out = split_episodes(rollouts.episodes, config.world_model.held_out_fraction, seed)
    latents, dream = model.latents(rollouts), GraphLevelDreamConfig(num_envs=1)
    return open_loop(model, rollouts, latents, held_out or training, dream, seed=seed)


class _Dreaming:
    """Prefers what the controller does, and remembers what M does of the episode."""

    def __init__(self, model: GraphLevelModel, controller: Controller) -> None:
        self.model, self.controller = model, controller
        self._seen: LatentState | None = None

    def probabilities(
        self, env: PassOrderingEnv, observation: Observation, mask: np.ndarray, taken: int | None
    ) -> np.ndarray:
        """The controller's: a pass is a rule that has one location, and stop is to terminate."""
        state = (env.graph_arrays(), counts_of(env), cost_percent(env))
        if self._seen is None or taken is None:
            self._seen = latent_state.begin(self.model, *state)
        else:
            self._seen = latent_state.advance(self.model, self._seen, (taken, 0), *state)
        flat = torch.from_numpy(self._seen.observation(latent_state.layout_of(self.model)))[None]
        with torch.no_grad():
            of_rules = self.controller.policy.distribution(flat).rule_log_probability[0].double().numpy()
        preferred = np.where(mask, of_rules, -np.inf)
        weights = np.exp(preferred - preferred.max())
        return weights / weights.sum()
