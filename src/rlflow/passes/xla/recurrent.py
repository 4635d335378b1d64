"""Recurrent networks as loops over the sequence: plain, GRU and LSTM cells, and a linear state-space layer."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from rlflow.passes.xla.lowering import Model, Parameters, cross_entropy, tensor

_CLASSES = 8
_Cell = Callable[[Parameters, int, Any, Any], tuple[Any, Any]]


def rnn(layers: int = 1, width: int = 16, sequence: int = 8, batch: int = 2) -> Model:
    """Elman cells."""

    def cell(p: Parameters, layer: int, state: Any, x: Any) -> tuple[Any, Any]:
        state = jnp.tanh(x @ p[f"{layer}.in"] + state @ p[f"{layer}.again"] + p[f"{layer}.bias"])
        return state, state

    return _scanned(layers, width, sequence, batch, cell, gates=1, states=1)


def gru(layers: int = 1, width: int = 16, sequence: int = 8, batch: int = 2) -> Model:
    """Gated recurrent units."""

    def cell(p: Parameters, layer: int, state: Any, x: Any) -> tuple[Any, Any]:
        inner = jnp.split(x @ p[f"{layer}.in"] + p[f"{layer}.bias"], 3, -1)
        again = jnp.split(state @ p[f"{layer}.again"], 3, -1)
        reset, update = (jax.nn.sigmoid(inner[gate] + again[gate]) for gate in (0, 1))
        state = (1 - update) * jnp.tanh(inner[2] + reset * again[2]) + update * state
        return state, state

    return _scanned(layers, width, sequence, batch, cell, gates=3, states=1)


def lstm(layers: int = 1, width: int = 16, sequence: int = 8, batch: int = 2) -> Model:
    """Long short-term memory."""

    def cell(p: Parameters, layer: int, state: Any, x: Any) -> tuple[Any, Any]:
        hidden, memory = state
        joint = x @ p[f"{layer}.in"] + hidden @ p[f"{layer}.again"] + p[f"{layer}.bias"]
        kept, added, value, shown = jnp.split(joint, 4, -1)
        memory = jax.nn.sigmoid(kept) * memory + jax.nn.sigmoid(added) * jnp.tanh(value)
        hidden = jax.nn.sigmoid(shown) * jnp.tanh(memory)
        return (hidden, memory), hidden

    return _scanned(layers, width, sequence, batch, cell, gates=4, states=2)


def ssm(layers: int = 1, width: int = 16, sequence: int = 8, batch: int = 2) -> Model:
    """A linear recurrence with a decay for each channel, by an associative scan, gated by its input."""
    types: dict[str, Any] = {"classes": tensor(width, _CLASSES)}
    for layer in range(layers):
        types |= {f"{layer}.in": tensor(width, 2 * width), f"{layer}.decay": tensor(width)}

    def joined(left: Any, right: Any) -> Any:
        return left[0] * right[0], left[1] * right[0] + right[1]

    def apply(p: Parameters, x: Any) -> Any:
        for layer in range(layers):
            value, gate = jnp.split(x @ p[f"{layer}.in"], 2, -1)
            decay = jnp.broadcast_to(jax.nn.sigmoid(p[f"{layer}.decay"]), value.shape)
            x = x + jax.lax.associative_scan(joined, (decay, value), axis=1)[1] * jax.nn.silu(gate)
        return x[:, -1] @ p["classes"]

    return _classifier(types, (tensor(batch, sequence, width),), batch, apply)


def _scanned(layers: int, width: int, sequence: int, batch: int, cell: _Cell, gates: int, states: int) -> Model:
    types: dict[str, Any] = {"classes": tensor(width, _CLASSES)}
    for layer in range(layers):
        types |= {f"{layer}.{part}": tensor(width, gates * width) for part in ("in", "again")}
        types[f"{layer}.bias"] = tensor(gates * width)

    def apply(p: Parameters, x: Any) -> Any:
        values = x.transpose(1, 0, 2)
        for layer in range(layers):
            zero = jnp.zeros((batch, width))
            start = zero if states == 1 else (zero,) * states
            _, values = jax.lax.scan(partial(cell, p, layer), start, values)
        return values[-1] @ p["classes"]

    return _classifier(types, (tensor(batch, sequence, width),), batch, apply)


def _classifier(types: Parameters, inputs: tuple[Any, ...], batch: int, apply: Any) -> Model:
    def loss(p: Parameters, x: Any, labels: Any) -> Any:
        return cross_entropy(apply(p, x), labels)

    return Model(types, inputs, (tensor(batch, dtype="int32"),), apply, loss)
