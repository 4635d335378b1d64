"""Processes do what they are given, and end with the one that has started them."""

import os
import subprocess
import sys

import psutil
import pytest
from support.stages import process_of
from tracking.processes import mapping, process_pool, queue_process

WAITING = """
import time
from tracking.processes import process_pool, queue_process

if __name__ == "__main__":
    with queue_process(), process_pool(2) as pool:
        jobs = [pool.submit(time.sleep, 600) for _ in range(2)]
        while not all(job.running() for job in jobs):
            time.sleep(0.1)
        print("waiting", flush=True)
        jobs[0].result()
"""


def test_a_pool_has_processes_of_its_own():
    with process_pool(2) as pool:
        assert pool.submit(os.getpid).result() != os.getpid()
        assert list(pool.map(abs, [-1, 2, -3])) == [1, 2, 3]


@pytest.mark.parametrize("processes", [1, 2])
def test_what_is_done_one_at_a_time_is_done_here(processes: int):
    """So that nothing is imported anew."""
    with mapping(processes) as at_once:
        numbers = {*at_once(process_of, range(2))}
    assert (numbers == {os.getpid()}) == (processes == 1)


def test_another_process_can_be_given_a_queue():
    with queue_process() as queues, process_pool(1) as pool:
        queue = queues.Queue()
        pool.submit(queue.put, "told").result()
        assert queue.get() == "told"


def test_they_end_with_who_was_killed(tmp_path):
    """Two that work and one that keeps queues, however far they have come; nobody is there to tell them.

    Nobody asks at first what became of the one that was killed, so that its number is still there.
    """
    program = tmp_path / "waiting.py"
    program.write_text(WAITING)
    caller = subprocess.Popen([sys.executable, str(program)], stdout=subprocess.PIPE, text=True)
    assert caller.stdout is not None
    assert caller.stdout.readline() == "waiting\n"
    children = psutil.Process(caller.pid).children(recursive=True)
    assert len(children) >= 3
    caller.kill()
    caller.communicate(timeout=60)
    _, alive = psutil.wait_procs(children, timeout=60)
    assert not alive
