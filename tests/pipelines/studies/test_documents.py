"""Every results file has a type: those that are published follow it, and what does not is named with its path."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import check_results as script
import pytest
from experiment.documents.evaluate import Evaluate
from studies.documents import check_results, document_type, documents
from studies.measurements import Bench
from support.documents import sample


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A sample of each results file."""
    for pattern, kind in documents().items():
        path = tmp_path / pattern.replace("*", "some")
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(sample(kind, optional=True)))
    return tmp_path


def test_published_files_are_sound_and_of_every_type(repository: Path) -> None:
    published = repository / "data/results"
    assert check_results(published) == []
    matched = {pattern for pattern in documents() for path in published.rglob("*.json") if path.match(pattern)}
    assert matched == set(documents())


def test_each_file_is_really_checked(folder: Path) -> None:
    assert check_results(folder) == []
    paths = sorted(folder.rglob("*.json"))
    for path in paths:
        path.write_text(json.dumps({"made": "up"}))
    problems = check_results(folder)
    assert len(problems) == len(paths) == len(documents())
    assert all(found.startswith(f"{path}: document does not") for path, found in zip(paths, problems, strict=True))


def test_missing_unknown_and_broken_files_are_problems(folder: Path) -> None:
    assert check_results(folder / "absent") == [f"{folder / 'absent'}: no results file"]
    (folder / "notes.json").write_text("{}")
    (folder / "evaluate" / "metrics.json").write_text('{"bert": ')
    (folder / "elsewhere").mkdir()
    (folder / "elsewhere" / "metrics.json").write_text("{}")
    problems = "\n".join(check_results(folder))
    assert len(problems.splitlines()) == 3
    assert f"{folder}/evaluate/metrics.json: cannot read" in problems
    assert f"{folder}/notes.json: no type of documents belongs to this file" in problems
    assert f"{folder}/elsewhere/metrics.json: no type of documents belongs to this file" in problems


def changed(folder: Path, file: str, change: Callable[[Any], None]) -> list[str]:
    document = json.loads((folder / file).read_text())
    change(document)
    (folder / file).write_text(json.dumps(document))
    return [problem.partition(": document does not follow its type: ")[2] for problem in check_results(folder)]


def test_figures_that_contradict_each_other_are_problems(folder: Path) -> None:
    def rows(document: Any) -> None:
        (graph,) = document.values()
        graph["original"] |= {"cost_before_ms": 10.0, "cost_after_ms": 9.2, "improvement_percent": 9.0}

    (found,) = changed(folder, "evaluate/metrics.json", rows)
    assert found.endswith("/original/improvement_percent: 9.00, but the costs give 8.00")


def inner(document: Any) -> Any:
    """What stands below the first key of the document, and below the first key there."""
    return next(iter(next(iter(document.values())).values()))


def test_curves_have_a_value_for_each_step(folder: Path) -> None:
    (found,) = changed(folder, "curves.json", lambda document: inner(document)["step"].append(2))
    assert found.endswith(": 2 steps but 1 values")


def test_a_table_of_searches_has_a_best_one(folder: Path) -> None:
    def unmark(document: Any) -> None:
        inner(document)["original"]["best_known"] = False

    (found,) = changed(folder, "headroom/metrics.json", unmark)
    assert found.endswith(": no method is marked as the best known")


def test_files_find_their_type_by_place_and_name() -> None:
    assert document_type(Path("data/results/paper/evaluate/metrics.json")) is Evaluate
    assert document_type(Path("data/results/pass_walks.json")) is Bench
    assert document_type(Path("data/results/bench.csv")) is None
    assert document_type(Path("data/results/elsewhere/metrics.json")) is None


def test_the_program_names_problems_and_prints_schemas(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert script.main([str(folder)]) == 0
    (folder / "notes.json").write_text("{}")
    assert script.main([str(folder)]) == 1
    assert capsys.readouterr().err.splitlines()[-1] == f"1 problems in {folder}"
    assert script.main(["--schema", str(folder / "bench.json")]) == 0
    assert json.loads(capsys.readouterr().out)["items"] == {"$ref": "#/$defs/Benchmark"}
    assert script.main(["--schema", "notes.json"]) == 2
