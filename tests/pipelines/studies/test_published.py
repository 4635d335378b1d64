"""Notes of the code that made each published figure: what makes a figure old, and the page that says so."""

from dataclasses import replace
from pathlib import Path

import pytest
from studies.measurements import Bench
from studies.published import (
    PAGE,
    RESULTS,
    made_by,
    outdated,
    page,
    publish,
    publish_derived,
    publish_part,
    read_notes,
    write_notes,
)

ROWS = [
    {"name": "start", "value": 2.0, "unit": "ms", "baseline": "an import", "baseline_value": 1.0, "cases": 3},
]
PROGRAM = Path(__file__).parents[3] / "benchmarks/big_model.py"


@pytest.fixture
def published(tmp_path: Path) -> Path:
    """A folder of results with one file, made by today's code."""
    path = tmp_path / RESULTS / "bench.json"
    path.parent.mkdir(parents=True)
    publish(path, Bench, ROWS, PROGRAM)
    return path.parent


def test_what_todays_code_made_is_current(published: Path) -> None:
    maker = made_by(published)["bench.json"]
    assert (maker.programs, maker.is_current, outdated(published)) == (("benchmarks/big_model.py",), True, [])


def test_other_code_other_bytes_a_lost_program_or_no_note_make_a_figure_old(published: Path) -> None:
    notes = read_notes(published)
    note = notes["bench.json"]
    for programs in ({"benchmarks/big_model.py": "0123456789abcdef"}, {"benchmarks/gone.py": "0123456789abcdef"}):
        write_notes(published, {"bench.json": replace(note, programs=programs)})
        assert outdated(published) == [f"{published}/bench.json: the code that made it has changed since"]
    write_notes(published, {})
    assert outdated(published) == [f"{published}/bench.json: the code that made it was not noted"]
    write_notes(published, notes)
    assert outdated(published) == []
    (published / "bench.json").write_text("[]")
    assert outdated(published) == [f"{published}/bench.json: the code that made it has changed since"]


def test_a_file_made_in_parts_is_as_old_as_its_oldest(published: Path) -> None:
    path, note = published / "bench.json", read_notes(published)["bench.json"]
    publish_part(path, Bench, ROWS * 2, PROGRAM)
    assert outdated(published) == []
    write_notes(published, {"bench.json": replace(note, programs={"benchmarks/big_model.py": "0123456789abcdef"})})
    publish_part(path, Bench, ROWS, PROGRAM)
    assert len(outdated(published)) == 1
    write_notes(published, {})
    publish_part(path, Bench, ROWS, PROGRAM)
    assert len(outdated(published)) == 1
    publish(path, Bench, ROWS, PROGRAM)
    assert outdated(published) == []


def test_a_file_made_from_others_is_as_old_as_the_oldest(published: Path) -> None:
    source, derived = published / "bench.json", published / "big_model.json"
    publish_derived(derived, Bench, ROWS, [source], PROGRAM)
    assert outdated(published) == []
    notes = read_notes(published)
    write_notes(published, {"bench.json": replace(notes["bench.json"], programs={"benchmarks/rules.py": "0" * 16})})
    publish_derived(derived, Bench, ROWS, [source], PROGRAM)
    assert [line.partition(":")[0] for line in outdated(published)] == [str(source), str(derived)]


def test_a_file_elsewhere_has_no_note(tmp_path: Path) -> None:
    publish(tmp_path / "bench.json", Bench, ROWS, PROGRAM)
    publish_part(tmp_path / "bench.json", Bench, ROWS, PROGRAM)
    assert [path.name for path in tmp_path.iterdir()] == ["bench.json"]


def test_the_page_names_every_published_file(repository: Path, publishable: tuple[Path, ...]) -> None:
    """By the lock of the last commit, or by that of a run which is to be committed with it."""
    written = (repository / PAGE).read_text()
    assert any(written == page(root) for root in publishable), "write it anew: python pipelines/check_results.py --page"
    for path in (repository / RESULTS).rglob("*.json"):
        assert f"| `{path.relative_to(repository / RESULTS)}` | `" in written
