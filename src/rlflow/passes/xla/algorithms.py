"""Programs with control flow, sorting and random numbers, for the passes that networks give nothing to do."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from rlflow.errors import InputError
from rlflow.passes.xla.lowering import Program, tensor
from rlflow.passes.xla.random_keys import key_of, key_type


def sampler(vocabulary: int = 32, batch: int = 2, best: int = 8, generator: str = "threefry2x32") -> Program:
    """Draw tokens among the best ones, within a sum of probabilities, as a language model does."""
    if best > vocabulary:
        raise InputError(f"best={best} of vocabulary={vocabulary}: give at most as many")

    def function(logits: Any, content: Any, temperature: Any) -> Any:
        values, places = jax.lax.top_k(logits / temperature, best)
        order = jnp.argsort(-values, axis=-1)
        values = jnp.take_along_axis(values, order, axis=-1)
        within = jnp.cumsum(jax.nn.softmax(values), axis=-1) < 0.9
        noise = jax.random.gumbel(key_of(content, generator), values.shape)
        choice = jnp.argmax(jnp.where(within, values + noise, -jnp.inf), axis=-1)
        return jnp.take_along_axis(jnp.take_along_axis(places, order, axis=-1), choice[:, None], axis=-1)

    return Program(function, (tensor(batch, vocabulary), key_type(generator), tensor()))


def branches(depth: int = 2, width: int = 16, batch: int = 2) -> Program:
    """Layers that are skipped or not, and one that chooses among three functions."""

    def function(weights: Any, x: Any, taken: Any, kind: Any) -> Any:
        for layer, weight in enumerate(weights):
            x = jax.lax.cond(taken[layer], lambda x, w=weight: jnp.tanh(x @ w), lambda x: x * 0.5, x)
        x = jax.lax.switch(kind, [jnp.sin, lambda x: jnp.exp(-x * x), lambda x: x], x)
        scale = jax.lax.cond(jnp.sum(x) > 0, lambda: 1.0, lambda: 2.0)
        return jax.lax.cond(jnp.bool_(True), lambda x: x * scale, lambda x: x - scale, x)

    weights = tuple(tensor(width, width) for _ in range(depth))
    return Program(function, (weights, tensor(batch, width), tensor(depth, dtype="bool"), tensor(dtype="int32")))


def iteration(width: int = 16, turns: int = 8, inner: int = 2) -> Program:
    """The power method: a matrix's greatest eigenvalue by a loop, with loops inside, some of them of one turn."""

    def function(matrix: Any, start: Any, shift: Any) -> Any:
        def turn(_: Any, vector: Any) -> Any:
            moved = (matrix @ matrix.T + shift * jnp.eye(width)) @ vector
            moved = jax.lax.fori_loop(0, inner, lambda _, v: v + 0.1 * jnp.sin(v), moved)
            return moved / jnp.sqrt(jnp.sum(moved * moved))

        vector = jax.lax.fori_loop(0, turns, turn, start)
        once = jax.lax.fori_loop(0, 1, turn, vector)
        return vector, vector @ (matrix @ (matrix.T @ vector)), once

    return Program(function, (tensor(width, width), tensor(width), tensor()))


def clusters(points: int = 16, width: int = 4, centres: int = 4, turns: int = 3) -> Program:
    """K-means by a loop: nearest centres, then means by segment."""

    def function(x: Any, start: Any) -> Any:
        def turn(_: Any, middle: Any) -> Any:
            nearest = jnp.argmin(jnp.sum((x[:, None] - middle[None]) ** 2, -1), -1)
            count = jax.ops.segment_sum(jnp.ones(points), nearest, centres)
            return jax.ops.segment_sum(x, nearest, centres) / jnp.maximum(count, 1.0)[:, None]

        return jax.lax.fori_loop(0, turns, turn, start)

    return Program(function, (tensor(points, width), tensor(centres, width)))


def ranking(items: int = 32, batch: int = 2) -> Program:
    """Sort scores with what belongs to them, and measure how good the order is."""

    def function(scores: Any, gains: Any, identifiers: Any) -> Any:
        _, sorted_gains, unused = jax.lax.sort((-scores, gains, identifiers), num_keys=1)
        ideal = -jnp.sort(-gains, axis=-1)
        discount = 1 / jnp.log2(jnp.arange(items) + 2.0)
        median = jnp.sort(scores, axis=-1)[:, items // 2]
        return jnp.sum(sorted_gains * discount, -1) / jnp.sum(ideal * discount, -1), median, unused[:, :1]

    types = tensor(batch, items), tensor(batch, items), tensor(batch, items, dtype="int32")
    return Program(function, types)


def prefix(length: int = 64, batch: int = 2, window: int = 4) -> Program:
    """Running sums and moving averages over a long row, with empty pieces joined in."""

    def function(x: Any) -> Any:
        sums = jax.lax.reduce_window(x, 0.0, jax.lax.add, (1, length), (1, 1), ((0, 0), (length - 1, 0)))
        padded = jnp.concatenate([x[:, :0], jnp.zeros((batch, window - 1)), x, sums[:, :0] * 2.0], axis=1)
        means = jax.lax.reduce_window(padded, 0.0, jax.lax.add, (1, window), (1, 1), "VALID") / window
        return sums, means, jnp.sum(x), jnp.max(sums, axis=1)

    return Program(function, (tensor(batch, length),))


def simulation(particles: int = 8, turns: int = 4, generator: str = "rbg") -> Program:
    """Random walks that a loop draws turn by turn, until all are far or the turns are over."""

    def function(places: Any, content: Any, far: Any) -> Any:
        def goes_on(state: Any) -> Any:
            turn, places, _ = state
            return (turn < turns) & jnp.any(jnp.sum(places**2, -1) < far)

        def move(state: Any) -> Any:
            turn, places, key = state
            key, own = jax.random.split(key)
            return turn + 1, places + jax.random.uniform(own, places.shape, minval=-1.0), key

        turn, places, _ = jax.lax.while_loop(goes_on, move, (0, places, key_of(content, generator)))
        return turn, places

    return Program(function, (tensor(particles, 3), key_type(generator), tensor()))


def update(rows: int = 16, width: int = 8, writes: int = 4) -> Program:
    """A table into which rows are written, added and read by index: one by one, as slices, and all at once."""

    def function(table: Any, rows_written: Any, values: Any, place: Any) -> Any:
        table = table.at[rows_written].add(values)
        table = table.at[rows_written, 0].max(values[:, 0])
        table = jax.lax.dynamic_update_slice(table, values[:1] * 2.0, (place[0], place[1]))
        table = table.at[3].set(0.5).at[:, 1].multiply(2.0)
        return table, jax.lax.dynamic_slice(table, (place[1], 0), (2, width)), table[rows_written, ::-1]

    types = tensor(rows, width), tensor(writes, dtype="int32"), tensor(writes, width), tensor(2, dtype="int32")
    return Program(function, types)


def matrices(batch: int = 1, size: int = 8, terms: int = 3) -> Program:
    """Products of many kinds: of batches of one, with vectors, over two dimensions, in half precision."""

    def function(left: Any, right: Any, vector: Any, half: Any) -> Any:
        power = left
        for _ in range(terms):
            power = jnp.einsum("bij,bjk->bik", power, right) / size
        both = jnp.einsum("bij,bkji->bk", left, jnp.stack([right, power], axis=1))
        row = jnp.einsum("bij,j->bi", power, vector)
        outer = jnp.einsum("bi,bj->bji", row, row)
        mixed = jax.lax.dot_general(half, half, (((1,), (1,)), ((), ())), preferred_element_type=jnp.float32)
        return both, outer.transpose(0, 2, 1) @ power.transpose(0, 2, 1), mixed, half @ half.T

    square = tensor(batch, size, size)
    return Program(function, (square, square, tensor(size), tensor(size, size, dtype="bfloat16")))
