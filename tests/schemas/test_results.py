import json
from pathlib import Path

import pytest
from experiment.results import STAGES, Figure, check_results, read_results, schema_of, write_results

from rlflow.errors import InputError, RLFlowError


def path_of(folder: Path, name: str) -> Path:
    """Where the results file of schema `name` lies."""
    if name in STAGES:
        return folder / name / "metrics.json"
    if name == "headroom_latency":
        return folder / "headroom" / "latency.json"
    return folder / {"curves": "fit_world_model", "rules_applied": "evaluate"}.get(name, "") / f"{name}.json"


PUBLISHED = [
    *STAGES,
    "headroom_latency",
    "bench",
    "conformance",
    "curves",
    "exports",
    "fuzz",
    "mutants",
    "rules_applied",
]


@pytest.fixture
def folder(documents, tmp_path):
    for name in PUBLISHED:
        write_results(path_of(tmp_path, name), documents[name])
    return tmp_path


def test_a_folder_of_sound_results_has_no_problem(folder, documents):
    assert check_results(folder) == []
    assert len(list(folder.rglob("*.json"))) == len(PUBLISHED) >= 14
    assert read_results(path_of(folder, "evaluate")) == documents["evaluate"]


@pytest.mark.parametrize("name", PUBLISHED)
def test_each_file_is_really_checked(folder, name):
    path = path_of(folder, name)
    path.write_text(json.dumps({"made": "up"}))
    problems = check_results(folder)
    assert len(problems) == 1
    assert problems[0].startswith(f"{path}: document does not follow schema {name!r}")


def test_the_paper_sized_results_are_found_in_their_folder(folder, documents):
    deeper = folder / "paper" / "evaluate" / "metrics.json"
    write_results(deeper, documents["evaluate"])
    deeper.write_text("{}")
    assert [problem.split(":")[0] for problem in check_results(folder)] == [str(deeper)]


def test_missing_unknown_broken_and_non_finite_files_are_problems(folder):
    assert check_results(folder / "absent") == [f"{folder / 'absent'}: no results file"]
    (folder / "notes.json").write_text("{}")
    (folder / "evaluate" / "metrics.json").write_text('{"bert": ')
    (folder / "bench.json").write_text("[NaN]")
    (folder / "elsewhere").mkdir()
    (folder / "elsewhere" / "metrics.json").write_text("{}")
    problems = "\n".join(check_results(folder))
    assert len(problems.splitlines()) == 4
    assert "notes.json: no schema belongs to this file" in problems
    assert "elsewhere/metrics.json: no schema belongs to this file" in problems
    assert "cannot read" in problems
    assert "NaN is not JSON" in problems


def test_figures_that_contradict_each_other_are_problems(folder, documents):
    evaluation, curves = documents["evaluate"], documents["curves"]
    evaluation["bert"]["greedy"]["improvement_percent"] += 1
    evaluation["bert"]["random"]["latency_ratio_deployed_ci95"] = [1.2, 1.1]
    curves["bert"]["loss"]["step"] = [0, 1, 2]
    path_of(folder, "evaluate").write_text(json.dumps(evaluation))
    path_of(folder, "curves").write_text(json.dumps(curves))
    problems = "\n".join(check_results(folder))
    assert "at /bert/greedy/improvement_percent: 9.00, but the costs give 8.00" in problems
    assert "at /bert/random/latency_ratio_deployed_ci95: the low end 1.2 lies above the high end 1.1" in problems
    assert "at /bert/loss: 3 steps but 2 values" in problems
    assert len(problems.splitlines()) == 3


def test_a_table_of_searches_without_a_best_or_with_a_wrong_saving_is_a_problem(folder, documents):
    headroom = documents["headroom"]
    headroom["bert"]["gpu"]["greedy"]["best_known"] = False
    headroom["bert"]["analytic"]["greedy"]["improvement_percent"] += 1
    path_of(folder, "headroom").write_text(json.dumps(headroom))
    wrong, unmarked = check_results(folder)
    assert "at /bert/analytic/greedy/improvement_percent: 11.00, but the costs give 10.00" in wrong
    assert "at /bert/gpu: no method is marked as the best known" in unmarked


def test_a_refused_document_leaves_the_file_as_it_was(folder, documents):
    path = path_of(folder, "evaluate")
    before = path.read_bytes()
    documents["evaluate"]["bert"]["greedy"]["cost_after_ms"] = 1.0
    with pytest.raises(RLFlowError, match=r"refused to write .*the costs give 90\.00"):
        write_results(path, documents["evaluate"])
    documents["evaluate"]["bert"]["greedy"]["flops_ratio"] = float("inf")
    with pytest.raises(RLFlowError, match="at /bert/greedy/flops_ratio: inf is not a finite number"):
        write_results(path, documents["evaluate"])
    assert path.read_bytes() == before
    assert {file.name for file in path.parent.iterdir()} == {"metrics.json", "rules_applied.json"}
    with pytest.raises(InputError, match="no schema belongs"):
        write_results(folder / "other" / "metrics.json", {})


def test_files_find_their_schema_by_place_and_name():
    assert schema_of(Path("data/results/evaluate/metrics.json")) == "evaluate"
    assert schema_of(Path("data/results/paper/fit_world_model/curves.json")) == "curves"
    assert schema_of(Path("data/results/bench.json")) == "bench"
    assert schema_of(Path("data/results/big_model.json")) == "bench"
    assert schema_of(Path("data/results/pass_walks.json")) == "bench"
    assert schema_of(Path("data/results/bench.csv")) is None
    assert schema_of(Path("data/results/evaluate/optimise.json")) is None


def test_a_figure_becomes_what_the_schemas_call_a_figure(documents, tmp_path):
    document = documents["train_controller"]
    document["bert"]["real_score_percent"] = Figure(3.0, 1.0, "random", cases=8).to_json()
    write_results(tmp_path / "train_controller" / "metrics.json", document)
    document["bert"]["real_score_percent"] = Figure(3.0, 1.0, "luck", cases=8).to_json()
    with pytest.raises(RLFlowError, match="'luck' is not one of"):
        write_results(tmp_path / "train_controller" / "metrics.json", document)
