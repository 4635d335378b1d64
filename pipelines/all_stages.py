"""Run all stages one after another in one process, without DVC: `make debug`, and sweeps over whole experiments.

    python pipelines/all_stages.py experiment=smoke                             # into outputs/all_stages
    python pipelines/all_stages.py --multirun experiment=smoke seed=0,1         # each into multirun/all_stages/...
    HYDRA_FULL_ERROR=1 python -m pdb -c continue pipelines/all_stages.py ...    # stops where a stage fails

A stage reads what the one before it has left in the same folder; `data/` stays as it is. In MLflow the stages are
children of one run, which has the few figures that each of them has for DVC.
"""

import inspect
import shutil
from importlib import import_module
from pathlib import Path

import hydra
import yaml
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf
from tracking.code import digest_of
from tracking.composition import completed, graph_names
from tracking.declaration import read_declarations, stage_names
from tracking.finished import Finished, finish, finished
from tracking.provenance import source_tags
from tracking.run import open_run
from tracking.stage import run_stage
from tracking.store import open_store
from tracking.sweep import Job, label, place_of, swept_job

from rlflow.kept import fingerprint

ROOT = Path(__file__).parents[1]
NAME = "all_stages"
MAXIMISED = "saved_%"
"""The figure that a search over settings makes best: what the agent saves."""


@hydra.main(version_base="1.3", config_path="../conf", config_name="config")
def all_stages(config: DictConfig) -> float:
    config = completed(config)
    folder = Path(HydraConfig.get().runtime.output_dir)
    for shared in ("dvc.yaml", "pipelines", "src"):
        if not (folder / shared).exists():
            (folder / shared).symlink_to(ROOT / shared)
    scripts = {name: folder / f"pipelines/{name}.py" for name in stage_names(folder)}
    scripts = {name: script for name, script in scripts.items() if script.is_file()}
    everything = OmegaConf.to_container(config, resolve=True)
    made_of = fingerprint(everything, {name: digest_of(script, folder) for name, script in scripts.items()})

    overrides = list(HydraConfig.get().overrides.task)
    store = open_store()
    job = swept_job(overrides, store)
    store = place_of(store, job, config.aside)
    if job is not None and (done := finished(folder, NAME, made_of, job, store)) is not None:
        assert done.figure is not None
        return done.figure
    if job is None:
        shutil.rmtree(folder / ".finished", ignore_errors=True)  # who runs it alone wants to see all of it
    swept, parent_id = ({}, None) if job is None else (job.swept, job.parent_id)
    name = label(swept) or f"{NAME}/{'+'.join(graph_names(config))}/{config.seed}"
    tags = {"stage": NAME, "graph": " ".join(graph_names(config)), **source_tags(ROOT, overrides)}
    parameters = {"graph": " ".join(graph_names(config)), "seed": config.seed, **swept}
    with open_run(store, name, parameters=parameters, tags=tags, parent_id=parent_id) as run:
        for stage, script in scripts.items():
            function = inspect.unwrap(getattr(import_module(stage), stage))
            part = Job(run.run_id)
            run_stage(function, config, script=script, root=folder, output_root=folder, overrides=overrides, job=part)
        figures = _summaries(folder)
        run.head(figures)
    if job is not None:
        finish(folder, NAME, Finished(made_of, run.run_id, figures[MAXIMISED]))
    return figures[MAXIMISED]


def _summaries(folder: Path) -> dict[str, float]:
    """The few figures that each stage has for DVC."""
    declared = [stage.summary for stage in read_declarations(folder).values() if stage.summary is not None]
    return {name: value for file in declared for name, value in yaml.safe_load((folder / file).read_text()).items()}


if __name__ == "__main__":
    all_stages()
