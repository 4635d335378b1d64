"""Results files: what is written follows its type, and a refused document leaves the file as it was."""

import json
from pathlib import Path
from typing import Any

import pytest
from experiment.documents import DOCUMENTS
from experiment.documents.curves import Curve, TrainingCurves
from experiment.documents.evaluate import Evaluate
from experiment.documents.train_controller import TrainController
from experiment.results import read_results, type_of, write_results
from support.documents import FIGURE

from rlflow.errors import InputError, RLFlowError


def test_a_document_of_dictionaries_and_objects_is_read_again(evaluation: dict[str, Any], tmp_path: Path) -> None:
    write_results(tmp_path / "metrics.json", Evaluate, evaluation)
    assert read_results(tmp_path / "metrics.json") == evaluation
    write_results(
        tmp_path / "curves.json", TrainingCurves, {"bert": {"loss": Curve("nats", "epoch", [0, 1], [2.0, 1.0])}}
    )
    content = {"unit": "nats", "step_name": "epoch", "step": [0, 1], "value": [2.0, 1.0]}
    assert json.loads((tmp_path / "curves.json").read_text()) == {"bert": {"loss": content}}


def test_a_refused_document_leaves_the_file_as_it_was(evaluation: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "metrics.json"
    write_results(path, Evaluate, evaluation)
    before = path.read_bytes()
    evaluation["bert"]["greedy"]["cost_after_ms"] = 1.0
    with pytest.raises(RLFlowError, match=rf"refused to write {path}: .*the costs give 90\.00"):
        write_results(path, Evaluate, evaluation)
    evaluation["bert"]["greedy"]["flops_ratio"] = float("inf")
    with pytest.raises(RLFlowError, match="at /bert/greedy/flops_ratio: inf is not a finite number"):
        write_results(path, Evaluate, evaluation)
    assert path.read_bytes() == before
    assert [*tmp_path.iterdir()] == [path]


def test_the_baseline_of_a_figure_is_one_of_those_that_are_known(documents: dict[str, Any], tmp_path: Path) -> None:
    document = documents["train_controller"]
    document["bert"]["real_score_percent"] = FIGURE.to_json() | {"baseline_name": "luck"}
    with pytest.raises(RLFlowError, match="Invalid enum value 'luck'"):
        write_results(tmp_path / "metrics.json", TrainController, document)


@pytest.mark.parametrize(("text", "reason"), [("[NaN]", "NaN is not JSON"), ('{"bert": ', "Expecting value")])
def test_what_is_no_strict_json_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "metrics.json").write_text(text)
    with pytest.raises(InputError, match=rf"cannot read .*metrics\.json as JSON: .*{reason}"):
        read_results(tmp_path / "metrics.json")


def test_files_find_their_type_by_the_end_of_their_path() -> None:
    assert type_of(Path("data/results/evaluate/metrics.json"), DOCUMENTS) is Evaluate
    assert type_of(Path("data/results/paper/fit_world_model/curves.json"), DOCUMENTS) is TrainingCurves
    assert type_of(Path("data/results/evaluate/optimise.json"), DOCUMENTS) is None
