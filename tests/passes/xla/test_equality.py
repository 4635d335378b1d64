"""Programs that compute the same and ones that do not quite."""

import math

import jax.numpy as jnp
import pytest

from rlflow.passes.xla.backend import XlaBackend
from rlflow.passes.xla.equality import tolerance
from rlflow.passes.xla.lowering import Program, lowered, tensor


def _program(function, *types) -> bytes:
    return lowered(Program(function, types or (tensor(4, 4),)))


@pytest.mark.parametrize(
    ("other", "problem"),
    [
        (lambda x: ((x @ x) * 2, x.argmax(0)), ""),
        (lambda x: (jnp.einsum("ij,jk->ik", x + x, x), x.argmax(0)), ""),
        (lambda x: (x @ x * 2.001, x.argmax(0)), "output '0' differs by"),
        (lambda x: (2 * x @ x, x.argmin(0)), "output '1' (int32) differs in"),
        (lambda x: (2 * x @ x,), "the program has 1 outputs, should have 2"),
        (lambda x: ((2 * x @ x)[:2], x.argmax(0)), "should be float32[4, 4]"),
    ],
)
def test_rounding_is_no_difference_and_a_thousandth_is(xla: XlaBackend, other, problem: str) -> None:
    said = xla.check(_program(lambda x: (2 * (x @ x), x.argmax(0))), _program(other), seed=0)
    assert problem in said
    assert bool(said) == bool(problem)


def test_half_precision_is_compared_as_coarsely(xla: XlaBackend) -> None:
    half = tensor(4, 4, dtype="bfloat16")
    exact = _program(lambda x: x * 3, half)
    assert xla.check(exact, _program(lambda x: x + x + x, half), seed=0) == ""
    assert xla.check(exact, _program(lambda x: x * 5, half), seed=0)


def test_the_tolerance_grows_with_sums_in_a_row(xla: XlaBackend) -> None:
    none, two = (
        tolerance(xla.graph(xla.load(_program(function)).payload)) for function in (jnp.sin, lambda x: x @ x @ x)
    )
    assert none == 16 * 2.0**-23
    assert two == none * math.sqrt(3)
