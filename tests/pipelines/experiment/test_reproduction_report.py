"""What is told of a reproduction: the document counts what was compared, and the tables say what the document says."""

import io
from typing import Any

import pytest
from experiment.documents.reproduction import ReproductionReport
from experiment.reproduction import Compared, Reproduction
from experiment.reproduction_report import report, show
from rich.console import Console

from rlflow import schemas
from rlflow.schemas import Kind

EVALUATION = "data/results/evaluate/metrics.json"
FIGURES = (
    Compared(EVALUATION, "/bert/greedy/steps", Kind.EQUAL, 133, 131, False),
    Compared(EVALUATION, "/bert/greedy/seeds", Kind.EQUAL, [0], [0], True),
    Compared(EVALUATION, "/bert/rlflow/max_relative_error", Kind.DIGITS, 1e-7, 2e-7, True),
    Compared(EVALUATION, "/bert/original/optimisation_s", Kind.TIMING, 0.0, 0.0, True),
    Compared(EVALUATION, "/bert/greedy/optimisation_s", Kind.TIMING, 10.0, 20.0, True),
    Compared(EVALUATION, "/bert/random/optimisation_s", Kind.TIMING, 10.0, 15.0, True),
    Compared(EVALUATION, "/bert/greedy/latency_ratio", Kind.TIMING, 1.0, 2.0, True, ([0.9, 1.1], [1.9, 2.1])),
    Compared(EVALUATION, "/bert/random/latency_ratio", Kind.TIMING, 1.0, 1.1, True, ([0.9, 1.1], [1.0, 1.2])),
    Compared(EVALUATION, "/bert/rlflow/delivered", Kind.TIMING, "original", "optimised", True),
    Compared(EVALUATION, "/bert/newer", Kind.EQUAL, None, {"steps": 1, "seeds": [0]}, False),
)
OUTPUTS = (
    Compared("data/rules", "", Kind.EQUAL, "abc", "abc", True),
    Compared("data/policies", "", Kind.DIGITS, "abc", "def", True),
    Compared("data/models", "", Kind.TIMING, None, None, False),
)


@pytest.fixture
def document() -> dict[str, Any]:
    return report(Reproduction(FIGURES, OUTPUTS, ("x.json: HEAD has no such file",)), "HEAD", "here")


def shown(document: dict[str, Any]) -> str:
    console = Console(file=io.StringIO(), width=160)
    show(document, console)
    return console.file.getvalue()


def row_of(text: str, *words: str) -> list[str]:
    (row,) = (line.split() for line in text.splitlines() if all(word in line.split() for word in words))
    return row


def test_the_document_follows_its_schema_and_counts_by_kind(document: dict[str, Any]) -> None:
    schemas.validate(ReproductionReport, document)
    assert document["kinds"] == {
        "equal": {"figures": 3, "unlike_figures": 2, "outputs": 1, "unlike_outputs": 0},
        "digits": {"figures": 1, "unlike_figures": 0, "outputs": 1, "unlike_outputs": 0},
        "timing": {"figures": 6, "unlike_figures": 0, "outputs": 1, "unlike_outputs": 1},
    }
    assert [output["same_bytes"] for output in document["outputs"]] == [True, False, False]


def test_what_is_unlike_comes_by_kind_with_both_values(document: dict[str, Any]) -> None:
    told = [(entry["place"], entry["published"], entry["fresh"]) for entry in document["unlike"]]
    assert told == [("/bert/greedy/steps", "133", "131"), ("/bert/newer", "none", "2 keys"), ("", "none", "none")]
    assert [entry["deviation"] for entry in document["unlike"]] == [pytest.approx(2 / 133), None, None]


def test_times_are_told_as_ratios_of_figures_of_one_name(document: dict[str, Any]) -> None:
    """A time of nothing has no ratio, and is counted."""
    latency, optimisation = document["timings"]
    assert (optimisation["name"], optimisation["figures"]) == ("optimisation_s", 3)
    assert optimisation["ratio"] == {"median": 1.75, "least": 1.5, "greatest": 2.0}
    assert latency["intervals_apart"] == ["/bert/greedy/latency_ratio"]


def test_the_tables_say_what_the_document_says(document: dict[str, Any]) -> None:
    text = shown(document)
    assert text.startswith("Published: HEAD. Fresh: here.\n")
    assert row_of(text, "/bert/greedy/steps")[1:] == ["/bert/greedy/steps", "equal", "133", "131", "1.5e-02"]
    assert row_of(text, "optimisation_s")[1:] == ["optimisation_s", "1.75", "1.50", "2.00"]
    assert row_of(text, "must", "equal") == ["equal", "must", "be", "equal", "3", "2", "1", "0"]
    assert row_of(text, "data/policies", "digits")[2:] == ["others"]
    assert text.splitlines()[-2:] == [
        "x.json: HEAD has no such file",
        "Not reproduced. Unlike figures: 2; unlike outputs: 1; files not compared: 1.",
    ]


def test_a_long_table_says_what_it_leaves_out(document: dict[str, Any]) -> None:
    document["unlike"] = [document["unlike"][0] | {"place": f"/place/{i}"} for i in range(100)]
    text = shown(document)
    rows = sum("/place/" in line for line in text.splitlines())
    assert 10 <= rows < 100
    assert f"and {100 - rows} more: --json has all" in text


def test_a_run_that_only_learned_otherwise_is_told_from_others() -> None:
    """It is not reproduced either, but nothing that must be equal is unlike."""
    learned = Compared(EVALUATION, "/bert/rlflow/steps", Kind.DIGITS, 10, 12, False)
    other = report(Reproduction((*FIGURES[1:7], learned), OUTPUTS[:2], ()), "HEAD", "here")
    assert not other["reproduced"]
    assert (
        shown(other).splitlines()[-1].startswith("Reproduced, but for figures that differ by more than last digits: 1.")
    )
    both = report(Reproduction((*FIGURES, learned), OUTPUTS[:2], ()), "HEAD", "here")
    assert shown(both).splitlines()[-1].startswith("Not reproduced.")


def test_a_run_that_is_the_published_one_is_reproduced() -> None:
    same = report(Reproduction((FIGURES[1],), (OUTPUTS[0],), ()), "HEAD", "here")
    assert same["reproduced"]
    assert shown(same).splitlines()[-1] == "Reproduced."
    assert "Not as published" not in shown(same)
