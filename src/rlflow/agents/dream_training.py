"""Train a controller in the dream, and score it there."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from rlflow.agents.config import ControllerConfig
from rlflow.agents.controller import Controller, ControllerArguments, new_policy
from rlflow.agents.maskable_ppo import OnUpdate, train_controller
from rlflow.agents.selection import Judge, Selection
from rlflow.representation.rollouts import Episode
from rlflow.world_model.config import DreamConfig
from rlflow.world_model.dream_env import DreamEnv, Starts
from rlflow.world_model.model import WorldModel


@dataclass(frozen=True)
class DreamTraining:
    """A trained controller, its score in the dream, and the score of the same network before training.

    Scores in percent. `real_interactions`: real steps taken to choose among the snapshots.
    """

    controller: Controller
    score_percent: float
    untrained_percent: float
    real_interactions: int


def train_in_dream(
    model: WorldModel,
    starts: Starts,
    dream: DreamConfig,
    config: ControllerConfig,
    *,
    seed: int,
    checkpoint: Path | None = None,
    on_update: OnUpdate | None = None,
    judge: Judge | None = None,
) -> DreamTraining:
    """Train in dreams that begin in `starts`; only the judge, if there is one, takes real steps."""
    env = DreamEnv(model, starts, dream, seed=seed)
    selection = Selection(judge) if judge is not None else None
    controller = train_controller(
        env, config, seed=seed, on_update=on_update, checkpoint=checkpoint, selection=selection
    )
    return DreamTraining(
        controller,
        score_percent=dream_score(model, starts, controller, dream, seed=seed),
        untrained_percent=dream_score(model, starts, untrained(controller.arguments, seed=seed), dream, seed=seed),
        real_interactions=selection.interactions if selection is not None else 0,
    )


def dream_score(model: WorldModel, starts: Starts, controller: Controller, config: DreamConfig, *, seed: int) -> float:
    """Mean return, in percent, of one episode in each of the batch's dreams.

    The dreams start where real episodes start, and the controller takes its most probable actions.
    """
    env = DreamEnv(model, starts, dataclasses.replace(config, initial_fraction=1.0), seed=seed)
    observation = np.asarray(env.reset())
    returns, running = np.zeros(env.num_envs), np.ones(env.num_envs, dtype=bool)
    while running.any():
        after, reward, done, _ = env.step(controller.act(observation))
        observation = np.asarray(after)
        returns += reward * running
        running &= ~done
    return float(returns.mean())


def untrained(arguments: ControllerArguments, *, seed: int) -> Controller:
    """The same network before training: the baseline of a score."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Controller(new_policy(arguments).eval().requires_grad_(False), arguments)


def mean_improvement_percent(episodes: Sequence[Episode]) -> float:
    """The mean, over episodes, of the improvement of the best graph met, which is what one episode would deliver."""
    return float(np.mean([100.0 - episode.cost.min() for episode in episodes]))


def best_improvement_percent(episodes: Sequence[Episode]) -> float:
    """The improvement of the best graph met in any of the episodes."""
    return float(max(100.0 - episode.cost.min() for episode in episodes))
