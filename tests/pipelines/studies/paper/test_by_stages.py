"""The paper's agents by the stages of the experiment: jobs of a tiny sweep, and the tables that come of them."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from studies.paper.by_stages import DREAMT, GRAPH_LEVEL, MODEL_FREE, jobs_below

from rlflow.errors import InputError

TINY = (
    "experiment=smoke",
    "graph=bert_tiny",
    "evaluation.gate.rounds=2",
    "sweep.temperatures=[1.0]",
    "sweep.seeds=[0]",
)
WITHOUT_A_DREAM = ("controller=model_free", "controller.ppo.total_steps=256")
LEARNING = "generate_rules,collect_rollouts,fit_world_model,train_controller"


def test_without_a_job_the_command_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no job has ended in .*: python pipelines/all_stages.py --multirun"):
        jobs_below(tmp_path)


@pytest.mark.study  # two minutes
def test_every_agent_is_in_the_tables(repository: Path, store_root: Path, command: Callable, study: Callable) -> None:
    """Each is trained, tried, checked and timed by the same stages, and rules, rollouts and V are made once."""
    program = ("python", str(repository / "pipelines/all_stages.py"), "--multirun", *TINY)
    sweeps = (
        ("world_model=match_level,graph_level", "controller.ppo.total_steps=640"),
        (*WITHOUT_A_DREAM, f"stages=[{LEARNING},evaluate]"),
        (*WITHOUT_A_DREAM, f"stages=[{LEARNING}]", "reward=runtime"),
        (*WITHOUT_A_DREAM, f"stages=[{LEARNING}]", "reward=weighted", "reward.alpha=0.3"),
    )
    told = [command(*program, *sweep, cwd=store_root, DVC_ROOT=str(store_root)).stdout for sweep in sweeps]
    assert "collect_rollouts: as another job has made it" in told[1]
    assert "train_controller: as another job" not in told[1]

    jobs = jobs_below(store_root / "multirun/all_stages")
    assert sorted(job.agent for job in jobs) == sorted([DREAMT, GRAPH_LEVEL, *[MODEL_FREE] * 3])
    results = study("paper.by_stages") / "paper"
    agents = json.loads((results / "agents.json").read_text())["bert_tiny"]
    searches = {"original", "greedy", "taso", "equality_saturation", "shipped_policy", "taso by its rules"}
    assert {*agents} == searches | {"rlflow", "rlflow_alone", "model-free", "graph_level"}
    learned = agents.keys() - searches
    assert all(("training_s" in one["figures"]) == (name in learned) for name, one in agents.items())
    real = {name: agents[name]["figures"]["training_evaluations"]["value"] for name in learned}
    assert real["rlflow"] == real["rlflow_alone"] > 0
    assert real["model-free"] >= 256, "a rewrite a choice at least, but where it ends"
    assert agents["graph_level"]["curves"]["memory/latent"][0]
    assert agents["original"]["figures"]["improvement_percent"]["value"] == 0.0

    temperatures = json.loads((results / "temperatures.json").read_text())["bert_tiny"]
    assert {*temperatures} == {"tau 1", "pooled tau 1"}
    rewards = json.loads((results / "rewards.json").read_text())["bert_tiny"]
    assert {*rewards} == {"R2", "alpha 0.3"}
    assert all(one["curves"]["return_percent"][0] for one in rewards.values())
