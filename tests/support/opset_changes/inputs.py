"""Drawn inputs of the operators that do not take tensors of one shape, or not any number."""

from math import prod
from typing import Any

import numpy as np
from onnx import GraphProto, helper

from support.opset_changes.drawing import Draw, Inputs, Value, code_of, element_of

HIDDEN = 3


def draw_inputs(d: Draw) -> list[Value]:
    """Return the inputs of the draw's operator, whose shape and attributes are drawn already."""
    return _OF_OPERATOR.get(d.schema.name, Draw.default_inputs)(d)


def _integers(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def _kernel(d: Draw) -> list[int]:
    return list(d.attributes.get("kernel_shape") or d.counts(1, 3, d.rank - 2))


def _convolution(d: Draw) -> list[Value]:
    groups, each, filters = d.attributes.get("group", 1), d.count(1, 2), d.count(1, 2)
    d.shape = (d.shape[0], groups * each, *d.shape[2:])
    weight = d.tensor(1, (groups * filters, each, *_kernel(d)))
    return [d.tensor(0, d.shape), weight, d.optional(2, (groups * filters,))]


def _transposed_convolution(d: Draw) -> list[Value]:
    groups, each, filters = d.attributes.get("group", 1), d.count(1, 2), d.count(1, 2)
    d.shape = (d.shape[0], groups * each, *d.shape[2:])
    weight = d.tensor(1, (groups * each, filters, *_kernel(d)))
    return [d.tensor(0, d.shape), weight, d.optional(2, (groups * filters,))]


def _deformed_convolution(d: Draw) -> list[Value]:
    n, _, h, w = d.shape
    d.attributes = {"kernel_shape": [2, 2], "pads": [0, 0, 0, 0]} | ({"offset_group": 1} if d.chance() else {})
    weight = d.tensor(1, (2, d.shape[1], 2, 2))
    offset, mask = d.tensor(2, (n, 8, h - 1, w - 1)), d.optional(4, (n, 4, h - 1, w - 1))
    return [d.tensor(0, d.shape), weight, offset, d.optional(3, (2,)), mask]


def _a_number_a_channel(d: Draw) -> list[Value]:
    """Batch, instance and group normalisation."""
    channels = d.shape[1] if d.rank > 1 else 1
    count = len(d.schema.inputs)
    sizes = [channels] * count
    if d.schema.name == "GroupNormalization" and d.schema.since_version < 21:
        sizes = [d.attributes["num_groups"]] * count
    others = [d.tensor(place, (sizes[place],)) for place in range(1, count)]
    if d.schema.name == "BatchNormalization":
        others[3] = np.abs(others[3])
    return [d.tensor(0, d.shape), *others]


def _unpooled(d: Draw) -> list[Value]:
    d.attributes |= {"kernel_shape": [2] * (d.rank - 2), "strides": [2] * (d.rank - 2)}
    d.attributes.pop("pads", None)
    d.shape = (1, 1, *d.shape[2:])
    size = prod(d.shape)
    indices = d.numbers.permutation(size * 2 ** (d.rank - 2))[:size].reshape(d.shape)
    larger = _integers(1, 1, *(2 * s + 1 for s in d.shape[2:]))
    return [d.tensor(0, d.shape), indices.astype(np.int64), larger if d.chance(0.3) else None]


def _regions(d: Draw) -> list[Value]:
    """A region is two corners of an image, with the image's number in front for MaxRoiPool."""
    number = 3
    corners = np.sort(d.numbers.integers(0, 7, (number, 2, 2)), axis=1).reshape(number, 4)
    if d.schema.name == "MaxRoiPool":
        return [d.tensor(0, d.shape), np.insert(corners, 0, 0, axis=1).astype(d.type_of(1))]
    inside = corners + (d.numbers.random((number, 4)) if d.mood != "halves" else 0.5)
    return [d.tensor(0, d.shape), inside.astype(d.type_of(1)), d.indices((number,), d.shape[0], low=0)]


def _scaled(d: Draw) -> list[Value]:
    """Upsample and Resize."""
    scales = np.array([1, 1, *(d.one_of((0.5, 0.6, 1, 1.5, 2, 3)) for _ in d.shape[2:])][: d.rank], np.float32)
    if d.chance(0.2):
        scales = np.array([d.one_of((0.5, 1, 1.5, 2)) for _ in d.shape], np.float32)
    if d.schema.name == "Upsample":
        scales = np.maximum(scales, np.float32(1))
    if "axes" in d.attributes:
        scales = scales[d.attributes["axes"]] if d.attributes["axes"] else scales[:0]
    if d.schema.since_version < 11:
        return [d.tensor(0, d.shape), scales][: len(d.schema.inputs)]
    data = d.tensor(0, d.shape)
    regions = np.array([0.1] * len(scales) + [0.9] * len(scales), d.type_of(1))
    wants = d.attributes.get("coordinate_transformation_mode") == "tf_crop_and_resize"
    optional = d.schema.since_version >= 13
    roi = regions if wants or (d.chance(0.2)) else None if optional and d.chance() else regions[:0]
    if d.chance():
        return [data, roi, scales]
    return [data, roi, None if optional and d.chance() else scales[:0], _integers(*d.counts(1, 6, len(scales)))]


def _sampled(d: Draw) -> list[Value]:
    d.shape = (d.count(1, 2), d.count(1, 2), *d.counts(2, 4, 2 if d.schema.since_version < 20 else d.one_of((2, 3))))
    places = d.numbers.uniform(-1.3, 1.3, (d.shape[0], *d.counts(1, 4, d.rank - 2), d.rank - 2))
    if d.mood == "halves":
        places = np.round(places * 2) / 2
    return [d.tensor(0, d.shape), places.astype(d.type_of(1))]


def _product(d: Draw) -> list[Value]:
    m, k, n = d.counts(1, 4, 3)
    batch = d.counts(1, 3, d.count(0, 3))
    left = (k,) if d.chance(0.15) else (*batch, m, k)
    right = (k,) if d.chance(0.15) else (*batch[d.count(0, len(batch)) :], k, n)
    return [d.tensor(0, left), d.tensor(1, right)]


def _quantised_product(d: Draw) -> list[Value]:
    m, k, n = d.counts(1, 4, 3)
    shapes = ((m, k), (), (), (k, n), (), (), (), ())
    values = [d.tensor(place, shape) for place, shape in enumerate(shapes)]
    for place in (1, 4, 6):
        values[place] = np.abs(values[place]) + values[place].dtype.type(0.1)
    return values


def _general_product(d: Draw) -> list[Value]:
    m, k, n = d.counts(1, 4, 3)
    left = (k, m) if d.attributes.get("transA") else (m, k)
    right = (n, k) if d.attributes.get("transB") else (k, n)
    third = d.tensor(2, d.one_of(((), (n,), (m, n), (1, n), (m, 1), (1,))))
    return [d.tensor(0, left), d.tensor(1, right), third if d.chance(0.7) or d.schema.since_version < 11 else None]


def _recurrent(d: Draw) -> list[Value]:
    steps, batch, size = d.counts(1, 4, 3)
    ways = 2 if d.attributes.get("direction") == "bidirectional" else 1
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[d.schema.name]
    d.attributes["hidden_size"] = HIDDEN
    batch_first = d.attributes.get("layout", 0) == 1
    state = (batch, ways, HIDDEN) if batch_first else (ways, batch, HIDDEN)
    values = [
        d.tensor(0, (batch, steps, size) if batch_first else (steps, batch, size)),
        d.tensor(1, (ways, gates * HIDDEN, size)),
        d.tensor(2, (ways, gates * HIDDEN, HIDDEN)),
        d.optional(3, (ways, 2 * gates * HIDDEN)),
        d.indices((batch,), steps + 1, "int32", low=1) if d.chance(0.3) else None,
        d.optional(5, state),
    ]
    return values + ([d.optional(6, state), d.optional(7, (ways, 3 * HIDDEN))] if gates == 4 else [])


def _axis_of(d: Draw, default: int = 0) -> int:
    return int(d.attributes.get("axis", default))


def _with_rank(d: Draw, least: int = 1) -> None:
    """Let the draw have no fewer axes than this, and an axis among them."""
    if d.rank < least:
        d.shape = tuple(d.counts(1, 4, least))
        if "axis" in d.attributes:
            d.attributes["axis"] = d.axis()


def _gathered(d: Draw) -> list[Value]:
    _with_rank(d)
    size = d.shape[_axis_of(d)]
    return [d.tensor(0, d.shape), d.indices(d.counts(1, 3, d.count(0, 2)), size, d.type_of(1))]


def _gathered_elements(d: Draw) -> list[Value]:
    _with_rank(d)
    shape = [d.count(1, size) if size else 0 for size in d.shape]
    return [d.tensor(0, d.shape), d.indices(shape, d.shape[_axis_of(d)], d.type_of(1))]


def _gathered_nd(d: Draw) -> list[Value]:
    _with_rank(d, 2)
    batch = d.attributes.get("batch_dims", 0)
    inner = d.count(1, d.rank - batch)
    lead = (*d.shape[:batch], *d.counts(1, 3, d.count(0, 2)))
    columns = [d.indices(lead, size) for size in d.shape[batch : batch + inner]]
    return [d.tensor(0, d.shape), np.stack(columns, axis=-1)]


def _scattered(d: Draw) -> list[Value]:
    _with_rank(d)
    axis, shape = _axis_of(d), [d.count(1, size) if size else 0 for size in d.shape]
    indices = d.indices(shape, d.shape[axis], d.type_of(1))
    if d.chance() and shape[axis]:  # each place once, along the axis
        shape[axis] = 1
        indices = d.indices(shape, d.shape[axis], d.type_of(1))
    return [d.tensor(0, d.shape), indices, d.tensor(2, shape)]


def _scattered_nd(d: Draw) -> list[Value]:
    _with_rank(d)
    inner, rows = d.count(1, d.rank), d.count(1, 3)
    columns = [d.indices((rows,), size) for size in d.shape[:inner]]
    return [d.tensor(0, d.shape), np.stack(columns, axis=-1), d.tensor(2, (rows, *d.shape[inner:]))]


def _one_hot(d: Draw) -> list[Value]:
    depth = d.count(1, 4)
    indices = d.indices(d.shape, depth + 1, d.type_of(0)) if d.type_of(0)[0] == "i" else d.tensor(0, d.shape)
    if d.type_of(0)[0] == "f":
        indices = np.floor(np.nan_to_num(indices, posinf=1, neginf=1))
    depths = np.array(depth if d.chance(0.3) else [depth], d.type_of(1))
    if "axis" in d.attributes:
        d.attributes["axis"] = d.count(-d.rank - 1, d.rank)
    return [indices, depths, d.tensor(2, (2,))]


def _compressed(d: Draw) -> list[Value]:
    _with_rank(d)
    size = d.shape[d.attributes["axis"]] if "axis" in d.attributes else prod(d.shape)
    return [d.tensor(0, d.shape), d.tensor(1, (d.count(1, max(size, 1)),))]


def _top(d: Draw) -> list[Value]:
    _with_rank(d)
    data = d.tensor(0, d.shape)
    return [data] if d.schema.since_version < 10 else [data, _integers(d.count(0, d.shape[_axis_of(d, -1)]))]


def _accumulated(d: Draw) -> list[Value]:
    _with_rank(d)
    return [d.tensor(0, d.shape), np.array(d.axis(), d.type_of(1))]


def _reversed(d: Draw) -> list[Value]:
    d.shape = tuple(d.counts(1, 4, d.count(2, 4)))
    time, batch = d.attributes.get("time_axis", 0), d.attributes.get("batch_axis", 1)
    return [d.tensor(0, d.shape), d.indices((d.shape[batch],), d.shape[time] + 1, low=1)]


def _range(d: Draw) -> list[Value]:
    values = [d.count(-3, 3), d.count(-3, 9), d.one_of((1, 2, -1, 3))]
    return [np.array(value).astype(d.type_of(place)) for place, value in enumerate(values)]


def _repeated(d: Draw) -> list[Value]:
    return [d.tensor(0, d.shape), _integers(*d.counts(1, 3, d.rank))][: len(d.schema.inputs)]


def _expanded(d: Draw) -> list[Value]:
    target = [d.count(1, 3) if size == 1 else d.one_of((size, 1)) for size in d.shape]
    more = d.counts(1, 2, d.count(0, 1))
    return [d.tensor(0, d.shape), _integers(*more, *target[d.count(0, d.rank) * d.chance(0.2) :])]


def _reshaped(d: Draw) -> list[Value]:
    if d.schema.since_version < 5:
        return [d.tensor(0, d.shape)]
    options = [[-1], [prod(d.shape)], list(d.shape[::-1]), [1, *d.shape], [0, -1][: d.rank or 1], [0, *d.shape[1:]]]
    return [d.tensor(0, d.shape), _integers(*d.one_of(options))]


def _axes_input(d: Draw, out_of: int) -> np.ndarray:
    axes = d.rng.permutation(out_of)[: d.count(0, out_of)]
    return np.array([int(axis) - out_of * d.chance(0.4) for axis in axes], np.int64)


def _with_axes(d: Draw) -> list[Value]:
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
        return [data, _integers(*axes) if axes and d.chance(0.7) else None]
    return [data, _axes_input(d, d.rank) if d.chance(0.7) else None]


def _unsqueezed(d: Draw) -> list[Value]:
    if len(d.schema.inputs) == 1:
        return [d.tensor(0, d.shape)]
    rank = d.rank + d.count(1, 2)
    axes = np.array([int(axis) - rank * d.chance(0.4) for axis in d.rng.permutation(rank)[: rank - d.rank]], np.int64)
    return [d.tensor(0, d.shape), axes.reshape(()) if len(axes) == 1 and d.chance() else axes]


def _sliced(d: Draw) -> list[Value]:
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


def _padded(d: Draw) -> list[Value]:
    data = d.tensor(0, d.shape)
    if d.schema.since_version < 11:
        return [data]
    axes = _axes_input(d, d.rank) if len(d.schema.inputs) > 3 and d.chance() else None
    number = d.rank if axes is None else len(axes)
    pads = _integers(*d.counts(-1 if d.chance(0.3) else 0, 2, 2 * number))
    if d.attributes.get("mode", "constant") != "constant":
        return [data, pads, None, axes]
    return [data, pads, d.optional(2, ()), axes]


def _split(d: Draw) -> list[Value]:
    _with_rank(d)
    axis, parts = _axis_of(d), d.attributes.get("split") or [d.count(1, 2) for _ in d.outputs]
    if "split" not in d.attributes and d.chance():
        parts = [d.count(1, 2)] * len(d.outputs)  # equal ones, which need not be named
    shape = list(d.shape)
    shape[axis] = sum(parts)
    d.shape = tuple(shape)
    data = d.tensor(0, d.shape)
    if d.schema.since_version < 13:
        return [data]
    return [data, _integers(*parts) if d.chance(0.6) and "num_outputs" not in d.attributes else None]


def _split_to_sequence(d: Draw) -> list[Value]:
    _with_rank(d)
    size = d.shape[_axis_of(d)]
    split = np.array(d.one_of((1, 2, [size], [1] * size)), d.type_of(1))
    return [d.tensor(0, d.shape), split if d.chance(0.7) else None]


def _quantised(d: Draw) -> list[Value]:
    """QuantizeLinear and DequantizeLinear: a scale for all, for each place along an axis, or for each block."""
    rank, axis = d.rank, _axis_of(d, 1)
    shape: tuple[int, ...] = () if d.chance(0.4) or not -rank <= axis < rank else (d.shape[axis],)
    if d.attributes.get("block_size") and rank and -rank <= axis < rank:
        blocks = list(d.shape)
        blocks[axis] = -(-blocks[axis] // d.attributes["block_size"])
        shape = tuple(blocks)
    scale = np.abs(d.tensor(1, shape)) + d.tensor(1, shape).dtype.type(0.1)
    return [d.tensor(0, d.shape), scale.astype(d.tensor(1, shape).dtype), d.optional(2, shape)]


def _clipped(d: Draw) -> list[Value]:
    return [d.tensor(0, d.shape), *(d.optional(place, ()) for place in range(1, len(d.schema.inputs)))]


def _dropped(d: Draw) -> list[Value]:
    values = [d.tensor(0, d.shape)]
    if len(d.schema.inputs) > 1:
        values.append(np.array(0.25, d.type_of(1)) if d.chance() else None)
        values.append(np.array(d.chance()) if d.chance() else None)
    return values


def _shape_input(d: Draw) -> list[Value]:
    return [_integers(*d.counts(0, 3, d.count(0, 4)))]


def _suppressed(d: Draw) -> list[Value]:
    batches, boxes, classes = d.counts(1, 2, 1)[0], d.count(1, 6), d.count(1, 2)
    corners = d.numbers.random((batches, boxes, 4)).astype(np.float32)
    scores = d.numbers.random((batches, classes, boxes)).astype(np.float32)
    if d.mood == "halves":
        scores = np.round(scores * 2) / 2
    limits = [_integers(d.count(0, 4)), np.float32([0.5]), np.float32([0.3])]
    return [corners, scores, *(limit if d.chance(0.7) else None for limit in limits)]


def _classified(d: Draw) -> list[Value]:
    n, classes, rest = d.count(1, 3), d.count(1, 4), d.counts(1, 3, d.count(0, 4))
    labels = d.indices((n, *rest), classes, d.type_of(1), low=0)
    return [d.tensor(0, (n, classes, *rest)), labels, d.optional(2, (classes,))]


def _attended(d: Draw) -> list[Value]:
    batch, queries, keys, size = d.count(1, 2), d.count(1, 3), d.count(1, 4), 4
    flat, many = d.chance(0.4), d.one_of((2, 4))
    if flat:
        d.attributes |= {"q_num_heads": many, "kv_num_heads": 2}
        data = [d.tensor(0, (batch, queries, many * size)), *(d.tensor(p, (batch, keys, 2 * size)) for p in (1, 2))]
    else:
        d.attributes = {k: v for k, v in d.attributes.items() if not k.endswith("num_heads")}
        data = [d.tensor(0, (batch, many, queries, size)), *(d.tensor(p, (batch, 2, keys, size)) for p in (1, 2))]
    past = d.count(1, 2) if d.chance(0.3) else 0
    mask = d.tensor(3, (queries, keys + past)) if d.chance() else None
    earlier = [d.tensor(place, (batch, 2, past, size)) if past else None for place in (4, 5)]
    valid = d.indices((batch,), keys + 1, low=1) if d.chance(0.3) and not past else None
    return [*data, mask, *earlier, valid][: len(d.schema.inputs)]


def _transformed(d: Draw) -> list[Value]:
    length = np.array(d.count(1, 5), d.type_of(1)) if d.chance(0.3) else None
    axis = [np.array(d.count(1, d.rank - 2), np.int64) if d.chance() else None] if len(d.schema.inputs) > 2 else []
    return [d.tensor(0, d.shape), length, *axis]


def _einsum(d: Draw) -> list[Value]:
    equation, *shapes = d.one_of(
        (("ij,jk->ik", (2, 3), (3, 2)), ("ij->ji", (2, 3)), ("...i,i->...", (2, 2, 3), (3,)), ("ii->i", (3, 3)))
    )
    d.attributes["equation"] = equation
    return [d.tensor(0, shape) for shape in shapes]


def _optional_value(d: Draw) -> list[Value]:
    d.attributes.pop("type", None)
    return [d.tensor(0, d.shape)]


def _sampled_classes(d: Draw) -> list[Value]:
    return [d.tensor(0, (2, 3))]


def _probabilities(d: Draw) -> list[Value]:
    return [d.numbers.random(d.shape).astype(d.type_of(0))]


def _body(inputs: list[Any], outputs: list[Any], pairs: dict[str, str], name: str = "body") -> GraphProto:
    """A subgraph that hands values on, each output the input that `pairs` names."""
    nodes = [helper.make_node("Identity", [source], [target]) for target, source in pairs.items()]
    return helper.make_graph(nodes, name, inputs, outputs)


def _declared(name: str, dtype: str, shape: Any) -> Any:
    if dtype.startswith("seq "):
        return helper.make_tensor_sequence_value_info(name, code_of(element_of(dtype)), None)
    return helper.make_tensor_value_info(name, code_of(dtype), shape)


def _conditional(d: Draw) -> list[Value]:
    """Branches that make a number each; they read nothing of the graph around them."""
    for branch in ("then_branch", "else_branch"):
        names = [f"{branch}{place}" for place in range(len(d.outputs))]
        nodes = [
            helper.make_node(
                "Constant", [], [n], value=helper.make_tensor("v", 1, [2], d.rng.standard_normal(2).astype(np.float32))
            )
            for n in names
        ]
        d.attributes[branch] = helper.make_graph(nodes, branch, [], [_declared(n, "float32", [2]) for n in names])
    return [np.array(d.numbers.random() < 0.5) if d.chance() else np.array([True])]


def _repeated_body(d: Draw) -> list[Value]:
    """A loop that hands on the values that it carries, and keeps each of its iterations."""
    carried, scanned = d.one_of((0, 1, 2, 9)), d.count(0, 1)
    dtypes = [d.type_of(2)] * carried
    d.outputs = [f"o{place}" for place in range(carried + scanned)]
    if not d.outputs:
        d.outputs, scanned = ["o0"], 1
    inputs = [_declared("i", "int64", []), _declared("c", "bool", [])]
    inputs += [_declared(f"v{place}", dtype, None) for place, dtype in enumerate(dtypes)]
    outputs = [_declared("c_out", "bool", []), *(_declared(f"w{p}", t, None) for p, t in enumerate(dtypes))]
    outputs += [_declared("s", "int64", [])] * scanned
    pairs = {"c_out": "c", **{f"w{p}": f"v{p}" for p in range(carried)}} | ({"s": "i"} if scanned else {})
    d.attributes["body"] = _body(inputs, outputs, pairs)
    limit, condition = _integers(d.count(0, 3)).reshape(()), np.array(d.chance(0.8))
    return [limit, condition if d.chance() else None, *(d.tensor(2, d.shape) for _ in range(carried))]


def _scanned(d: Draw) -> list[Value]:
    """A scan of states, which are handed on, and of inputs, of which the outputs consist."""
    _with_rank(d, 3)
    d.attributes = {k: v for k, v in d.attributes.items() if not k.startswith("scan_")}
    dtype, batched = d.type_of(0 if d.schema.since_version > 8 else 1), d.schema.since_version == 8
    states, number = d.one_of((0, 1, 2, 7)), d.one_of((1, 2, 3))
    for kind in () if batched else ("input", "output"):
        if d.chance(0.3):
            d.attributes[f"scan_{kind}_axes"] = [d.one_of((0, 1, -1))] * number
        if d.chance(0.3):
            d.attributes[f"scan_{kind}_directions"] = [d.one_of((0, 1)) for _ in range(number)]
    read = [f"v{place}" for place in range(states)] + [f"x{place}" for place in range(number)]
    inputs, outputs = ([_declared(side + name, dtype, None) for name in read] for side in ("in_", "out_"))
    d.outputs = [f"o{place}" for place in range(len(read))]
    pairs = {f"out_{name}": f"in_{name}" for name in read}
    d.attributes |= {"body": _body(inputs, outputs, pairs), "num_scan_inputs": number}
    held = d.counts(1, 2, d.count(0, 3))
    before = [d.values((d.shape[0], *held) if batched else held, dtype) for _ in range(states)]
    return [*([None] if batched else []), *before, *(d.values(d.shape, dtype) for _ in range(number))]


_OF_OPERATOR: dict[str, Inputs] = {
    "Attention": _attended,
    "BatchNormalization": _a_number_a_channel,
    "Bernoulli": _probabilities,
    "Clip": _clipped,
    "Compress": _compressed,
    "ConstantOfShape": _shape_input,
    "Conv": _convolution,
    "ConvTranspose": _transposed_convolution,
    "CumSum": _accumulated,
    "DFT": _transformed,
    "DeformConv": _deformed_convolution,
    "DequantizeLinear": _quantised,
    "Dropout": _dropped,
    "Einsum": _einsum,
    "Expand": _expanded,
    "GRU": _recurrent,
    "Gather": _gathered,
    "GatherElements": _gathered_elements,
    "GatherND": _gathered_nd,
    "Gemm": _general_product,
    "GridSample": _sampled,
    "GroupNormalization": _a_number_a_channel,
    "If": _conditional,
    "InstanceNormalization": _a_number_a_channel,
    "LSTM": _recurrent,
    "Loop": _repeated_body,
    "MatMul": _product,
    "MaxRoiPool": _regions,
    "MaxUnpool": _unpooled,
    "Multinomial": _sampled_classes,
    "NegativeLogLikelihoodLoss": _classified,
    "NonMaxSuppression": _suppressed,
    "OneHot": _one_hot,
    "Optional": _optional_value,
    "Pad": _padded,
    "QLinearMatMul": _quantised_product,
    "QuantizeLinear": _quantised,
    "RNN": _recurrent,
    "Range": _range,
    "Reshape": _reshaped,
    "Resize": _scaled,
    "ReverseSequence": _reversed,
    "RoiAlign": _regions,
    "Scan": _scanned,
    "Scatter": _scattered,
    "ScatterElements": _scattered,
    "ScatterND": _scattered_nd,
    "Slice": _sliced,
    "SoftmaxCrossEntropyLoss": _classified,
    "Split": _split,
    "SplitToSequence": _split_to_sequence,
    "Squeeze": _with_axes,
    "Tile": _repeated,
    "TopK": _top,
    "Unsqueeze": _unsqueezed,
    "Upsample": _scaled,
}
_OF_OPERATOR |= dict.fromkeys(
    (f"Reduce{kind}" for kind in "L1 L2 LogSum LogSumExp Max Mean Min Prod Sum SumSquare".split()), _with_axes
)
