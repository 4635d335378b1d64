"""The page of the first sweep: its commands run as they stand there, and its sweeps are those of conf/sweep."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from mlflow.entities import Run
from omegaconf import OmegaConf
from tracking.composition import compose_configuration
from tracking.overrides import refuse_ignored
from tracking.store import open_store

NEITHER = ("source", "make")
"""Begin commands that change the shell or serve for ever."""


@pytest.fixture(scope="module")
def page(repository: Path) -> str:
    return (repository / "docs/first_sweep.md").read_text()


@pytest.mark.study  # five jobs of a minute
def test_the_commands_do_what_the_page_says(page: str, repository: Path, tmp_path: Path, command: Callable):
    """In a folder that has the code, conf/ and nothing else; jobs that are done are there once, whoever asks again."""
    for part in ("conf", "dvc.yaml", "pipelines", "src"):
        (tmp_path / part).symlink_to(repository / part)
    blocks = re.findall(r"```bash\n(.*?)```", page, re.DOTALL)
    commands = [line for block in blocks for line in block.splitlines() if not line.startswith(NEITHER)]
    assert len(commands) == 4
    answers = [command(*line.split(), cwd=tmp_path) for line in commands]
    assert [answer.stdout.count("done before") for answer in answers[:3]] == [0, 4, 2]

    store = open_store(tmp_path)
    runs = store.client.search_runs([store.experiment_id], max_results=1000)
    below = {run.info.run_id: [child for child in runs if parent_of(child) == run.info.run_id] for run in runs}
    sweeps = {run.info.run_name: below[run.info.run_id] for run in runs if parent_of(run) is None}
    assert {name: sorted(job.info.run_name for job in jobs) for name, jobs in sweeps.items()} == {
        "all_stages by reward and seed": ["reward=weighted seed=1"],
        "all_stages by reward": ["reward=terminal", "reward=weighted"],
        "all_stages by seed": ["seed=0", "seed=1"],
    }, "a job belongs to the sweep that asked for it last"
    for job in (job for jobs in sweeps.values() for job in jobs):
        assert {"saved_percent", "speedup", "real_percent"} < set(job.data.metrics)
        stages = [child.info.run_id for child in below[job.info.run_id]]
        kept = [{file.path for file in store.client.list_artifacts(stage)} for stage in stages]
        assert len(kept) == 6
        assert all({"config.yaml", "metrics.json"} < files for files in kept)
    assert not (tmp_path / "data").exists()


def parent_of(run: Run) -> str | None:
    return run.data.tags.get("mlflow.parentRunId")


@pytest.mark.parametrize("name", ["rewards", "temperature", "shapes", "graphs"])
def test_a_named_sweep_is_taken_by_the_program_of_its_page(name: str, page: str, repository: Path):
    """What it goes over is read there, and another stage refuses it; its values compose."""
    (script,) = re.findall(rf"python pipelines/(\w+)\.py --multirun sweep={name}\b", page)
    conf = repository / "conf"
    assert f"python pipelines/{script}.py --multirun sweep={name}" in (conf / f"sweep/{name}.yaml").read_text()
    config = compose_configuration([f"sweep={name}"], conf)
    swept = OmegaConf.load(conf / f"sweep/{name}.yaml").hydra.sweeper.params
    for setting, values in swept.items():
        for value in str(values).split(","):
            compose_configuration([f"sweep={name}", f"{setting}={value}"], conf)
    refuse_ignored(
        script, [f"sweep={name}", *(f"{key}={value}" for key, value in swept.items())], config, [conf], repository
    )


def test_the_sweep_of_rewards_goes_over_those_of_figure_5(repository: Path):
    """R1 to R5 in order, as the files of conf/reward say."""
    rewards = OmegaConf.load(repository / "conf/sweep/rewards.yaml").hydra.sweeper.params.reward.split(",")
    for number, reward in enumerate(rewards, start=1):
        assert f"R{number} of the paper's Figure 5" in (repository / f"conf/reward/{reward}.yaml").read_text()
    assert len(rewards) == 5


def test_the_sweep_of_temperatures_is_what_the_experiment_does(repository: Path):
    """The stage temperature_sweep, which `dvc repro` runs, has the same temperatures, seeds and share of a training."""
    conf = repository / "conf"
    swept = OmegaConf.load(conf / "sweep/temperature.yaml").hydra.sweeper.params
    config = compose_configuration(["sweep=temperature"], conf)
    assert [float(value) for value in swept.temperature.split(",")] == list(config.sweep.temperatures)
    assert [int(value) for value in swept.seed.split(",")] == list(config.sweep.seeds)
    assert config.controller.training_share == config.sweep.training_share
    assert config.pretrained is None, "begun afresh, as there"
