"""The timing study: it asks the gate's own test, and a tiny study runs from end to end."""

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf
from studies.documents import check_results
from support.study_settings import study_settings

from rlflow.optimise.gate import GateConfig


@pytest.fixture(scope="module")
def settings(repository: Path) -> dict[str, Any]:
    composed: Any = OmegaConf.to_container(study_settings("timing_study"))
    return composed


def test_the_gate_is_that_of_the_command_but_for_its_time(settings: dict[str, Any]) -> None:
    command = asdict(GateConfig())
    assert settings["test"] | {"spreads": tuple(settings["test"]["spreads"])} == command["test"]
    assert settings["gate"] == {name: command[name] for name in settings["gate"]} | {
        "time_s": settings["gate"]["time_s"]
    }


def test_the_slower_model_is_slower_by_three_percent(settings: dict[str, Any]) -> None:
    """All layers are of one size, so that time grows with their number."""
    model = settings["model"]
    assert model["inputs"] == model["hidden"] == model["outputs"]
    assert 1.025 < settings["slower_layers"] / model["layers"] < 1.035


@pytest.mark.study
def test_a_tiny_study(repository: Path, store_root: Path, command: Callable) -> None:
    """Of so few comparisons that they prove no more than that the figures are there."""
    program = ("python", str(repository / "pipelines/study.py"), "timing_study")
    cases = ("cases.same_model=2", "cases.slower_model=2", "gate.time_s=0.5", "simulated.cases=100")
    command(*program, *cases, cwd=store_root)
    assert check_results(store_root / "data/results") == []
    found = json.loads((store_root / "data/results/timing/metrics.json").read_text())
    assert {beside: group["cases"] for beside, group in found["slower_model"].items()} == {"quiet": 1, "busy": 1}
    assert found["simulated"]["quiet_0.01"]["slower_model"]["slower_share"] > 0.9
