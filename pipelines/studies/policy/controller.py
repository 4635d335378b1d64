"""Train the policy's C in the dream of all its practice at once, and write the policy with it to data/policy/whole.

M is fitted on the practice first, which shows what becomes of whole classes of matches; V stays as it is, since C sees
by it. Nothing is tried on any graph, neither to choose among snapshots of C nor to score it: what it does on real ones
is for others to measure. The same policy, practice, settings and seed give the same C.
"""

import logging
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from rlflow.agents.dream_training import train_in_dream
from rlflow.agents.match_level.chain import FittedWorld
from rlflow.agents.match_level.pointer_config import MatchLevelControllerConfig
from rlflow.agents.match_level.taught_guide import TaughtGuide
from rlflow.agents.token_collection import Collected, put_together
from rlflow.cli.progress import progress_bar
from rlflow.errors import InputError
from rlflow.representation.token_rollouts import TokenRollouts
from rlflow.settings import read_config
from rlflow.world_model.match_level.match_level_config import MatchLevelDreamConfig, MatchLevelModelConfig
from studies.program import open_study, study_program

POLICY = Path("data/policy/policy")
PRACTICE = Path("data/policy/practice")
WHOLE = Path("data/policy/whole")
SECTIONS = ("seed", "practice_fit", "controller")

log = logging.getLogger(__name__)


@study_program("policy")
def main(config: DictConfig) -> None:
    settings: Any = OmegaConf.to_container(config, resolve=True)
    seed, policy, rollouts = settings["seed"], TaughtGuide.load(POLICY), practised(PRACTICE)
    model_config = read_config(MatchLevelModelConfig, asdict(policy.model.arguments.config) | settings["practice_fit"])
    dream_config = read_config(MatchLevelDreamConfig, settings["controller"]["dream"])
    ppo = read_config(MatchLevelControllerConfig, settings["controller"]["ppo"])
    epochs, updates = model_config.encoder_epochs + model_config.epochs, ppo.rounds(dream_config.num_envs)
    with open_study("policy_controller", settings, {name: settings[name] for name in SECTIONS}) as study:
        with progress_bar("epochs") as on_progress:

            def on_epoch(epoch: int, metrics: dict[str, float]) -> None:
                study.run.log(epoch, metrics)
                on_progress((epoch + 1) / epochs, str(epoch + 1))

            world = FittedWorld.fit(
                rollouts,
                model_config,
                seed=seed,
                begin=policy.model,
                checkpoint=study.folder / "fit.pt",
                on_epoch=on_epoch,
            )

        with progress_bar("updates") as on_progress:

            def on_round(number: int, metrics: dict[str, float]) -> None:
                study.run.log(number, metrics)
                on_progress(number / updates, f"{metrics.get('return_percent', 0.0):.1f} %")

            dream = world.dream(rollouts, dream_config)
            training = train_in_dream(dream, ppo, seed=seed, checkpoint=study.folder / "training.pt", on_round=on_round)

        scores = {"dream_score_percent": training.score_percent, "untrained_percent": training.untrained_percent}
        study.run.log(updates, scores)
        log.info("%s", scores)
        replace(policy, controller=training.controller).save(WHOLE)


def practised(folder: Path) -> TokenRollouts:
    """Return the rollouts of all graphs of the practice, in the order of their names. `InputError` if there is none."""
    places = sorted(path for path in folder.glob("*") if path.is_dir())
    if not places:
        raise InputError(f"there is no practice in {folder}: play some with `make study NAME=policy`")
    return put_together([Collected.load(place) for place in places]).rollouts
