"""The study of speedups names what exists, and a tiny one runs from end to end."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from omegaconf import DictConfig
from studies.documents import check_results
from studies.speedups.public_tools import names
from support.study_settings import study_settings

from rlflow.optimise.gate import GateConfig


@pytest.fixture(scope="module")
def config(repository: Path) -> DictConfig:
    return study_settings("speedups")


def test_whatever_is_named_is_there(config: DictConfig, repository: Path) -> None:
    assert {model.graph for model in config.models} <= {
        file.stem for file in (repository / "conf/graph").glob("*.yaml")
    }
    assert set(config.tools) <= set(names())
    assert GateConfig(**config.gate).time_s == config.gate.time_s


def test_the_targets_are_those_that_were_promised(config: DictConfig) -> None:
    """Of transformers and of one convolutional net more speed, of two others that none is lost."""
    targets = {model.graph: model.target for model in config.models}
    assert len(targets) == 8
    assert sorted(name for name, target in targets.items() if target == 1.0) == ["mobilenet_v2", "yolo_v5"]
    assert all(1.03 <= target <= 1.12 for target in targets.values() if target != 1.0)


@pytest.mark.study
def test_a_tiny_study(repository: Path, store_root: Path, command: Callable) -> None:
    """Of microseconds, which prove no more than that the figures are there and belong together."""
    tiny = ("models=[{graph:tiny_merge,target:1.0}]", "budget_s=8", "tools=[onnxslim]", "gate.rounds=2")
    command("python", str(repository / "pipelines/study.py"), "speedups", *tiny, cwd=store_root)
    results = store_root / "data/results"
    assert check_results(results) == []
    assert {path.name for path in (results / "speedups").iterdir()} == {"metrics.json", "table.md"}
    metrics = json.loads((results / "speedups/metrics.json").read_text())
    row = metrics["models"]["tiny_merge"]
    assert row["rounds"] == 2
    assert row["optimise"]["rewrites"], "there is something to merge"
    assert list(row["public_tools"]) == ["ort_disable_all", "onnxslim"]
    best = row["best_public_tool"]
    assert best["ratio"] == max(tool["ratio"] for tool in row["public_tools"].values())
    assert not list((store_root / ".checkpoints/speedups").iterdir()), "nothing to go on from"
