"""The study of regions' borders: a tiny study runs to its end."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from support.study_settings import study_settings

from rlflow import zoo


def test_every_large_model_of_the_zoo_is_in_it() -> None:
    small = {name for name in zoo.names() if zoo.describe(name).family in ("tiny", "mlp", "control_flow")}
    assert {*zoo.names()} - small - {*study_settings("borders").graphs} == {"conv"}


@pytest.mark.study
def test_a_tiny_study(study: Callable[..., Path]) -> None:
    """Node by node, two products are priced that run as one kernel with what follows."""
    results = study("borders", "graphs=[bert_tiny]", "walks.number=1", "walks.steps=3")
    assert {path.name for path in (results / "borders").iterdir()} == {"metrics.json", "table.md"}
    row = json.loads((results / "borders/metrics.json").read_text())["bert_tiny"]
    assert len(row["rewritten_percent"]) == 1
    assert 0 <= row["differs_percent"] < row["node_by_node_percent"] <= 100
