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
    assert "0.90, more than that of copy (0.50), on bert" in dream
    assert policy.startswith("Policy: alone it saves ")
    assert "10.00 %, more than the best search (greedy: 8.00 %, backtracking: 9.00 %), on bert" in cost
    assert cost.endswith("Of 2 graphs it wins 2, ties 0 and loses 0.")
    assert "1.13 [1.11, 1.14] times as fast (faster; delivered) on bert" in time
    assert "noise" not in time


def test_match_tokens_are_told_by_what_v_explains(documents: dict[str, Any], tmp_path: Path):
    documents["evaluate"]["tiny"] = documents["evaluate"]["bert"]
    del documents["fit_world_model"]["bert"]
    lines = findings(written(documents, tmp_path))
    assert (
        lines[1] == "Dream: V tells what a match saves with an R² of 0.90, more than its rule's mean (0.50), on tiny."
    )


def test_what_is_within_noise_is_called_so(documents: dict[str, Any], tmp_path: Path):
    documents["evaluate"]["bert"]["rlflow"] |= {
        "latency_ratio_deployed": 1.05,
        "latency_ratio_deployed_ci95": [0.99, 1.09],
        "delivered": "original",
    }
    del documents["evaluate"]["tiny"]
    (told,) = findings(written(documents, tmp_path))[4:]
    assert told.endswith(
        "1.05 [0.99, 1.09] times as fast (no difference beyond noise; delivered: the original) on bert."
    )


def test_a_model_that_is_slower_is_not_called_noise(documents: dict[str, Any], tmp_path: Path):
    documents["evaluate"]["bert"]["rlflow"] |= {
        "latency_ratio_deployed": 0.9,
        "latency_ratio_deployed_ci95": [0.88, 0.91],
        "delivered": "original",
    }
    documents["evaluate"]["tiny"] = examples.documents()["evaluate"]["bert"]
    time = findings(written(documents, tmp_path))[4]
    assert "0.90 [0.88, 0.91] times as fast (slower; delivered: the original) on bert" in time
    assert "1.13 [1.11, 1.14] times as fast (faster; delivered) on tiny" in time, "each graph's own"


@pytest.mark.parametrize(
    ("saved", "told", "score"),
    [
        (9.0, "9.00 %, as much as the best search", "it wins 1, ties 1 and loses 0."),
        (9.004, "9.00 %, as much as the best search", "it wins 1, ties 1 and loses 0."),  # by the digits that are shown
        (7.5, "7.50 %, less than the best search", "it wins 1, ties 0 and loses 1."),
    ],
)
def test_a_tie_and_a_loss_are_called_so(documents: dict[str, Any], tmp_path: Path, saved: float, told: str, score: str):
    """Whatever is found; the other graph is won."""
    documents["evaluate"]["tiny"] = examples.documents()["evaluate"]["bert"]
    documents["evaluate"]["bert"]["rlflow"]["improvement_percent"] = saved
    cost = findings(written(documents, tmp_path))[3]
    assert f"{told} (greedy: 8.00 %, backtracking: 9.00 %), on bert" in cost
    assert cost.endswith(score)


def test_one_graph_has_no_score_and_a_worse_model_is_not_praised(documents: dict[str, Any], tmp_path: Path):
    del documents["evaluate"]["tiny"]
    del documents["fit_world_model"]["bert"]
    documents["fit_world_model"]["tiny"]["saving_r2"] |= {"value": 0.38, "baseline": 0.82}
    lines = findings(written(documents, tmp_path))
    assert "0.38, less than its rule's mean (0.82), on tiny" in lines[1]
    assert "wins" not in lines[3]


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
