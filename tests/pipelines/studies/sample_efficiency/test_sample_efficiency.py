"""The study of real steps: what its configuration names exists, and a tiny study runs to its end."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from support.study_settings import plain_settings

from rlflow.agents.match_level.pointer_config import MatchLevelControllerConfig, RealEpisodesConfig
from rlflow.settings import read_config

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


def test_both_agents_have_the_same_task_and_differ_in_what_a_real_step_costs() -> None:
    settings = plain_settings("sample_efficiency")
    dream, real = settings["controller"]["dream"], read_config(RealEpisodesConfig, settings["real"])
    assert (dream["max_steps"], dream["max_kinds"]) == (real.max_steps, real.max_kinds)
    ppo = settings["controller"]["ppo"]
    dreamt = read_config(MatchLevelControllerConfig, ppo)
    free = read_config(MatchLevelControllerConfig, ppo | settings["model_free"])
    differ = {name for name in vars(dreamt) if getattr(dreamt, name) != getattr(free, name)}
    assert differ == {"total_steps", "steps_per_update", "batch_size", "epochs", "updates_per_trial"}
    assert dreamt.total_steps == 40_000, "what the study says of itself counts, not what the controller says by default"


@pytest.mark.study
def test_a_tiny_study(study: Callable[..., Path]) -> None:
    found = json.loads((study("sample_efficiency", *TINY) / "sample_efficiency/metrics.json").read_text())["tiny_merge"]
    assert [row["seed"] for row in found["seeds"]] == [0, 1]
