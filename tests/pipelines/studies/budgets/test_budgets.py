"""The study of budgets names what exists, and a tiny one runs from end to end."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from omegaconf import DictConfig, OmegaConf
from studies.budgets.runs import Allowance
from support.study_settings import study_settings

from rlflow import zoo
from rlflow.runtime.hardware import processor_name

TINY = ("graphs=[tiny_merge,tiny_chain]", "budgets_s=[5]", "long_models=[tiny_merge]", "long_s=8")
WITHOUT_A_GRAPH = {"conv", "loop", "mlp"}
"""Models of the zoo that show one thing each and are no option of conf/graph."""
LATER = {"mobilenet_v3"}
"""Models that came after the study was run."""


@pytest.fixture(scope="module")
def config(repository: Path) -> DictConfig:
    return study_settings("budgets")


def test_every_model_of_the_zoo_is_there(config: DictConfig, repository: Path) -> None:
    sections = [OmegaConf.load(repository / "conf/graph" / f"{name}.yaml") for name in config.graphs]
    entries = {section.get("entry") for section in sections}
    assert set(zoo.names()) - WITHOUT_A_GRAPH - LATER <= entries


def test_the_allowance_is_that_of_its_dataclass(config: DictConfig) -> None:
    assert Allowance(**config.allowance) == Allowance()


@pytest.mark.study
def test_a_tiny_study(study: Callable[..., Path]) -> None:
    metrics = json.loads((study("budgets", *TINY) / f"budgets/{processor_name()}.json").read_text())
    assert {name: list(runs) for name, runs in metrics["models"].items()} == {
        "tiny_merge": ["5", "8"],
        "tiny_chain": ["5"],
    }
    assert metrics["models"]["tiny_chain"]["5"]["share_percent"] is None
    share = metrics["budgets"]["5"]["share_percent"]
    assert (share["value"], share["cases"]) == (100.0, 1)


@pytest.mark.study
def test_a_long_run_of_no_model_is_refused(study_refused: Callable[..., str]) -> None:
    said = study_refused("budgets", "graphs=[tiny_merge]", "long_models=[bret]")
    assert "long_models names bret: choose among tiny_merge" in said
