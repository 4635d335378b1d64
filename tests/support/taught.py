"""World models that know one demonstration by heart, and one that has learned nothing."""

from collections.abc import Sequence
from dataclasses import replace

import torch

from rlflow.agents.match_level.demonstrations import GainConfig, demonstrate
from rlflow.processes.token_process import TokenProcess
from rlflow.representation.token_rollouts import TokenRollouts
from rlflow.representation.token_shards import TokenBank
from rlflow.trajectory.record import Trajectory
from rlflow.world_model.match_level.model import MatchLevelModel, MatchLevelModelArguments
from rlflow.world_model.match_level.trainer import fit_token_model
from support.token_worlds import SMALL

BY_HEART = replace(
    SMALL, encoder_epochs=100, encoder_learning_rate=1e-2, epochs=1, worth_weight=3.0, held_out_fraction=0.0
)


def lessons_of(process: TokenProcess, trajectories: Sequence[Trajectory]) -> TokenRollouts:
    """What these trajectories from the process's start teach."""
    bank = TokenBank()
    episodes = tuple(demonstrate(process, bank, one, GainConfig()) for one in trajectories)
    return TokenRollouts(
        tuple(bank.tokens),
        tuple(bank.rule_of),
        episodes,
        ("taught",),
        process.vocabulary,
        "taught",
    )


def taught_by(process: TokenProcess, *trajectories: Trajectory) -> MatchLevelModel:
    """A world model whose V has learned the steps of these trajectories by heart."""
    return fit_token_model(lessons_of(process, trajectories), BY_HEART, seed=0)


def untaught(process: TokenProcess) -> MatchLevelModel:
    """A world model without a fit, by which all rewrites are about as likely."""
    torch.manual_seed(0)
    model = MatchLevelModel(MatchLevelModelArguments(process.vocabulary, "untaught", SMALL))
    return model.eval().requires_grad_(False)
