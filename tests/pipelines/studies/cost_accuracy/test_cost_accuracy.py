"""The study of the cost model's accuracy: what its configuration names exists, and a tiny study runs to its end."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from experiment.tables import cost_accuracy_table
from studies.cost_accuracy.documents import Accuracy
from support.documents import sample
from support.study_settings import study_settings

from rlflow import zoo


def test_every_large_model_of_the_zoo_is_in_it() -> None:
    config = study_settings("cost_accuracy")
    small = {name for name in zoo.names() if zoo.describe(name).family in ("tiny", "mlp", "control_flow")}
    assert {*zoo.names()} - small - {*config.graphs} == {"conv"}


def test_the_table_has_a_row_for_each_graph() -> None:
    row = sample(
        Accuracy,
        cost_model_ms=10.5,
        end_to_end_ms=10.0,
        difference_percent=5.0,
        alone_difference_percent=24.0,
        control=1.001,
        control_ci95=[0.998, 1.004],
    )
    table = cost_accuracy_table({"squeezenet1_1": row}).splitlines()
    assert table[2] == "| squeezenet1_1 | 10.500 | 10.000 | +5.0 | +24.0 | 1.001 [0.998, 1.004] |"


@pytest.mark.study
def test_a_tiny_study(study: Callable[..., Path]) -> None:
    """Of microseconds, which prove no more than that the figures are there and belong together."""
    results = study("cost_accuracy", "graphs=[tiny_merge]", "latency.rounds=2")
    assert {path.name for path in (results / "cost_accuracy").iterdir()} == {"metrics.json", "table.md"}
    row = json.loads((results / "cost_accuracy/metrics.json").read_text())["tiny_merge"]
    assert row["cost_model_ms"] == pytest.approx(row["regions_ms"] + row["reorders_ms"], rel=1e-9)
    assert row["difference_percent"] == pytest.approx(100 * (row["cost_model_ms"] / row["end_to_end_ms"] - 1), rel=1e-9)
