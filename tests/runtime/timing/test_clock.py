import time

from rlflow.runtime.timing.clock import clock_ns, shortest_ns


def test_on_one_thread_waiting_takes_no_time() -> None:
    """20 ms asleep, which the wall clock sees: whoever else has the processor meanwhile does not count."""
    starts = [clock_ns(threads) for threads in (1, 2)]
    time.sleep(0.02)
    alone, several = (clock_ns(threads) - start for threads, start in zip((1, 2), starts, strict=True))
    assert alone < 0.02e9 <= several


def test_work_takes_time() -> None:
    start = clock_ns(1)
    sum(range(100_000))
    assert clock_ns(1) > start


def test_a_reading_that_the_clock_lost_is_no_time_of_a_run() -> None:
    """A virtual machine was seen to tell a run of 5 us that it had taken none."""
    assert shortest_ns([4940, 0, 4960, 5003]) == 4940
    assert shortest_ns([4940]) == 4940
