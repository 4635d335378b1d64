"""Transitions: each pass run once, failures as no-ops, programs dropped and made again, a file that is shared."""

from pathlib import Path

import pytest
from support.toy_compiler import SafeToyCompiler, ToyCompiler

from rlflow.errors import InputError
from rlflow.passes.backend import PassError, Program
from rlflow.passes.transitions import Transitions


def test_a_pass_is_run_once_and_known_thereafter() -> None:
    transitions = Transitions(ToyCompiler())
    start = transitions.start("cc")
    first = transitions.step(start.key, "expand")
    assert first.changed
    assert first.facts.operations == 4
    assert transitions.step(start.key, "expand") == first
    assert (transitions.hits, transitions.misses) == (1, 1)


def test_a_pass_that_fails_or_does_nothing_is_a_no_op() -> None:
    transitions = Transitions(ToyCompiler())
    start = transitions.start("cc")
    failed = transitions.step(start.key, "refuse")
    assert (failed.facts, failed.changed, failed.error) == (start, False, "refuse: it never works")
    assert transitions.step(start.key, "refuse") == failed, "a failure is remembered with its reason"
    assert not transitions.step(start.key, "cancel").changed


def test_programs_beyond_the_memory_are_made_again() -> None:
    """With room for one byte only the newest program stays; the counter shows that the way back was walked anew."""
    transitions = Transitions(ToyCompiler(), most_bytes=1)
    facts = transitions.start("cc")
    keys = [facts.key]
    for name in ("expand", "swap", "cancel"):
        keys.append(transitions.step(keys[-1], name).facts.key)
    assert [transitions.payload(key) for key in keys] == [b"cc", b"baba", b"abab", b""]
    assert len(transitions._payloads) == 1, "and the limit holds"


def test_a_program_that_came_as_bytes_is_never_dropped() -> None:
    transitions = Transitions(ToyCompiler(), most_bytes=1)
    start = transitions.start(b"cab")
    transitions.step(start.key, "expand")
    assert transitions.payload(start.key) == b"cab"


def test_a_file_is_shared_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "toy.sqlite"
    first, second = Transitions(ToyCompiler(), path), Transitions(ToyCompiler(), path)
    start = first.start("cc")
    after = first.step(start.key, "expand")
    assert second.start("cc") == start
    assert second.step(start.key, "expand") == after
    assert (second.hits, second.misses) == (1, 0), "the compiler was not asked again"
    assert second.payload(after.facts.key) == b"baba", "though the bytes were never in this process"


class TwoHands(ToyCompiler):
    """Writes one program in two ways, by small or by capital letters, and has a pass that depends on it."""

    def apply(self, program: bytes, name: str) -> Program:
        made = {"expand": b"ab", "swap": b"AB", "cancel": b"c" if program.islower() else b"cc"}[name]
        return Program(made, self.load(made.lower()).facts)


def test_a_program_is_written_as_by_the_way_that_the_file_has(tmp_path: Path) -> None:
    """Who comes another way would else see another program, whose passes lead elsewhere."""
    path = tmp_path / "toy.sqlite"
    first, second = Transitions(TwoHands(), path), Transitions(TwoHands(), path)
    start = first.start("cc")
    small = first.step(start.key, "expand").facts
    assert second.start("cc") == start
    assert second.step(start.key, "swap").facts == small, "the same program, by another way"
    assert second.payload(small.key) == first.payload(small.key) == b"ab"
    assert second.step(small.key, "cancel").facts.operations == 1, "of capital letters it would be 2"


def test_a_program_of_bytes_is_not_made_again_without_them(tmp_path: Path) -> None:
    path = tmp_path / "toy.sqlite"
    start = Transitions(ToyCompiler(), path).start(b"cab")
    with pytest.raises(InputError, match="came to these transitions as bytes"):
        Transitions(ToyCompiler(), path).payload(start.key)


def test_a_backend_that_is_not_reproducible_is_noticed(tmp_path: Path) -> None:
    class Moody(ToyCompiler):
        def apply(self, program: bytes, name: str) -> Program:
            return super().apply(b"a", "cancel")

    path = tmp_path / "toy.sqlite"
    first = Transitions(ToyCompiler(), path)
    after = first.step(first.start("cc").key, "expand")
    with pytest.raises(PassError, match="now leads to"):
        Transitions(Moody(), path).payload(after.facts.key)


def test_a_file_of_another_compiler_is_refused_and_left_alone(tmp_path: Path) -> None:
    """Names of programs are alike from compiler to compiler; answers of one must not be taken for another's."""
    path = tmp_path / "toy.sqlite"
    start = Transitions(ToyCompiler(), path).start("cc")
    with pytest.raises(InputError, match="has the transitions of other passes than those of toy: name another file"):
        Transitions(SafeToyCompiler(), path)
    assert Transitions(ToyCompiler(), path).start("cc") == start


def test_an_unknown_program_is_refused() -> None:
    with pytest.raises(InputError, match="there is no program nowhere"):
        Transitions(ToyCompiler()).step("nowhere", "expand")
