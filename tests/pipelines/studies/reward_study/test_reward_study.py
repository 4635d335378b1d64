"""The study of rewards: what its configuration names exists, and a tiny study runs to its end, after a kill as well."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf
from studies.documents import check_results
from studies.reward_study.cases import TimingConfig
from support.study_settings import study_settings

from rlflow.environments import RewardConfig
from rlflow.world_model.settings import read_config

TINY = (
    "graphs=[tiny_merge]",
    "seeds=[0]",
    "~rewards.every_step",
    "~rewards.every_4_steps",
    "reward.rounds=5",
    "controller.ppo.total_steps=32",
    "controller.ppo.steps_per_update=8",
    "controller.ppo.epochs=1",
    "real.num_envs=4",
    "real.max_steps=3",
    "timing.rounds=2",
)


@pytest.fixture(scope="module")
def settings(repository: Path) -> dict[str, Any]:
    composed: Any = OmegaConf.to_container(study_settings("reward_study"), resolve=True)
    return composed


def test_whatever_is_named_is_there(settings: dict[str, Any], repository: Path) -> None:
    assert {*settings["graphs"]} <= {file.stem for file in (repository / "conf/graph").glob("*.yaml")}
    assert len({*settings["seeds"]}) == 5
    assert {*settings["timing"]} == {*vars(TimingConfig())}


def test_rewards_are_an_estimate_and_measured_ones_that_differ_in_how_often(settings: dict[str, Any]) -> None:
    """And what is estimated is priced as it is measured: as deployed."""
    rewards = {
        name: read_config(RewardConfig, settings["reward"] | changed) for name, changed in settings["rewards"].items()
    }
    assert rewards["estimated"].kind == "incremental"
    measured = [reward for reward in rewards.values() if reward.kind == "end_to_end"]
    assert [reward.every for reward in measured] == [1, 4, None]
    assert len({(reward.setting, reward.rounds, reward.between) for reward in measured}) == 1
    assert settings["cost"]["setting"] == measured[0].setting
    assert measured[1].every < settings["real"]["max_steps"]


@pytest.mark.study
def test_a_tiny_study(repository: Path, store_root: Path, command: Callable) -> None:
    """A training that is done before the study fails is kept, and not done again."""
    program = ("python", str(repository / "pipelines/study.py"), "reward_study")
    failed = command(*program, *TINY, "longest_s=0.01", cwd=store_root, check=False)
    assert failed.returncode
    assert (
        "without a result, to be tried again by the next run: tiny_merge estimated 0" in failed.stderr + failed.stdout
    )
    command(*program, *TINY, cwd=store_root)
    results = store_root / "data/results"
    assert check_results(results) == []
    found = json.loads((results / "reward_study/metrics.json").read_text())["tiny_merge"]
    assert {*found} == {"estimated", "at_the_end"}
    assert [row["seed"] for row in found["at_the_end"]["seeds"]] == [0]
