"""Train a controller in a dream, and score it there beside the network that it began as.

training = train_in_dream(GraphLevelDream.of(model, rollouts, GraphLevelDreamConfig()), ControllerConfig(), seed=0)
training = train_in_dream(world.dream(rollouts, MatchLevelDreamConfig()), CmaEsConfig(), seed=0)

The graph itself may stand in a dream's place (`match_level.model_free.RealGraph`), which is the baseline.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

from torch import nn

from rlflow.agents.maskable_ppo import OnUpdate
from rlflow.agents.policy_controller import PolicyController
from rlflow.agents.scores import mean_return
from rlflow.agents.selection import Judge, Selection
from rlflow.world_model.batch_env import BatchEnv

Controller = TypeVar("Controller", bound=PolicyController)


@dataclass(frozen=True)
class Dream(ABC, Generic[Controller]):
    """A fitted world model, and the states in which dreams of it begin; a subclass has those of its formulation."""

    model: Any
    starts: Any
    config: Any

    def at(self, temperature: float) -> Self:
        """Return the same dream at another temperature."""
        return replace(self, config=replace(self.config, temperature=temperature))

    @property
    def rewrites(self) -> int:
        """Rewrites that were carried out on a real graph so far: in a dream, none."""
        return 0

    @abstractmethod
    def from_start(self) -> Self:
        """Return the same dream, where all begin where real episodes do."""

    @abstractmethod
    def env(self, *, seed: int) -> BatchEnv:
        """Return the dream as a batch of environments."""

    @abstractmethod
    def untrained(self, config: Any, *, seed: int) -> Controller:
        """Return a controller that sees by this world model, before the training that the config sets."""

    @abstractmethod
    def training(self, beginner: Controller, *, seed: int) -> Callable[..., nn.Module]:
        """Return what trains the beginner's network in this dream, from its weights on.

        It takes the options `on_update`, `checkpoint` and `selection` of `train_policy`.
        """


@dataclass(frozen=True)
class DreamTraining(Generic[Controller]):
    """A trained controller, its score in the dream, and the score of the same network before training.

    Scores in percent. `rewrites`: those carried out on the real graph, to choose among the snapshots or to learn.
    """

    controller: Controller
    score_percent: float
    untrained_percent: float
    rewrites: int


def train_in_dream(
    dream: Dream[Controller],
    config: Any,
    *,
    seed: int,
    begin: Controller | None = None,
    checkpoint: Path | None = None,
    on_round: OnUpdate | None = None,
    judge: Judge[Controller] | None = None,
) -> DreamTraining[Controller]:
    """Train by what the config is of, PPO or evolution; only the judge, if there is one, takes real steps.

    begin: a controller of such a network, which goes on learning; None: the seed draws the network. on_round: called
    after every update of PPO, or after every generation, with its number and its metrics. `InputError` for a `begin` of
    another network.
    """
    beginner = dream.untrained(config, seed=seed)
    if begin is not None:
        beginner = beginner.like(begin)

    def controller_of(network: nn.Module) -> Controller:
        return replace(beginner, policy=network)

    selection = Selection[nn.Module](lambda network: judge(controller_of(network))) if judge is not None else None
    train = dream.training(beginner, seed=seed)
    controller = controller_of(train(on_update=on_round, checkpoint=checkpoint, selection=selection))
    rewrites = dream.rewrites + (selection.rewrites if selection is not None else 0)
    score_percent, untrained_percent = (dream_score(dream, one, seed=seed) for one in (controller, beginner))
    return DreamTraining(controller, score_percent, untrained_percent, rewrites)


def dream_score(dream: Dream[Controller], controller: Controller, *, seed: int) -> float:
    """Mean return, in percent, of one episode in each of the batch's dreams.

    The dreams begin where real episodes do, and the controller takes its most probable actions. Over match tokens its
    real side is the return of such an episode on the graph (`real_env.real_return`).
    """
    return mean_return(dream.from_start().env(seed=seed), controller.act)
