"""The timing study: it asks the gate's own test, and a tiny study runs from end to end."""

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from support.study_settings import plain_settings

from rlflow.optimise.gate import GateConfig
from rlflow.runtime.timing.sequential import SequentialTest


@pytest.fixture(scope="module")
def settings() -> dict[str, Any]:
    return plain_settings("timing_study")


def test_the_gate_is_that_of_the_command_but_for_its_time(settings: dict[str, Any]) -> None:
    command = asdict(GateConfig())
    assert SequentialTest(**settings["proof"] | {"spreads": tuple(settings["proof"]["spreads"])}) == SequentialTest()
    assert settings["gate"] == {name: command[name] for name in settings["gate"]} | {
        "time_s": settings["gate"]["time_s"]
    }


def test_the_slower_model_is_slower_by_three_percent(settings: dict[str, Any]) -> None:
    """All layers are of one size, so that time grows with their number."""
    model = settings["model"]
    assert model["inputs"] == model["hidden"] == model["outputs"]
    assert 1.025 < settings["slower_layers"] / model["layers"] < 1.035


@pytest.mark.study
def test_a_tiny_study(study: Callable[..., Path]) -> None:
    """Of so few comparisons that they prove no more than that the figures are there."""
    cases = ("cases.same_model=2", "cases.slower_model=2", "gate.time_s=0.5", "simulated.cases=100")
    found = json.loads((study("timing_study", *cases) / "timing/metrics.json").read_text())
    assert {beside: group["cases"] for beside, group in found["slower_model"].items()} == {"quiet": 1, "busy": 1}
    assert found["simulated"]["quiet_0.01"]["slower_model"]["proven"]["slower_share"] > 0.9
