"""Batch normalisation by XLA's operation against the formula, with its gradient."""

import jax
import jax.numpy as jnp
import numpy as np

from rlflow.passes.xla.batch_norm import batch_norm
from rlflow.passes.xla.lowering import Program, lowered, tensor


def _by_formula(images, scale, offset):
    mean, variance = images.mean((0, 1, 2)), images.var((0, 1, 2))
    return (images - mean) / jnp.sqrt(variance + 1e-5) * scale + offset


def test_value_and_gradient_are_those_of_the_formula() -> None:
    """The loss weighs each value differently: the gradient of a plain sum would be zero."""
    rng = np.random.default_rng(0)
    images = rng.normal(1.0, 2.0, (2, 3, 4, 5)).astype(np.float32)
    weights = rng.normal(size=images.shape).astype(np.float32)
    scale, offset = rng.normal(size=(2, 5)).astype(np.float32)

    def value_and_gradient(function):
        def loss(*arguments):
            return jnp.sum(function(*arguments) * weights)

        return jax.jit(jax.value_and_grad(loss, (0, 1, 2)))(images, scale, offset)

    ours = value_and_gradient(lambda *arguments: batch_norm(*arguments)[0])
    theirs = value_and_gradient(_by_formula)
    jax.tree.map(lambda left, right: np.testing.assert_allclose(left, right, rtol=1e-4, atol=1e-4), ours, theirs)


def test_it_is_one_operation_each_way() -> None:
    def function(images, scale, offset):
        return jax.grad(lambda x: jnp.sum(batch_norm(x, scale, offset)[0] ** 2))(images)

    text = lowered(Program(function, (tensor(2, 3, 3, 4), tensor(4), tensor(4)))).decode()
    assert text.count("stablehlo.batch_norm_training") == 1
    assert text.count("stablehlo.batch_norm_grad") == 1
