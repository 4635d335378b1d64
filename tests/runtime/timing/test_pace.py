import pytest

from rlflow.runtime.timing.pace import pace_ms


def test_the_pace_is_the_time_of_some_work() -> None:
    """33 million multiplications and additions: more than 10 us on any machine, less than a second."""
    assert all(0.01 < pace_ms(threads) < 1000 for threads in (1, 2))


@pytest.mark.timing
def test_the_pace_of_a_quiet_machine_is_steady() -> None:
    """Within the 30 % by which a round is called slow."""
    paces_ms = sorted(pace_ms(1) for _ in range(50))
    assert paces_ms[-3] < 1.3 * paces_ms[25]
