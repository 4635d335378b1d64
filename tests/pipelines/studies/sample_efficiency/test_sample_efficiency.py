"""The study of real steps: what its configuration names exists, and a tiny study runs to its end."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf
from studies.documents import check_results
from support.study_settings import study_settings

from rlflow.agents.tokens.config import TokenControllerConfig
from rlflow.agents.tokens.real_env import RealEpisodesConfig
from rlflow.world_model.settings import read_config

TINY = (
    "graphs=[tiny_merge]",
    "seeds=[0,1]",
    "episodes=[3,6]",
    "rollouts.steps=4",
    "world_model.encoder_epochs=2",
    "world_model.epochs=2",
    "controller.dream.num_envs=4",
    "controller.ppo.total_steps=192",
    "model_free.total_steps=192",
    "real.num_envs=4",
)


@pytest.fixture(scope="module")
def settings(repository: Path) -> dict[str, Any]:
    composed: Any = OmegaConf.to_container(study_settings("sample_efficiency"), resolve=True)
    return composed


def test_whatever_is_named_is_there(settings: dict[str, Any], repository: Path) -> None:
    assert {*settings["graphs"]} <= {file.stem for file in (repository / "conf/graph").glob("*.yaml")}
    assert len({*settings["seeds"]}) == 5


def test_both_agents_have_the_same_task_and_differ_in_what_a_real_step_costs(settings: dict[str, Any]) -> None:
    dream, real = settings["controller"]["dream"], read_config(RealEpisodesConfig, settings["real"])
    assert (dream["max_steps"], dream["max_kinds"]) == (real.max_steps, real.max_kinds)
    ppo = settings["controller"]["ppo"]
    dreamt = read_config(TokenControllerConfig, ppo)
    free = read_config(TokenControllerConfig, ppo | settings["model_free"])
    differ = {name for name in vars(dreamt) if getattr(dreamt, name) != getattr(free, name)}
    assert differ == {"total_steps", "steps_per_update", "batch_size", "epochs", "updates_per_trial"}
    assert dreamt.total_steps == 40_000, "what the study says of itself counts, not what the controller says by default"


@pytest.mark.study
def test_a_tiny_study(repository: Path, store_root: Path, command: Callable) -> None:
    command("python", str(repository / "pipelines/study.py"), "sample_efficiency", *TINY, cwd=store_root)
    results = store_root / "data/results"
    assert check_results(results) == []
    found = json.loads((results / "sample_efficiency/metrics.json").read_text())["tiny_merge"]
    assert [row["seed"] for row in found["seeds"]] == [0, 1]
    assert not list((store_root / ".checkpoints/sample_efficiency").iterdir()), "nothing to go on from"
