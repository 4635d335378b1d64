"""A function of jax as the StableHLO that XLA compiles, and a model with its training step.

    model = Model(parameters, inputs, targets, apply, loss)
    lowered(*forward(model))        the function and the types of its arguments
    lowered(*step(model))           the loss, its gradient and an update by momentum, as one program

Invariant: the same function and the same types give the same bytes, whatever device jax would choose.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

Parameters = Mapping[str, Any]
Arguments = tuple[Any, ...]

_MOMENTUM, _RATE = 0.9, 0.01


class Program(NamedTuple):
    """A function and the types of its arguments, trees of `jax.ShapeDtypeStruct`."""

    function: Callable[..., Any]
    arguments: Arguments


class Model(NamedTuple):
    """A model: `apply(parameters, *inputs)` is its output and `loss(parameters, *inputs, *targets)` a number."""

    parameters: Parameters
    inputs: Arguments
    targets: Arguments
    apply: Callable[..., Any]
    loss: Callable[..., Any]


def lowered(program: Program) -> bytes:
    """Return the program as StableHLO text, without the names of files that it was written in."""
    traced = jax.jit(program.function, keep_unused=True).trace(*program.arguments)
    module = traced.lower(lowering_platforms=("cpu",)).compiler_ir("stablehlo")
    return str(module.operation.get_asm(enable_debug_info=False)).encode()


def forward(model: Model) -> Program:
    """The model as it is applied."""
    return Program(model.apply, (model.parameters, *model.inputs))


def step(model: Model) -> Program:
    """A step of training: parameters and momenta, inputs and targets in, all of the first two and the loss out."""

    def train(parameters: Parameters, momenta: Parameters, *data: Any) -> Any:
        loss, gradient = jax.value_and_grad(model.loss)(parameters, *data)
        momenta = jax.tree.map(lambda old, new: _MOMENTUM * old + new, momenta, gradient)
        return jax.tree.map(lambda value, change: value - _RATE * change, parameters, momenta), momenta, loss

    return Program(train, (model.parameters, model.parameters, *model.inputs, *model.targets))


def tensor(*shape: int, dtype: str = "float32") -> jax.ShapeDtypeStruct:
    """The type of an argument."""
    return jax.ShapeDtypeStruct(shape, jnp.dtype(dtype))


def cross_entropy(logits: Any, labels: Any) -> Any:
    """The mean negative logarithm of the probability of each label; one row of `logits` a label."""
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[..., None], axis=-1)
    return -jnp.mean(chosen)
