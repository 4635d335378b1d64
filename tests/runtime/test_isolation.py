"""Functions in processes of their own, which end in every way in which a process can."""

import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import psutil
import pytest

from rlflow.equivalence.compare import compare
from rlflow.errors import InputError, RLFlowError
from rlflow.runtime import isolation
from rlflow.runtime.inputs import draw_inputs
from rlflow.runtime.isolation import Limits, ProcessDeath, ProcessTimeout, Workers, call_isolated
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
    with pytest.raises(ProcessDeath, match=r"the process that ran it was ended \(SIGABRT\)"):
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


def test_a_process_does_not_outlive_a_parent_that_ends_before_it_begins():
    """It is started by hand, for a caller that has ended already: its own parent is this process, which lives on.

    It ends by itself without a word: an error would be told on stderr.
    """
    caller = subprocess.Popen([sys.executable, "-c", ""])
    caller.wait()
    (calls, own), (unread, answers) = os.pipe(), os.pipe()
    code = "import sys; from rlflow.runtime.isolation import serve; serve(*sys.argv[1:])"
    arguments = map(str, (calls, answers, caller.pid))
    other = subprocess.run(
        [sys.executable, "-c", code, *arguments], stderr=subprocess.PIPE, timeout=60.0, pass_fds=(calls, answers)
    )
    assert (other.returncode, other.stderr) == (1, b"")
    for end in (calls, own, unread, answers):
        os.close(end)


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


def test_no_room_for_weights_that_fit_into_no_message_is_told(make_dense, monkeypatch):
    """A file system that is full: here, files may not be larger than a few bytes."""
    model = make_dense(width=64)
    monkeypatch.setattr(isolation, "MESSAGE_LIMIT_BYTES", 1024)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        with pytest.raises(RLFlowError, match=r"temporary files could not be written .*TMPDIR"):
            call_isolated(LIMITS, compare, model, model)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert call_isolated(LIMITS, compare, model, model).equivalent


def test_one_process_answers_all_calls_of_workers():
    """Without them, each has a fresh one, whatever the others did to theirs."""
    with Workers("rlflow.optimise.clock") as workers:
        limits = replace(LIMITS, workers=workers)
        assert {call_isolated(limits, os.getpid) for _ in range(3)} == {*workers.process_ids}
        assert call_isolated(limits, eval, "'rlflow.optimise.clock' in __import__('sys').modules")
        with pytest.raises(ZeroDivisionError):
            call_isolated(limits, divmod, 1, 0)
        assert (call_isolated(limits, os.getpid),) == workers.process_ids, "an error ends none"
    assert len({call_isolated(LIMITS, os.getpid) for _ in range(3)}) == 3


@pytest.mark.parametrize(
    ("function", "argument", "said"),
    [(os._exit, 7, "exit code 7"), (os.kill, 0, "SIGKILL"), (time.sleep, 600, "did not finish within 2 s")],
    ids=["crash", "killed", "hang"],
)
def test_a_worker_that_dies_gives_way_to_another(function: Callable[..., object], argument: int, said: str):
    with Workers() as workers:
        limits = replace(LIMITS, workers=workers)
        first = call_isolated(limits, os.getpid)
        arguments = (first, signal.SIGKILL) if function is os.kill else (argument,)
        with pytest.raises(ProcessDeath, match=said):
            call_isolated(replace(limits, longest_s=2.0), function, *arguments)
        assert not psutil.pid_exists(first)
        assert call_isolated(limits, os.getpid) not in (first, os.getpid())
        assert len(workers.process_ids) == 1


def test_an_answer_that_nobody_waited_for_is_not_that_of_the_next_call():
    """Who interrupts does so while the call goes on, whose answer would be next."""

    def interrupt() -> bool:
        raise KeyboardInterrupt

    with Workers() as workers:
        with pytest.raises(KeyboardInterrupt):
            call_isolated(Limits(is_called_off=interrupt, workers=workers), divmod, 17, 5)
        assert workers.process_ids == ()
        assert call_isolated(Limits(workers=workers), divmod, 7, 5) == (1, 2)


def test_calls_at_the_same_time_have_processes_of_their_own():
    """Each waits for a file that the other one writes: one after another, they would never end."""
    with Workers() as workers, tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as threads:
        code = (
            "import os, pathlib, time\n"
            f"pathlib.Path({folder!r}, str(own)).touch()\n"
            f"while not pathlib.Path({folder!r}, str(1 - own)).exists(): time.sleep(0.01)"
        )
        limits = replace(LIMITS, workers=workers)
        list(threads.map(lambda own: call_isolated(limits, exec, code, {"own": own}), range(2)))
        assert len(workers.process_ids) == 2


def test_no_worker_is_left_behind():
    with Workers() as workers:
        other = Workers()
        left = (*workers.process_ids, *other.process_ids)
        assert all(map(psutil.pid_exists, left))
        del other  # by who forgets to close
    assert not any(map(psutil.pid_exists, left))
    assert call_isolated(replace(LIMITS, workers=workers), divmod, 7, 5) == (1, 2), "by a process of its own"
    assert workers.process_ids == ()


def test_the_memory_of_a_call_is_not_that_of_the_next():
    ones = partial(np.ones, dtype=np.int8)
    with Workers() as workers:
        limits = replace(LIMITS, workers=workers)
        with pytest.raises(ProcessDeath, match="more memory than there is"):
            call_isolated(limits, ones, 2**32)
        larger = replace(limits, most_memory_bytes=2**33)
        assert call_isolated(larger, eval, "len(bytes(2**32))") == 2**32
