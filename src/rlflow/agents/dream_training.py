"""Train a controller in a dream, and score it there beside the network that it began as."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import torch
from torch import nn

from rlflow.agents.selection import Judge, Selection

Controller = TypeVar("Controller")
Network = TypeVar("Network", bound=nn.Module)


@dataclass(frozen=True)
class DreamTraining(Generic[Controller]):
    """A trained controller, its score in the dream, and the score of the same network before training.

    Scores in percent. `rewrites`: those carried out on the real graph to choose among the snapshots.
    """

    controller: Controller
    score_percent: float
    untrained_percent: float
    rewrites: int


def train_and_score(
    train: Callable[[Selection[Network] | None], Network],
    controller_of: Callable[[Network], Controller],
    untrained: Controller,
    score: Callable[[Controller], float],
    judge: Judge[Controller] | None,
) -> DreamTraining[Controller]:
    """Train a network and score the controller that it makes; only the judge, if there is one, takes real steps.

    train: returns the trained network, the best of its snapshots if it is given a selection to try them with.
    """
    selection = Selection[Network](lambda network: judge(controller_of(network))) if judge is not None else None
    controller = controller_of(train(selection))
    rewrites = selection.rewrites if selection is not None else 0
    return DreamTraining(controller, score(controller), score(untrained), rewrites)


def untrained_network(new_network: Callable[[], Network], *, seed: int) -> Network:
    """A network before training, frozen, always the same for a seed; torch's own generator is left as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return new_network().eval().requires_grad_(False)
