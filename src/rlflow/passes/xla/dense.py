"""Networks of dense layers: plain, on eight-bit integers, embeddings, a mixture of experts, a graph network."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from rlflow.passes.xla.lowering import Model, Parameters, Program, cross_entropy, tensor
from rlflow.passes.xla.random_keys import dropped, key_of, key_type, keys_for

_CLASSES = 8
_GENERATOR = "threefry2x32"


def mlp(layers: int = 2, width: int = 32, batch: int = 4, dropout: bool = False) -> Model:
    """Dense layers with biases and ReLU."""
    types: dict[str, Any] = {"classes": tensor(width, _CLASSES)}
    for layer in range(layers):
        types |= {f"{layer}.weight": tensor(width, width), f"{layer}.bias": tensor(width)}

    def apply(p: Parameters, x: Any, content: Any = None) -> Any:
        keys = keys_for(key_of(content, _GENERATOR) if dropout else None, layers)
        for layer in range(layers):
            x = dropped(jax.nn.relu(x @ p[f"{layer}.weight"] + p[f"{layer}.bias"]), keys[layer])
        return x @ p["classes"]

    inputs = (tensor(batch, width), key_type(_GENERATOR)) if dropout else (tensor(batch, width),)
    return _classifier(types, inputs, tensor(batch, dtype="int32"), apply)


def quantised(layers: int = 2, width: int = 32, batch: int = 4) -> Program:
    """Products of eight-bit integers summed in 32 bits, each packed again by a scale."""
    weights = tuple(tensor(width, width, dtype="int8") for _ in range(layers))

    def function(weights: Any, x: Any) -> Any:
        for weight in weights:
            sums = jax.lax.dot(x, weight, preferred_element_type=jnp.int32)
            x = jnp.clip(jnp.round(sums.astype(jnp.float32) / width), -127, 127).astype(jnp.int8)
        return x, jax.lax.bitcast_convert_type(x.reshape(batch, width // 4, 4), jnp.int32)

    return Program(function, (weights, tensor(batch, width, dtype="int8")))


def embedding(rows: int = 32, width: int = 16, words: int = 8, batch: int = 4) -> Model:
    """A bag of words: rows of a table, averaged. A step adds into the rows that it has read."""
    types = {"table": tensor(rows, width), "out": tensor(width, rows)}

    def apply(p: Parameters, ids: Any) -> Any:
        return jnp.mean(p["table"][ids], axis=1) @ p["out"]

    return _classifier(types, (tensor(batch, words, dtype="int32"),), tensor(batch, dtype="int32"), apply)


def experts(experts: int = 4, width: int = 16, batch: int = 8) -> Model:
    """A mixture of experts: each row goes to the two that a router prefers."""
    types = {"router": tensor(width, experts), "weight": tensor(experts, width, width), "out": tensor(width, _CLASSES)}

    def apply(p: Parameters, x: Any) -> Any:
        best, chosen = jax.lax.top_k(x @ p["router"], min(2, experts))
        share = jax.nn.softmax(best)
        read = jnp.einsum("bi,bkio->bko", x, p["weight"][chosen])
        return jnp.einsum("bk,bko->bo", share, jax.nn.silu(read)) @ p["out"]

    return _classifier(types, (tensor(batch, width),), tensor(batch, dtype="int32"), apply)


def graph_network(rounds: int = 2, width: int = 16, nodes: int = 8, edges: int = 24) -> Model:
    """Messages along edges, summed at the nodes that they reach."""
    types: dict[str, Any] = {"classes": tensor(width, _CLASSES)}
    types |= {f"{turn}.{part}": tensor(width, width) for turn in range(rounds) for part in ("message", "keep")}
    ends = tensor(edges, dtype="int32")

    def apply(p: Parameters, x: Any, senders: Any, receivers: Any) -> Any:
        for turn in range(rounds):
            sent = jax.nn.relu(x[senders] @ p[f"{turn}.message"])
            x = jnp.tanh(x @ p[f"{turn}.keep"] + jax.ops.segment_sum(sent, receivers, nodes))
        return x @ p["classes"]

    return _classifier(types, (tensor(nodes, width), ends, ends), tensor(nodes, dtype="int32"), apply)


def _classifier(types: Parameters, inputs: tuple[Any, ...], labels: Any, apply: Any) -> Model:
    def loss(p: Parameters, *data: Any) -> Any:
        *given, wanted = data
        return cross_entropy(apply(p, *given), wanted)

    return Model(types, inputs, (labels,), apply, loss)
