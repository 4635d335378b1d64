"""Random numbers inside a program: its argument is the raw content of a key, so that runs can be repeated."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from rlflow.passes.xla.lowering import tensor

_WORDS = {"rbg": 4, "threefry2x32": 2}
_KEPT = 0.9


def key_type(generator: str) -> jax.ShapeDtypeStruct:
    """The type of a key's content: "rbg" is one operation of XLA, "threefry2x32" is spelled out in additions."""
    return tensor(_WORDS[generator], dtype="uint32")


def key_of(content: Any, generator: str) -> Any:
    """The key with this content."""
    return jax.random.wrap_key_data(content, impl=generator)


def dropped(values: Any, key: Any) -> Any:
    """Drop one value in ten and scale the others; without a key, return all."""
    if key is None:
        return values
    return jnp.where(jax.random.bernoulli(key, _KEPT, values.shape), values / _KEPT, 0.0)


def keys_for(key: Any, count: int) -> list[Any]:
    """Return so many keys of their own, none if there is no key."""
    return [None] * count if key is None else list(jax.random.split(key, count))
