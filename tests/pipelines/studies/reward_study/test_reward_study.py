"""The study of rewards: what its configuration names exists, and a tiny study runs to its end, after a kill as well."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from studies.reward_study.cases import TimingConfig
from support.study_settings import plain_settings

from rlflow.environments import RewardConfig
from rlflow.settings import read_config

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


def test_rewards_are_an_estimate_and_measured_ones_that_differ_in_how_often() -> None:
    """And what is estimated is priced as it is measured: as deployed."""
    settings = plain_settings("reward_study")
    assert {*settings["timing"]} == {*vars(TimingConfig())}
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
def test_a_tiny_study(study: Callable[..., Path], study_refused: Callable[..., str]) -> None:
    """A training that is done before the study fails is kept, and not done again."""
    said = study_refused("reward_study", *TINY, "longest_s=0.01")
    assert "without a result, to be tried again by the next run: tiny_merge estimated 0" in said
    found = json.loads((study("reward_study", *TINY) / "reward_study/metrics.json").read_text())["tiny_merge"]
    assert {*found} == {"estimated", "at_the_end"}
    assert [row["seed"] for row in found["at_the_end"]["seeds"]] == [0]
