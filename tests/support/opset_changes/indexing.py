"""Inputs of operators that look up, write to, order or count along an axis, and of those that change a shape."""

from math import prod

import numpy as np

from support.opset_changes.drawing import Draw, Value, integers


def gathered(d: Draw) -> list[Value]:
    d.raise_rank()
    size = d.shape[d.chosen_axis()]
    return [d.tensor(0, d.shape), d.indices(d.counts(1, 3, d.count(0, 2)), size, d.type_of(1))]


def gathered_elements(d: Draw) -> list[Value]:
    d.raise_rank()
    shape = [d.count(1, size) if size else 0 for size in d.shape]
    return [d.tensor(0, d.shape), d.indices(shape, d.shape[d.chosen_axis()], d.type_of(1))]


def gathered_nd(d: Draw) -> list[Value]:
    d.raise_rank(2)
    batch = d.attributes.get("batch_dims", 0)
    inner = d.count(1, d.rank - batch)
    lead = (*d.shape[:batch], *d.counts(1, 3, d.count(0, 2)))
    columns = [d.indices(lead, size) for size in d.shape[batch : batch + inner]]
    return [d.tensor(0, d.shape), np.stack(columns, axis=-1)]


def scattered(d: Draw) -> list[Value]:
    d.raise_rank()
    axis, shape = d.chosen_axis(), [d.count(1, size) if size else 0 for size in d.shape]
    indices = d.indices(shape, d.shape[axis], d.type_of(1))
    if d.chance() and shape[axis]:  # each place once, along the axis
        shape[axis] = 1
        indices = d.indices(shape, d.shape[axis], d.type_of(1))
    return [d.tensor(0, d.shape), indices, d.tensor(2, shape)]


def scattered_nd(d: Draw) -> list[Value]:
    d.raise_rank()
    inner, rows = d.count(1, d.rank), d.count(1, 3)
    columns = [d.indices((rows,), size) for size in d.shape[:inner]]
    return [d.tensor(0, d.shape), np.stack(columns, axis=-1), d.tensor(2, (rows, *d.shape[inner:]))]


def one_hot(d: Draw) -> list[Value]:
    depth = d.count(1, 4)
    indices = d.indices(d.shape, depth + 1, d.type_of(0)) if d.type_of(0)[0] == "i" else d.tensor(0, d.shape)
    if d.type_of(0)[0] == "f":
        indices = np.floor(np.nan_to_num(indices, posinf=1, neginf=1))
    depths = np.array(depth if d.chance(0.3) else [depth], d.type_of(1))
    if "axis" in d.attributes:
        d.attributes["axis"] = d.count(-d.rank - 1, d.rank)
    return [indices, depths, d.tensor(2, (2,))]


def compressed(d: Draw) -> list[Value]:
    d.raise_rank()
    size = d.shape[d.attributes["axis"]] if "axis" in d.attributes else prod(d.shape)
    return [d.tensor(0, d.shape), d.tensor(1, (d.count(1, max(size, 1)),))]


def top(d: Draw) -> list[Value]:
    d.raise_rank()
    data = d.tensor(0, d.shape)
    return [data] if d.schema.since_version < 10 else [data, integers(d.count(0, d.shape[d.chosen_axis(-1)]))]


def accumulated(d: Draw) -> list[Value]:
    d.raise_rank()
    return [d.tensor(0, d.shape), np.array(d.axis(), d.type_of(1))]


def turned(d: Draw) -> list[Value]:
    d.shape = tuple(d.counts(1, 4, d.count(2, 4)))
    time, batch = d.attributes.get("time_axis", 0), d.attributes.get("batch_axis", 1)
    return [d.tensor(0, d.shape), d.indices((d.shape[batch],), d.shape[time] + 1, low=1)]


def counted(d: Draw) -> list[Value]:
    values = [d.count(-3, 3), d.count(-3, 9), d.one_of((1, 2, -1, 3))]
    return [np.array(value).astype(d.type_of(place)) for place, value in enumerate(values)]


def repeated(d: Draw) -> list[Value]:
    return [d.tensor(0, d.shape), integers(*d.counts(1, 3, d.rank))][: len(d.schema.inputs)]


def expanded(d: Draw) -> list[Value]:
    target = [d.count(1, 3) if size == 1 else d.one_of((size, 1)) for size in d.shape]
    more = d.counts(1, 2, d.count(0, 1))
    return [d.tensor(0, d.shape), integers(*more, *target[d.count(0, d.rank) * d.chance(0.2) :])]


def reshaped(d: Draw) -> list[Value]:
    if d.schema.since_version < 5:
        return [d.tensor(0, d.shape)]
    options = [[-1], [prod(d.shape)], list(d.shape[::-1]), [1, *d.shape], [0, -1][: d.rank or 1], [0, *d.shape[1:]]]
    return [d.tensor(0, d.shape), integers(*d.one_of(options))]


def _axes_input(d: Draw, out_of: int) -> np.ndarray:
    axes = d.rng.permutation(out_of)[: d.count(0, out_of)]
    return np.array([int(axis) - out_of * d.chance(0.4) for axis in axes], np.int64)


def with_axes(d: Draw) -> list[Value]:
    """Reductions and Squeeze, whose axes became an input."""
    if d.schema.name == "Squeeze" and d.rank:
        axes = d.attributes.get("axes", [])
        ones = [axis % d.rank for axis in axes]
        ones += [0] if not ones and d.chance() else []
        d.shape = tuple(1 if place in ones else size for place, size in enumerate(d.shape))
    data = d.tensor(0, d.shape)
    if len(d.schema.inputs) == 1:
        return [data]
    if d.schema.name == "Squeeze":
        axes = [place - d.rank * d.chance(0.4) for place, size in enumerate(d.shape) if size == 1]
        return [data, integers(*axes) if axes and d.chance(0.7) else None]
    return [data, _axes_input(d, d.rank) if d.chance(0.7) else None]


def unsqueezed(d: Draw) -> list[Value]:
    if len(d.schema.inputs) == 1:
        return [d.tensor(0, d.shape)]
    rank = d.rank + d.count(1, 2)
    axes = np.array([int(axis) - rank * d.chance(0.4) for axis in d.rng.permutation(rank)[: rank - d.rank]], np.int64)
    return [d.tensor(0, d.shape), axes.reshape(()) if len(axes) == 1 and d.chance() else axes]


def sliced(d: Draw) -> list[Value]:
    data = d.tensor(0, d.shape)
    if d.schema.since_version < 10:
        axes = d.attributes.get("axes", list(range(d.rank)))
        number = len(axes)
        d.attributes |= {"starts": d.counts(-3, 2, number), "ends": d.counts(-2, 4, number)}
        return [data]
    dtype, axes = d.type_of(1), _axes_input(d, d.rank)
    number = len(axes) if d.chance(0.7) else d.rank
    starts, ends = (np.array(d.counts(low, low + 6, number), dtype) for low in (-3, -2))
    steps = np.array([d.one_of((1, 1, 2, -1, -2)) for _ in range(number)], dtype)
    return [data, starts, ends, axes.astype(dtype) if number == len(axes) else None, steps if d.chance() else None]


def padded(d: Draw) -> list[Value]:
    data = d.tensor(0, d.shape)
    if d.schema.since_version < 11:
        return [data]
    axes = _axes_input(d, d.rank) if len(d.schema.inputs) > 3 and d.chance() else None
    number = d.rank if axes is None else len(axes)
    pads = integers(*d.counts(-1 if d.chance(0.3) else 0, 2, 2 * number))
    if d.attributes.get("mode", "constant") != "constant":
        return [data, pads, None, axes]
    return [data, pads, d.optional(2, ()), axes]


def split(d: Draw) -> list[Value]:
    d.raise_rank()
    axis, parts = d.chosen_axis(), d.attributes.get("split") or [d.count(1, 2) for _ in d.outputs]
    if "split" not in d.attributes and d.chance():
        parts = [d.count(1, 2)] * len(d.outputs)  # equal ones, which need not be named
    shape = list(d.shape)
    shape[axis] = sum(parts)
    d.shape = tuple(shape)
    data = d.tensor(0, d.shape)
    if d.schema.since_version < 13:
        return [data]
    return [data, integers(*parts) if d.chance(0.6) and "num_outputs" not in d.attributes else None]


def split_to_sequence(d: Draw) -> list[Value]:
    d.raise_rank()
    size = d.shape[d.chosen_axis()]
    split = np.array(d.one_of((1, 2, [size], [1] * size)), d.type_of(1))
    return [d.tensor(0, d.shape), split if d.chance(0.7) else None]
