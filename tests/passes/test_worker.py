"""A backend in a process of its own: the same answers, and an answer whatever becomes of the process."""

import os
import signal
import time

import psutil
import pytest
from support.toy_compiler import SOURCES, ToyCompiler

from rlflow.errors import InputError
from rlflow.passes.backend import PassError
from rlflow.passes.worker import Limits, WorkerBackend


def test_answers_are_those_of_the_backend_itself(toy: WorkerBackend) -> None:
    own = ToyCompiler()
    start = toy.load("cc")
    assert toy.catalogue() == own.catalogue()
    assert toy.sources() == SOURCES
    assert start == own.load("cc")
    assert toy.apply(start.payload, "expand") == own.apply(b"cc", "expand")
    assert toy.check(b"cc", b"baba", seed=0) == ""
    assert toy.check(b"cc", b"a", seed=0) != ""
    assert toy.compiled_operations(b"abab") == 2
    assert toy.times_ms([b"a", b"ab"], rounds=2, runs=1, seed=0) == {0: [2.0, 2.0], 1: [3.0, 3.0]}
    assert toy.process_id != os.getpid(), "which another process gave"


def test_errors_of_the_backend_come_back(toy: WorkerBackend) -> None:
    process = toy.load("cc") and toy.process_id
    with pytest.raises(PassError, match="refuse: it never works"):
        toy.apply(b"cc", "refuse")
    with pytest.raises(InputError, match="is no word"):
        toy.load("xyz")
    assert toy.process_id == process, "and its process goes on"
    assert toy.deaths == 0


def test_a_pass_that_aborts_the_process(toy: WorkerBackend) -> None:
    with pytest.raises(
        PassError, match=r"apply of 'abort' by the backend 'toy': the process that ran it was ended \(SIGABRT\)"
    ):
        toy.apply(b"cc", "abort")
    assert toy.deaths == 1
    assert toy.apply(b"cc", "expand").payload == b"baba", "by a process that was started anew"


def test_a_pass_that_never_ends(announced: None) -> None:
    with WorkerBackend("toy", Limits(longest_pass_s=1.0, longest_s=60.0)) as toy:
        toy.load("cc")  # start-up is not what is limited to a second
        began = time.monotonic()
        with pytest.raises(PassError, match="did not finish within 1 s"):
            toy.apply(b"cc", "hang")
        assert time.monotonic() - began < 30.0, "the pass would take an hour"
        assert toy.load("cc").payload == b"cc", "by a process that was started anew"


def test_a_process_that_is_killed_between_two_calls(toy: WorkerBackend) -> None:
    toy.load("cc")
    assert toy.process_id is not None
    os.kill(toy.process_id, signal.SIGKILL)
    with pytest.raises(PassError, match="SIGKILL"):
        toy.apply(b"cc", "expand")
    assert toy.apply(b"cc", "expand").payload == b"baba"


def test_no_process_is_left_behind(toy: WorkerBackend) -> None:
    toy.load("cc")
    process = toy.process_id
    assert process is not None
    assert psutil.pid_exists(process)
    toy.close()
    assert not psutil.pid_exists(process)


def test_a_wrong_name_is_refused_at_once() -> None:
    with pytest.raises(InputError, match="there is no pass backend 'gcc': choose one of onnx, "):
        WorkerBackend("gcc")
