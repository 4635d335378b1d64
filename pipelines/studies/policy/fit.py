"""Fit V and M on the lessons that are not held out, and write the policy that they make to data/policy/policy."""

import time
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from rlflow.agents.match_level.guided_chains import ChainConfig
from rlflow.agents.match_level.lesson_files import LessonRecord, read, read_records
from rlflow.agents.match_level.rule_means import RuleMeans
from rlflow.agents.match_level.taught_guide import TaughtGuide
from rlflow.cli.progress import progress_bar
from rlflow.settings import read_config
from rlflow.world_model.match_level.match_level_config import MatchLevelModelConfig
from rlflow.world_model.match_level.trainer import fit_token_model
from studies.policy.curriculum import units
from studies.program import open_study, options_of, study_program

LESSONS = Path("data/policy/lessons")
POLICY = Path("data/policy/policy")
SECTIONS = ("seed", "fit", "chains", "lesson", "lessons")


@study_program("policy")
def main(config: DictConfig) -> None:
    settings: Any = OmegaConf.to_container(config, resolve=True)
    held_out = {unit.lesson.name for unit in units(settings, options_of("policy")) if unit.held_out}
    records = [record for record in read_records(LESSONS) if record.name not in held_out]
    model_config = read_config(MatchLevelModelConfig, settings["fit"])
    epochs = model_config.encoder_epochs + model_config.epochs
    with (
        open_study("policy_fit", settings, {name: settings[name] for name in SECTIONS}) as study,
        progress_bar("epochs") as on_progress,
    ):

        def on_epoch(epoch: int, metrics: dict[str, float]) -> None:
            study.run.log(epoch, metrics)
            on_progress((epoch + 1) / epochs, str(epoch + 1))

        started = time.perf_counter()
        rollouts = read(records, LESSONS)
        model = fit_token_model(
            rollouts,
            model_config,
            seed=settings["seed"],
            checkpoint=study.folder / "fit.pt",
            on_epoch=on_epoch,
        )
        chains = read_config(ChainConfig, settings["chains"])
        fit_s = time.perf_counter() - started
        trained_on = _trained_on(records, model.arguments.library_hash, fit_s)
        TaughtGuide(model, chains, trained_on, RuleMeans.of(rollouts).taken).save(POLICY)


def _trained_on(records: list[LessonRecord], library_hash: str, fit_s: float) -> dict[str, Any]:
    return {
        "lessons": len(records),
        "families": sorted({record.subject.graph["entry"] for record in records}),
        "library_hash": library_hash,
        "evaluations": sum(record.rewrites for record in records),
        "seconds": round(sum(record.seconds for record in records) + fit_s),
    }
