"""The world model over match tokens: its curves, its fit, and how far its dream can be trusted."""

from collections.abc import Mapping, Sequence
from typing import Any

from tracking.stage import Stage

from experiment.formulations.match_level.pretrained import pretrained
from experiment.formulations.match_level.trust import figures
from rlflow.agents.match_level.chain import FittedWorld
from rlflow.representation import token_archive
from rlflow.representation.token_rollouts import TokenEpisode, TokenRollouts
from rlflow.settings import read_config
from rlflow.world_model.epochs import OnEpoch
from rlflow.world_model.match_level.match_level_config import MatchLevelModelConfig
from rlflow.world_model.match_level.model import MatchLevelModel

CURVES: Mapping[str, str] = {
    "encoder/saving": "asinh of units, squared",
    "encoder/sigma": "nats",
    "encoder/births": "log of operators, squared",
    "memory/births": "nats",
    "memory/gone": "nats",
}
DRAWN: Sequence[str] = ["encoder/saving", "encoder/births", "memory/births", "memory/gone"]


def config(stage: Stage) -> MatchLevelModelConfig:
    return read_config(MatchLevelModelConfig, stage.settings["world_model"])


def rollouts(stage: Stage) -> TokenRollouts:
    return token_archive.load(stage.input(f"data/rollouts/{stage.graph}"))


def fit(stage: Stage, rollouts: TokenRollouts, config: MatchLevelModelConfig, on_epoch: OnEpoch) -> MatchLevelModel:
    """Write the birth sets, too, that the model dreams of."""
    checkpoint = stage.checkpoint / "fit.pt"
    known = pretrained(stage.settings)
    begin = None if known is None else known.model
    world = FittedWorld.fit(rollouts, config, seed=stage.seed, begin=begin, checkpoint=checkpoint, on_epoch=on_epoch)
    world.save(stage.output(f"data/world_models/{stage.graph}"))
    return world.model


def trust(
    stage: Stage,
    model: MatchLevelModel,
    rollouts: TokenRollouts,
    training: Sequence[TokenEpisode],
    held_out: Sequence[TokenEpisode],
) -> dict[str, Any]:
    return figures(model, rollouts, training, held_out, stage.seed)
