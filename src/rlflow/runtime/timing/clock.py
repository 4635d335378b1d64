"""The clock of a measurement: the time that the work itself takes.

On one thread that is the processor time of the thread, which stands still while the scheduler runs somebody else; on
several, the time on the wall, because each of them waits for the slowest.

Other work only ever adds time. The clock itself may lose some: on a virtual machine a run of 5 us was told to
have taken none at all. So the time of a few equal runs is that of the second fastest.
"""

import time
from collections.abc import Sequence


def clock_ns(threads: int) -> int:
    """Return nanoseconds since some moment, for a run of this thread on `threads` threads."""
    return time.thread_time_ns() if threads == 1 else time.perf_counter_ns()


def shortest_ns(times_ns: Sequence[int]) -> int:
    """Return the second shortest of the times of equal runs, which no single odd reading makes; of one run, its own."""
    return sorted(times_ns)[:2][-1]
