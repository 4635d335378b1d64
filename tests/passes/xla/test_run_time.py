"""Times of programs, in rounds."""

import pytest

from rlflow.errors import InputError
from rlflow.passes.xla.backend import XlaBackend
from rlflow.passes.xla.lowering import Program, lowered, tensor


def test_a_program_that_does_more_takes_longer(xla: XlaBackend) -> None:
    """Sixty-four products of large matrices against one: no noise makes up for that."""

    def products(count: int) -> bytes:
        def function(x):
            for _ in range(count):
                x = x @ x
            return x

        return lowered(Program(function, (tensor(96, 96),)))

    times = xla.times_ms([products(1), products(64)], rounds=2, runs=5, seed=0)
    assert {place: len(rounds) for place, rounds in times.items()} == {0: 2, 1: 2}
    assert max(times[0]) < min(times[1])
    assert min(times[0]) > 0


def test_nothing_to_time_is_refused(xla: XlaBackend) -> None:
    program = lowered(Program(lambda x: x, (tensor(1),)))
    with pytest.raises(InputError, match="nothing to time: 1 programs, 0 rounds, 3 runs"):
        xla.times_ms([program], rounds=0, runs=3, seed=0)
