"""The clock of a measurement: the time that the work itself takes.

On one thread that is the processor time of the thread, which stands still while the scheduler runs somebody else; on
several, the time on the wall, because each of them waits for the slowest.
"""

import time


def clock_ns(threads: int) -> int:
    """Return nanoseconds since some moment, for a run of this thread on `threads` threads."""
    return time.thread_time_ns() if threads == 1 else time.perf_counter_ns()
