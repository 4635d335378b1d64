"""GPT-2 and BERT, written plainly: pre-norm with a causal mask and tied output weights, post-norm with segments."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from rlflow.errors import InputError
from rlflow.passes.xla.lowering import Model, Parameters, cross_entropy, tensor
from rlflow.passes.xla.random_keys import dropped, key_of, key_type, keys_for

_GENERATOR = "rbg"
_CLASSES = 8
_SEGMENTS = 8  # no table has fewer rows than the indices that are drawn for programs reach
_MASKED = -1e9


def gpt2(
    layers: int = 2,
    width: int = 32,
    heads: int = 2,
    sequence: int = 16,
    batch: int = 2,
    vocabulary: int = 64,
    dropout: bool = False,
) -> Model:
    """A decoder that predicts the next token."""
    _check_heads(width, heads)
    types = _layer_types(layers, width)
    types |= {"tokens": tensor(vocabulary, width), "positions": tensor(sequence, width), **_norm_types("last", width)}
    tokens = tensor(batch, sequence, dtype="int32")

    def apply(p: Parameters, ids: Any, content: Any = None) -> Any:
        key, *keys = keys_for(key_of(content, _GENERATOR) if dropout else None, layers + 1)
        x = dropped(p["tokens"][ids] + p["positions"], key)
        mask = jnp.tril(jnp.ones((sequence, sequence), bool))
        for layer in range(layers):
            x = x + dropped(_attention(p, layer, _norm(p, f"{layer}.a", x), heads, mask), keys[layer])
            x = x + _feed_forward(p, layer, _norm(p, f"{layer}.b", x))
        return _norm(p, "last", x) @ p["tokens"].T

    def loss(p: Parameters, *data: Any) -> Any:
        *inputs, labels = data
        return cross_entropy(apply(p, *inputs), labels)

    inputs = (tokens, key_type(_GENERATOR)) if dropout else (tokens,)
    return Model(types, inputs, (tokens,), apply, loss)


def bert(
    layers: int = 2,
    width: int = 32,
    heads: int = 2,
    sequence: int = 16,
    batch: int = 2,
    vocabulary: int = 64,
    dropout: bool = False,
) -> Model:
    """An encoder that classifies a text by its first token."""
    _check_heads(width, heads)
    types = _layer_types(layers, width) | _norm_types("first", width)
    types |= {
        "tokens": tensor(vocabulary, width),
        "positions": tensor(sequence, width),
        "segments": tensor(_SEGMENTS, width),
        "pooler": tensor(width, width),
        "pooler_bias": tensor(width),
        "classes": tensor(width, _CLASSES),
    }
    ids, attended = tensor(batch, sequence, dtype="int32"), tensor(batch, sequence, dtype="bool")

    def apply(p: Parameters, ids: Any, segments: Any, attended: Any, content: Any = None) -> Any:
        key, *keys = keys_for(key_of(content, _GENERATOR) if dropout else None, layers + 1)
        x = dropped(_norm(p, "first", p["tokens"][ids] + p["positions"] + p["segments"][segments]), key)
        for layer in range(layers):
            attention = _attention(p, layer, x, heads, attended[:, None, None, :])
            x = _norm(p, f"{layer}.a", x + dropped(attention, keys[layer]))
            x = _norm(p, f"{layer}.b", x + _feed_forward(p, layer, x))
        return jnp.tanh(x[:, 0] @ p["pooler"] + p["pooler_bias"]) @ p["classes"]

    def loss(p: Parameters, *data: Any) -> Any:
        *inputs, labels = data
        return cross_entropy(apply(p, *inputs), labels)

    inputs = (ids, ids, attended, key_type(_GENERATOR)) if dropout else (ids, ids, attended)
    return Model(types, inputs, (tensor(batch, dtype="int32"),), apply, loss)


def _check_heads(width: int, heads: int) -> None:
    if width % heads:
        raise InputError(f"width={width} cannot be shared by heads={heads}: give a multiple")


def _layer_types(layers: int, width: int) -> dict[str, Any]:
    types: dict[str, Any] = {}
    for layer in range(layers):
        types |= {
            f"{layer}.qkv": tensor(width, 3 * width),
            f"{layer}.qkv_bias": tensor(3 * width),
            f"{layer}.out": tensor(width, width),
            f"{layer}.out_bias": tensor(width),
            f"{layer}.up": tensor(width, 4 * width),
            f"{layer}.up_bias": tensor(4 * width),
            f"{layer}.down": tensor(4 * width, width),
            f"{layer}.down_bias": tensor(width),
            **_norm_types(f"{layer}.a", width),
            **_norm_types(f"{layer}.b", width),
        }
    return types


def _norm_types(name: str, width: int) -> dict[str, Any]:
    return {f"{name}.scale": tensor(width), f"{name}.offset": tensor(width)}


def _norm(p: Parameters, name: str, x: Any) -> Any:
    mean, variance = jnp.mean(x, -1, keepdims=True), jnp.var(x, -1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * p[f"{name}.scale"] + p[f"{name}.offset"]


def _attention(p: Parameters, layer: int, x: Any, heads: int, mask: Any) -> Any:
    batch, sequence, width = x.shape
    joint = (x @ p[f"{layer}.qkv"] + p[f"{layer}.qkv_bias"]).reshape(batch, sequence, 3, heads, width // heads)
    query, key, value = (joint[:, :, part].transpose(0, 2, 1, 3) for part in range(3))
    scores = query @ key.transpose(0, 1, 3, 2) / jnp.sqrt(width / heads)
    weights = jax.nn.softmax(jnp.where(mask, scores, _MASKED))
    read = (weights @ value).transpose(0, 2, 1, 3).reshape(batch, sequence, width)
    return read @ p[f"{layer}.out"] + p[f"{layer}.out_bias"]


def _feed_forward(p: Parameters, layer: int, x: Any) -> Any:
    inner = jax.nn.gelu(x @ p[f"{layer}.up"] + p[f"{layer}.up_bias"])
    return inner @ p[f"{layer}.down"] + p[f"{layer}.down_bias"]
