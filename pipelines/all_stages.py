"""Run all stages one after another in one process, without DVC: `make debug`, and sweeps over whole experiments.

    python pipelines/all_stages.py experiment=smoke                             # into outputs/all_stages
    python pipelines/all_stages.py --multirun experiment=smoke seed=0,1         # each into multirun/all_stages/...
    HYDRA_FULL_ERROR=1 python -m pdb -c continue pipelines/all_stages.py ...    # stops where a stage fails

A stage reads what the one before it has left in the same folder; `data/` stays as it is. In MLflow the stages are
children of one run, which has the few figures that each of them has for DVC. What jobs of a sweep have in common is
made by the first of them alone: a sweep over temperatures collects rollouts and fits a world model once.
"""

import inspect
import logging
import shutil
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path

import hydra
import yaml
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf
from tracking.code import digest_of
from tracking.composition import completed, graph_names
from tracking.declaration import read_declaration, read_declarations, stage_names
from tracking.finished import Finished, finish, finished
from tracking.made_once import made_once
from tracking.provenance import source_tags
from tracking.run import open_run
from tracking.stage import run_stage, work_of
from tracking.store import open_store
from tracking.sweep import Job, label, place_of, swept_job

from rlflow.errors import InputError
from rlflow.kept import fingerprint
from rlflow.plugins import unknown

ROOT = Path(__file__).parents[1]
NAME = "all_stages"
MAXIMISED = "saved_%"
"""The figure that a search over settings makes best: what the agent saves."""

told = logging.getLogger("told")


@hydra.main(version_base="1.3", config_path="../conf", config_name="config")
def all_stages(config: DictConfig) -> float | None:
    config = completed(config)
    folder = Path(HydraConfig.get().runtime.output_dir)
    for linked in ("dvc.yaml", "pipelines", "src"):
        if not (folder / linked).exists():
            (folder / linked).symlink_to(ROOT / linked)
    scripts = {name: folder / f"pipelines/{name}.py" for name in stage_names(folder)}
    scripts = {name: script for name, script in scripts.items() if script.is_file()}
    if config.stages is not None:
        scripts = _chosen(scripts, config.stages)
    everything = OmegaConf.to_container(config, resolve=True)
    made_of = fingerprint(everything, {name: digest_of(script, folder) for name, script in scripts.items()})

    overrides = list(HydraConfig.get().overrides.task)
    store = open_store()
    job = swept_job(overrides, store)
    store = place_of(store, job, config.aside)
    if job is not None and (done := finished(folder, NAME, made_of, job, store)) is not None:
        return done.figure
    if job is None:
        shutil.rmtree(folder / ".finished", ignore_errors=True)  # who runs it alone wants to see all of it
    swept, parent_id = ({}, None) if job is None else (job.swept, job.parent_id)
    name = label(swept) or f"{NAME}/{'+'.join(graph_names(config))}/{config.seed}"
    tags = {"stage": NAME, "graph": " ".join(graph_names(config)), **source_tags(ROOT, overrides)}
    parameters = {"graph": " ".join(graph_names(config)), "seed": config.seed, **swept}
    with open_run(store, name, parameters=parameters, tags=tags, parent_id=parent_id) as run:
        for stage, script in scripts.items():
            run_here = partial(_run, stage, script, config, folder, overrides, Job(run.run_id))
            if job is None:
                run_here()
            else:
                _share(stage, script, config, folder, run_here)
        figures = _summaries(folder)
        run.head(figures)
    figure = figures.get(MAXIMISED)
    if job is not None:
        finish(folder, NAME, Finished(made_of, run.run_id, figure))
    return figure


def _run(stage: str, script: Path, config: DictConfig, folder: Path, overrides: list[str], part: Job) -> None:
    function = inspect.unwrap(getattr(import_module(stage), stage))
    run_stage(function, config, script=script, root=folder, output_root=folder, overrides=overrides, job=part)


def _share(stage: str, script: Path, config: DictConfig, folder: Path, run_here: Callable[[], None]) -> None:
    """Run a stage unless another job of the sweep's folder has the same work behind it."""
    declaration = read_declaration(stage, folder)
    work = work_of(declaration, config, script, folder)
    place = Path(HydraConfig.get().sweep.dir, ".shared", stage, work)
    with made_once(place, declaration.outputs, folder) as is_there:
        if is_there:
            told.info("%s: as another job has made it, %s", stage, place)
        else:
            run_here()


def _chosen(scripts: dict[str, Path], stages: list[str]) -> dict[str, Path]:
    """The scripts of some stages, in the order of all. `InputError` for a stage that there is not."""
    if wrong := [name for name in stages if name not in scripts]:
        raise InputError(unknown("stage", wrong[0], scripts))
    return {name: script for name, script in scripts.items() if name in stages}


def _summaries(folder: Path) -> dict[str, float]:
    """The few figures that each stage that has run has for DVC."""
    declared = [stage.summary for stage in read_declarations(folder).values() if stage.summary is not None]
    written = [file for file in declared if (folder / file).is_file()]
    return {name: value for file in written for name, value in yaml.safe_load((folder / file).read_text()).items()}


if __name__ == "__main__":
    all_stages()
