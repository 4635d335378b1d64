"""Drawn inputs of the operators that do not take tensors of one shape, or not any number."""

import numpy as np

from support.opset_changes.algebra import (
    attended,
    einsum,
    general_product,
    product,
    quantised_product,
    recurrent,
    transformed,
)
from support.opset_changes.bodies import conditional, repeated_body, scanned
from support.opset_changes.drawing import Draw, Inputs, Value, integers
from support.opset_changes.images import (
    a_number_a_channel,
    convolution,
    deformed_convolution,
    regions,
    sampled,
    scaled,
    transposed_convolution,
    unpooled,
)
from support.opset_changes.indexing import (
    accumulated,
    compressed,
    counted,
    expanded,
    gathered,
    gathered_elements,
    gathered_nd,
    one_hot,
    padded,
    repeated,
    reshaped,
    scattered,
    scattered_nd,
    sliced,
    split,
    split_to_sequence,
    top,
    turned,
    unsqueezed,
    with_axes,
)


def draw_inputs(d: Draw) -> list[Value]:
    """Return the inputs of the draw's operator, whose shape and attributes are drawn already."""
    return _OF_OPERATOR.get(d.schema.name, Draw.default_inputs)(d)


def _quantised(d: Draw) -> list[Value]:
    """QuantizeLinear and DequantizeLinear: a scale for all, for each place along an axis, or for each block."""
    rank, axis = d.rank, d.chosen_axis(1)
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
    return [integers(*d.counts(0, 3, d.count(0, 4)))]


def _suppressed(d: Draw) -> list[Value]:
    batches, boxes, classes = d.counts(1, 2, 1)[0], d.count(1, 6), d.count(1, 2)
    corners = d.numbers.random((batches, boxes, 4)).astype(np.float32)
    scores = d.numbers.random((batches, classes, boxes)).astype(np.float32)
    if d.mood == "halves":
        scores = np.round(scores * 2) / 2
    limits = [integers(d.count(0, 4)), np.float32([0.5]), np.float32([0.3])]
    return [corners, scores, *(limit if d.chance(0.7) else None for limit in limits)]


def _classified(d: Draw) -> list[Value]:
    n, classes, rest = d.count(1, 3), d.count(1, 4), d.counts(1, 3, d.count(0, 4))
    labels = d.indices((n, *rest), classes, d.type_of(1), low=0)
    return [d.tensor(0, (n, classes, *rest)), labels, d.optional(2, (classes,))]


def _optional_value(d: Draw) -> list[Value]:
    d.attributes.pop("type", None)
    return [d.tensor(0, d.shape)]


def _sampled_classes(d: Draw) -> list[Value]:
    return [d.tensor(0, (2, 3))]


def _probabilities(d: Draw) -> list[Value]:
    return [d.numbers.random(d.shape).astype(d.type_of(0))]


_OF_OPERATOR: dict[str, Inputs] = {
    "Attention": attended,
    "BatchNormalization": a_number_a_channel,
    "Bernoulli": _probabilities,
    "Clip": _clipped,
    "Compress": compressed,
    "ConstantOfShape": _shape_input,
    "Conv": convolution,
    "ConvTranspose": transposed_convolution,
    "CumSum": accumulated,
    "DFT": transformed,
    "DeformConv": deformed_convolution,
    "DequantizeLinear": _quantised,
    "Dropout": _dropped,
    "Einsum": einsum,
    "Expand": expanded,
    "GRU": recurrent,
    "Gather": gathered,
    "GatherElements": gathered_elements,
    "GatherND": gathered_nd,
    "Gemm": general_product,
    "GridSample": sampled,
    "GroupNormalization": a_number_a_channel,
    "If": conditional,
    "InstanceNormalization": a_number_a_channel,
    "LSTM": recurrent,
    "Loop": repeated_body,
    "MatMul": product,
    "MaxRoiPool": regions,
    "MaxUnpool": unpooled,
    "Multinomial": _sampled_classes,
    "NegativeLogLikelihoodLoss": _classified,
    "NonMaxSuppression": _suppressed,
    "OneHot": one_hot,
    "Optional": _optional_value,
    "Pad": padded,
    "QLinearMatMul": quantised_product,
    "QuantizeLinear": _quantised,
    "RNN": recurrent,
    "Range": counted,
    "Reshape": reshaped,
    "Resize": scaled,
    "ReverseSequence": turned,
    "RoiAlign": regions,
    "Scan": scanned,
    "Scatter": scattered,
    "ScatterElements": scattered,
    "ScatterND": scattered_nd,
    "Slice": sliced,
    "SoftmaxCrossEntropyLoss": _classified,
    "Split": split,
    "SplitToSequence": split_to_sequence,
    "Squeeze": with_axes,
    "Tile": repeated,
    "TopK": top,
    "Unsqueeze": unsqueezed,
    "Upsample": scaled,
}
_OF_OPERATOR |= dict.fromkeys(
    (f"Reduce{kind}" for kind in "L1 L2 LogSum LogSumExp Max Mean Min Prod Sum SumSquare".split()), with_axes
)
