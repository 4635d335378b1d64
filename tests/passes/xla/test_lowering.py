"""Functions of jax as StableHLO, and steps of training made of models."""

import jax.numpy as jnp
import numpy as np

from rlflow.passes.xla.compiler import compiled, on_device, run
from rlflow.passes.xla.lowering import Model, cross_entropy, forward, lowered, step, tensor

_LINE = Model(
    {"slope": tensor()},
    (tensor(3),),
    (tensor(3),),
    lambda p, x: p["slope"] * x,
    lambda p, x, y: jnp.sum((p["slope"] * x - y) ** 2),
)


def test_lowering_is_deterministic_and_tells_no_paths() -> None:
    text = lowered(step(_LINE))
    assert text == lowered(step(_LINE))
    assert b".py" not in text
    assert b"loc(" not in text


def test_the_model_is_applied() -> None:
    x = np.array([1, 2, 3], np.float32)
    (output,) = run(compiled(lowered(forward(_LINE))), on_device([np.float32(2), x]))
    assert output.tolist() == [2, 4, 6]


def test_a_step_goes_down_the_gradient_with_momentum() -> None:
    """d/ds (s x - y)^2 = 2 x (s x - y), by hand at s = 2, x = (1, 2, 3), y = 0: 4 + 16 + 36."""
    x, y = np.array([1, 2, 3], np.float32), np.zeros(3, np.float32)
    inputs = on_device([np.float32(2), np.float32(10), x, y])
    slope, momentum, loss = run(compiled(lowered(step(_LINE))), inputs)
    assert loss == 4 + 16 + 36
    np.testing.assert_allclose(momentum, 0.9 * 10 + 56, rtol=1e-6)
    np.testing.assert_allclose(slope, 2 - 0.01 * momentum, rtol=1e-6)


def test_cross_entropy_of_even_odds_is_the_logarithm_of_their_number() -> None:
    loss = cross_entropy(jnp.zeros((5, 4)), jnp.arange(5) % 4)
    np.testing.assert_allclose(loss, np.log(4), rtol=1e-6)
