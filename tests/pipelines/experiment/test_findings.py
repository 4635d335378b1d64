"""Five lines on an experiment: each figure in them is a stored one, beside its baseline."""

import json
from pathlib import Path
from typing import Any

import pytest
from experiment.findings import findings
from experiment.results import read_results
from support import documents as examples

from rlflow.errors import InputError

STAGES = ("generate_rules", "fit_world_model", "train_controller", "temperature_sweep", "evaluate")


@pytest.fixture
def documents() -> dict[str, Any]:
    return examples.documents()


def written(documents: dict[str, Any], folder: Path) -> Path:
    for stage in STAGES:
        (folder / stage).mkdir(parents=True)
        (folder / stage / "metrics.json").write_text(json.dumps(documents[stage]))
    return folder


def test_five_lines_with_the_stored_figures(documents: dict[str, Any], tmp_path: Path):
    """The formulation of the first graph has no R², so its error is told; both graphs are named."""
    documents["evaluate"]["tiny"] = documents["evaluate"]["bert"]
    rules, dream, policy, cost, time = findings(written(documents, tmp_path))
    assert str(documents["generate_rules"]["library"]["rules"]) in rules
    assert "0.9 (copy: 0.5) on bert" in dream
    assert policy.startswith("Policy: alone it saves ")
    assert "10.00 % (greedy: 8.00 %, backtracking: 9.00 %) on bert" in cost
    assert "1.13 [1.11, 1.14] times as fast (delivered) on bert" in time
    assert "noise" not in time


def test_match_tokens_are_told_by_what_v_explains(documents: dict[str, Any], tmp_path: Path):
    documents["evaluate"]["tiny"] = documents["evaluate"]["bert"]
    del documents["fit_world_model"]["bert"]
    lines = findings(written(documents, tmp_path))
    assert lines[1] == "Dream: V tells what a match saves with an R² of 0.90 (its rule's mean: 0.50) on tiny."


def test_what_is_within_noise_is_called_so(documents: dict[str, Any], tmp_path: Path):
    documents["evaluate"]["bert"]["rlflow"] |= {
        "latency_ratio_deployed": 1.05,
        "latency_ratio_deployed_ci95": [0.99, 1.09],
        "delivered": "original",
    }
    del documents["evaluate"]["tiny"]
    (told,) = findings(written(documents, tmp_path))[4:]
    assert told.endswith("1.05 [0.99, 1.09] times as fast (noise; delivered: the original) on bert.")


def test_a_model_that_is_slower_is_not_called_noise(documents: dict[str, Any], tmp_path: Path):
    documents["evaluate"]["bert"]["rlflow"] |= {
        "latency_ratio_deployed": 0.9,
        "latency_ratio_deployed_ci95": [0.88, 0.91],
        "delivered": "original",
    }
    documents["evaluate"]["tiny"] = examples.documents()["evaluate"]["bert"]
    time = findings(written(documents, tmp_path))[4]
    assert "0.90 [0.88, 0.91] times as fast (delivered: the original) on bert" in time
    assert "1.13 [1.11, 1.14] times as fast (delivered) on tiny" in time, "each graph's own"


def test_results_that_are_missing_are_named(documents: dict[str, Any], tmp_path: Path):
    folder = written(documents, tmp_path)
    (folder / "evaluate/metrics.json").unlink()
    with pytest.raises(InputError, match=r"evaluate/metrics\.json"):
        findings(folder)


def test_the_published_figures_are_told(repository: Path):
    """Of each graph the saving that is stored."""
    results = repository / "data/results"
    lines = findings(results)
    assert len(lines) == 5
    for graph, methods in read_results(results / "evaluate/metrics.json").items():
        assert f"{methods['rlflow']['improvement_percent']:.2f} %" in lines[3]
        assert graph in lines[4]
