"""Mutated ONNX files: refused in one sentence, or exported as a model that computes the same; never a crash."""

import tempfile
from pathlib import Path
from random import Random

import onnx
import pytest
from support.conformance.behaviours import crashes, hangs, is_greedy, is_well
from support.conformance.commands import Answers, Said, problem, ran
from support.conformance.damage import EQUAL, EXPORTED, REFUSED, Toll
from support.conformance.guarded_process import GuardedProcess
from support.conformance.mutation import OF_BYTES, OF_MODELS, fields, mutated

from rlflow import zoo

TINY = zoo.build("tiny_transpose").SerializeToString()
FILES = 150
COMMANDS = 8


def test_damaged_files_are_refused_or_exported() -> None:
    """Both, each often enough: a reader that refuses everything and one that believes everything would be found."""
    toll = Toll()
    toll.take(range(10**6, 10**6 + FILES))
    assert not toll.failures
    assert toll.outcomes.total() == FILES
    assert toll.outcomes[REFUSED] >= FILES / 2
    assert toll.outcomes[EXPORTED] + toll.outcomes[EQUAL] >= FILES / 20
    assert toll.outcomes[EQUAL] >= 1


@pytest.mark.slow
def test_commands_take_damaged_files_of_all_kinds() -> None:
    """`make test MARK=fuzz ONLY=tests/onnx_io` tries 10,000."""
    answers = Answers()
    answers.take(range(10**6, 10**6 + COMMANDS))
    assert answers.failures == []
    assert sum(counts.total() for counts in answers.outcomes.values()) == COMMANDS
    assert len(answers.outcomes) > 1


@pytest.mark.parametrize(
    ("said", "wrong"),
    [
        (Said(0, "done", ""), ""),
        (Said(2, "", "rlflow: no such file\n"), ""),
        (Said(1, "", "", "KeyError: 1"), "traceback: KeyError: 1"),
        (Said(-6, "", ""), "exit code -6: "),
        (Said(2, "", "rlflow: two\nlines\n"), "not one sentence: rlflow: two\nlines\n"),
        (Said(2, "", ""), "not one sentence: "),
    ],
)
def test_an_answer_that_is_not_as_it_should_be_is_found(said: Said, wrong: str) -> None:
    assert problem(said) == wrong


def test_a_command_in_this_process_answers_as_one_in_a_shell(tmp_path: Path) -> None:
    said = ran("show", str(tmp_path / "absent.onnx"))
    assert said == Said(2, "", f"rlflow: there is no file {tmp_path / 'absent.onnx'}\n")
    assert problem(Said(0, f"{tempfile.gettempdir()}/rlflow-x/y", "")).startswith("names a temporary file")


def test_the_same_seed_makes_the_same_file() -> None:
    assert mutated(Random(1), TINY) == mutated(Random(1), TINY) != mutated(Random(2), TINY)


def test_every_mutation_is_made() -> None:
    """And nearly all of them change the file."""
    made = [mutated(Random(seed), TINY) for seed in range(1000)]
    names = {name for names, _ in made for name in names.split(" and ")}
    assert names == {mutation.__name__ for mutation in (*OF_BYTES, *OF_MODELS)}
    assert sum(content != TINY for _, content in made) >= 950


def test_fields_are_those_that_protobuf_finds() -> None:
    found = [TINY[f.body : f.end] for f in fields(TINY)]
    model = onnx.ModelProto.FromString(TINY)
    assert model.graph.SerializeToString() in found
    assert all(node.SerializeToString() in found for node in model.graph.node)
    assert all(node.op_type.encode() in found for node in model.graph.node)


@pytest.mark.parametrize(
    ("function", "answer"),
    [(crashes, "crash: exit code -6"), (is_greedy, "traceback: "), (is_well, "model.onnx")],
)
def test_a_guarded_process_says_how_it_died(function, answer: str) -> None:  # type: ignore[no-untyped-def]
    with GuardedProcess(function) as process:
        assert process(Path("model.onnx")).startswith(answer)
        assert process(Path("model.onnx")).startswith(answer)


def test_a_guarded_process_thathangs_is_ended() -> None:
    with GuardedProcess(hangs, longest_s=1.0) as process:
        assert process(Path("model.onnx")) == "hang: no answer in 1.0 s"
