"""Records of passes: written, read, replayed, and refused when they lead elsewhere."""

import dataclasses
from pathlib import Path

import pytest
from support.toy_compiler import ToyCompiler

from rlflow.errors import InputError, ReplayError
from rlflow.passes.record import PassRecord, read_record, replayed, write_record
from rlflow.passes.transitions import Transitions


def recorded(names: tuple[str, ...] = ("cancel", "expand", "swap", "cancel")) -> tuple[Transitions, PassRecord]:
    transitions = Transitions(ToyCompiler())
    return transitions, PassRecord.of(transitions, "toy", "cc", transitions.start("cc"), names)


def test_a_record_is_read_as_it_was_written_and_leads_to_the_same_program(tmp_path: Path) -> None:
    transitions, record = recorded()
    assert [step.name for step in record.steps] == ["expand", "swap", "cancel"], "the first changes nothing"
    write_record(tmp_path / "found.json", record)
    assert read_record(tmp_path / "found.json") == record
    assert replayed(transitions, record, transitions.start("cc")).operations == 0


def test_another_program_is_refused() -> None:
    transitions, record = recorded()
    with pytest.raises(ReplayError, match="the program cc is"):
        replayed(transitions, record, transitions.start("abab"))


def test_a_step_that_leads_elsewhere_is_named() -> None:
    transitions, record = recorded()
    wrong = dataclasses.replace(record.steps[1], name="expand")
    with pytest.raises(ReplayError, match="the program after step 2, expand, is"):
        replayed(transitions, dataclasses.replace(record, steps=(record.steps[0], wrong)), transitions.start("cc"))


def test_a_step_that_fails_is_named() -> None:
    transitions, record = recorded()
    wrong = dataclasses.replace(record.steps[0], name="refuse")
    with pytest.raises(ReplayError, match="step 1: refuse: it never works"):
        replayed(transitions, dataclasses.replace(record, steps=(wrong,)), transitions.start("cc"))


_OF_ANOTHER_KIND = '{"backend": "toy", "source": [], "key": "0", "operations": 3, "steps": []}'


@pytest.mark.parametrize("content", ["", "[]", '{"backend": "toy"}', _OF_ANOTHER_KIND])
def test_a_file_that_is_no_record_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "found.json").write_text(content)
    with pytest.raises(InputError, match="holds no record of passes"):
        read_record(tmp_path / "found.json")
