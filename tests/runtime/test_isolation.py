"""Functions in processes of their own, which end in every way in which a process can."""

import os
import pickle
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import psutil
import pytest

from rlflow.equivalence.compare import compare
from rlflow.errors import InputError, RLFlowError
from rlflow.runtime import isolation
from rlflow.runtime.inputs import draw_inputs
from rlflow.runtime.isolation import Limits, ProcessDeath, ProcessTimeout, call_isolated
from rlflow.runtime.session import open_session

LIMITS = Limits(longest_s=60.0, most_memory_bytes=2**31)


def test_an_answer_comes_back():
    assert call_isolated(LIMITS, divmod, 17, 5) == (3, 2)
    assert call_isolated(LIMITS, os.getpid) != os.getpid()
    assert call_isolated(LIMITS, partial(np.add, 1), np.arange(2)).tolist() == [1, 2]


def test_errors_come_back(make_dense):
    with pytest.raises(ZeroDivisionError):
        call_isolated(LIMITS, divmod, 1, 0)
    with pytest.raises(InputError, match="draws is 0"):
        call_isolated(LIMITS, compare, make_dense(), make_dense(), draws=0)


def test_a_crash_is_told():
    with pytest.raises(ProcessDeath, match=r"ended the process that ran it \(SIGABRT\)"):
        call_isolated(LIMITS, os.abort)
    with pytest.raises(ProcessDeath, match="exit code 7"):
        call_isolated(LIMITS, os._exit, 7)


def test_a_hang_is_ended():
    start = time.monotonic()
    with pytest.raises(ProcessDeath, match="did not finish within 2 s"):
        call_isolated(Limits(longest_s=2.0), time.sleep, 600)
    assert time.monotonic() - start < 60


def test_what_is_called_off_is_ended():
    """After it has been asked three times, which takes no time to speak of."""
    asked = []
    limits = Limits(is_called_off=lambda: asked.append(None) or len(asked) > 3)
    with pytest.raises(ProcessTimeout, match="it was interrupted"):
        call_isolated(limits, time.sleep, 600)
    assert len(asked) == 4


def test_a_process_is_not_in_the_group_that_a_terminal_interrupts():
    assert call_isolated(LIMITS, os.getpgrp) != os.getpgrp()


def test_a_process_does_not_outlive_its_parent(tmp_path: Path):
    """The parent is killed, so that it can end nobody, while the other process would sleep on for minutes."""
    told = tmp_path / "pid"
    code = (
        "import sys; from rlflow.runtime.isolation import Limits, call_isolated; "
        'call_isolated(Limits(), exec, f\'import os, time; open({sys.argv[1]!r}, "w").write(str(os.getpid())); '
        "time.sleep(300)')"
    )
    parent = subprocess.Popen([sys.executable, "-c", code, str(told)])
    assert _soon(lambda: told.exists() and told.read_text().strip())
    other = psutil.Process(int(told.read_text()))
    parent.kill()
    parent.wait()
    assert _soon(lambda: not other.is_running() or other.status() == psutil.STATUS_ZOMBIE)


def test_a_process_does_not_outlive_a_parent_that_ends_before_it_begins(tmp_path: Path):
    """It is started by hand, for a caller that has ended already: its own parent is this process, which lives on.

    It ends by itself without a word: an error would be told on stderr.
    """
    call, answer = tmp_path / "call", tmp_path / "answer"
    call.write_bytes(pickle.dumps((time.sleep, (300,), {})))
    caller = subprocess.Popen([sys.executable, "-c", ""])
    caller.wait()
    code = "import sys; from rlflow.runtime.isolation import serve; serve(*sys.argv[1:])"
    arguments = (call, answer, LIMITS.most_memory_bytes, caller.pid)
    other = subprocess.run([sys.executable, "-c", code, *map(str, arguments)], stderr=subprocess.PIPE, timeout=60.0)
    assert (other.returncode, other.stderr) == (1, b"")
    assert not answer.exists()


def _soon(happens: Callable[[], object]) -> bool:
    """Wait until it happens, a minute at most; False if it does not."""
    deadline = time.monotonic() + 60.0
    while not happens():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def test_memory_is_limited():
    """Twice the limit, which the machine would give; half of it is no problem."""
    ones = partial(np.ones, dtype=np.int8)
    with pytest.raises(ProcessDeath, match="more memory than there is"):
        call_isolated(LIMITS, ones, 2**32)
    assert call_isolated(LIMITS, partial(np.count_nonzero), np.ones(2**20)) == 2**20


def test_weights_that_fit_into_no_message_travel_beside_it(make_dense, monkeypatch):
    model = make_dense(width=64)
    before = model.SerializeToString()
    monkeypatch.setattr(isolation, "MESSAGE_LIMIT_BYTES", 1024)
    report = call_isolated(LIMITS, compare, model, model)
    assert report.equivalent
    assert report.non_vacuous_draws == 3
    assert model.SerializeToString() == before
    assert open_session(model, "as_written").run(None, draw_inputs(model, np.random.default_rng(0)))


def test_nothing_is_left_behind(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    call_isolated(LIMITS, divmod, 1, 1)
    with pytest.raises(ProcessDeath):
        call_isolated(LIMITS, os.abort)
    assert list(tmp_path.iterdir()) == []


def test_no_room_for_what_it_is_given_is_told():
    """A file system that is full: here, files may not be larger than a few bytes."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        with pytest.raises(RLFlowError, match=r"temporary files could not be written .*TMPDIR"):
            call_isolated(LIMITS, np.sum, np.zeros(100_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert call_isolated(LIMITS, np.sum, np.ones(100_000)) == 100_000
