"""Controllers over classes of matches: before any training, and with drawn weights."""

import torch

from rlflow.agents.match_level.controller import MatchLevelController, MatchLevelControllerArguments
from rlflow.agents.match_level.pointer_config import CmaEsConfig, MatchLevelControllerConfig
from rlflow.world_model.match_level.model import MatchLevelModel

MAX_STEPS = 6


def beginner(model: MatchLevelModel, **settings: float) -> MatchLevelController:
    """One that has learned nothing, and goes by its prior."""
    config = MatchLevelControllerConfig(**{"width": 8, **settings})  # type: ignore[arg-type]
    return MatchLevelController.untrained(MatchLevelControllerArguments.of(model, config, MAX_STEPS), seed=0)


def drawn(model: MatchLevelModel, seed: int = 0) -> MatchLevelController:
    """One whose every weight says something, of logits that are no more than a few units apart."""
    return _drawn(beginner(model, greedy_weight=0.5, expert_weight=0.1), seed)


def evolved(model: MatchLevelModel, seed: int = 0) -> MatchLevelController:
    """The same of the network that evolution makes."""
    arguments = MatchLevelControllerArguments.of(model, CmaEsConfig(), MAX_STEPS)
    return _drawn(MatchLevelController.untrained(arguments, seed=0), seed)


def _drawn(controller: MatchLevelController, seed: int) -> MatchLevelController:
    generator = torch.Generator().manual_seed(seed)
    for weight in controller.policy.parameters():
        weight.add_(0.3 * torch.randn(weight.shape, generator=generator))
    return controller
