"""Random numbers whose key is an argument of the program."""

import numpy as np
import pytest

from rlflow.passes.xla.compiler import compiled, on_device, run
from rlflow.passes.xla.lowering import Program, lowered, tensor
from rlflow.passes.xla.random_keys import dropped, key_of, key_type, keys_for


@pytest.mark.parametrize("generator", ["rbg", "threefry2x32"])
def test_a_tenth_is_dropped_and_the_mean_is_kept(generator: str) -> None:
    """Another key drops others, the same key the same."""

    def function(x, content):
        return dropped(x, key_of(content, generator))

    program = compiled(lowered(Program(function, (tensor(10_000), key_type(generator)))))
    contents = [np.full(key_type(generator).shape, value, np.uint32) for value in (1, 1, 2)]
    once, again, other = (run(program, on_device([np.ones(10_000, np.float32), each]))[0] for each in contents)
    assert np.array_equal(once, again)
    assert not np.array_equal(once, other)
    assert 0.08 < (once == 0).mean() < 0.12
    assert abs(once.mean() - 1) < 0.02


def test_without_a_key_nothing_is_dropped() -> None:
    assert keys_for(None, 2) == [None, None]
    assert dropped("anything", None) == "anything"
