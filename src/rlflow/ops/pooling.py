"""Pools: MaxPool (ai.onnx 8, without indices), AveragePool (7, without dilations), GlobalAveragePool (1)."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from rlflow.errors import TypeInferenceError
from rlflow.ir.node import Attributes, AttributeValue
from rlflow.ir.tensor_type import Dimension, TensorType
from rlflow.ops.domain import Array, Domain
from rlflow.ops.onnx_form import OnnxForm, OnnxNode
from rlflow.ops.readings import averages, picks
from rlflow.ops.schema import Operator, Types, ints, shape_of
from rlflow.ops.traits import Fusion, Traits
from rlflow.ops.window import Window, spelled_out


def _image(data: TensorType, operator: str) -> tuple[Dimension, ...]:
    """The spatial dimensions of data (N, C, *image)."""
    shape = shape_of(data, operator)
    if not data.is_float or len(shape) < 3:
        raise TypeInferenceError(f"{operator}: {data} is no batch of images of floats")
    return shape[2:]


def _window(attributes: Attributes, operator: str) -> Window:
    """A window that sees some of the image wherever it lies; between taps far apart there might be all of it."""
    window = Window.of(attributes, ints(attributes["kernel_shape"]), operator)
    if window.pads and any(pad >= size for pad, size in zip(window.pads, window.kernel * 2, strict=True)):
        raise TypeInferenceError(f"{operator}: pads {window.pads} around windows of {window.kernel}")
    if window.pads and any(window.pads) and max(window.dilations) > 1:
        raise TypeInferenceError(f"{operator}: pads {window.pads} and dilations {window.dilations}")
    if window.pads is None and any(s > k for s, k in zip(window.strides, window.kernel, strict=True)):
        raise TypeInferenceError(f"{operator}: {window.auto_pad} would make pads negative, which ONNX Runtime refuses")
    return window


def _infer_max(attributes: Attributes, inputs: Types) -> tuple[TensorType, ...]:
    image = _image(inputs[0], "MaxPool")
    places = _window(attributes, "MaxPool").places(image, "MaxPool")
    return (TensorType(inputs[0].dtype, (*shape_of(inputs[0], "MaxPool")[:2], *places)),)


def _max(domain: Domain, attributes: Attributes, x: Sequence[Array]) -> tuple[Array, ...]:
    window = _window(attributes, "MaxPool")
    seen, present = _seen(domain, window, x[0])
    return (_over_taps(domain, domain.maximum(seen, present, _taps(window, seen)), window),)


def _infer_average(attributes: Attributes, inputs: Types) -> tuple[TensorType, ...]:
    """The count of a window that reaches beyond the padding differs between versions of ONNX Runtime: refused."""
    image = _image(inputs[0], "AveragePool")
    if "dilations" in attributes or (attributes["count_include_pad"] and attributes["ceil_mode"]):
        raise TypeInferenceError(f"AveragePool: {dict(attributes)} is not understood")
    places = _window(attributes, "AveragePool").places(image, "AveragePool")
    return (TensorType(inputs[0].dtype, (*shape_of(inputs[0], "AveragePool")[:2], *places)),)


def _average(domain: Domain, attributes: Attributes, x: Sequence[Array]) -> tuple[Array, ...]:
    """The elements seen, each divided by their number, so that no sum of half-precision numbers overflows."""
    window = _window(attributes, "AveragePool")
    seen, present = _seen(domain, window, x[0])
    rank = len(window.kernel)
    counts = present.sum(axis=tuple(range(rank, 2 * rank)), keepdims=True)
    if attributes["count_include_pad"]:
        counts = np.full_like(counts, prod(window.kernel))
    distinct, which = np.unique(counts, return_inverse=True)
    reciprocals = [domain.reciprocal(domain.constant(float(count))) for count in distinct]
    shares = domain.structural(lambda *c: np.stack(c)[which.reshape(counts.shape)], *reciprocals)
    total = domain.sum(domain.multiply(seen, shares), _taps(window, seen))
    return (_over_taps(domain, total, window),)


def _seen(domain: Domain, window: Window, data: Array) -> tuple[Array, np.ndarray]:
    """(N, C, *places, *kernel) with zeros outside of the image, and (*places, *kernel): what is inside."""
    present = window.patches(np.ones(data.shape[2:], dtype=bool), False)
    return domain.structural(window.patches, data, domain.constant(0.0)), present


def _taps(window: Window, seen: Array) -> tuple[int, ...]:
    rank = len(seen.shape)
    return tuple(range(rank - len(window.kernel), rank))


def _over_taps(domain: Domain, reduced: Array, window: Window) -> Array:
    axes = _taps(window, reduced)
    return domain.structural(lambda v: v.squeeze(axis=axes), reduced)


def _pool_flops(attributes: Attributes, inputs: Types, outputs: Types) -> int:
    return outputs[0].elements * prod(ints(attributes["kernel_shape"]))


def _infer_global_average(attributes: Attributes, inputs: Types) -> tuple[TensorType, ...]:
    image = _image(inputs[0], "GlobalAveragePool")
    return (TensorType(inputs[0].dtype, (*shape_of(inputs[0], "GlobalAveragePool")[:2], *(1,) * len(image))),)


def _complete_max(attributes: dict[str, AttributeValue], node: OnnxNode) -> Attributes:
    """The window written out."""
    kernel = ints(attributes["kernel_shape"])
    dilated = {"dilations": (1,) * len(kernel), **attributes}
    return spelled_out(dilated, node.type_of(0), kernel, "MaxPool")


def _complete_average(attributes: dict[str, AttributeValue], node: OnnxNode) -> Attributes:
    """The window written out, without dilations that are ones, which are unknown before opset 19."""
    kernel = ints(attributes["kernel_shape"])
    if attributes.get("dilations") == (1,) * len(kernel):
        del attributes["dilations"]
    return spelled_out(attributes, node.type_of(0), kernel, "AveragePool")


OPERATORS = (
    Operator(
        "MaxPool",
        _infer_max,
        _max,
        since=8,
        arity=(1, 1),
        required=("kernel_shape", "strides", "pads", "dilations"),
        flops=_pool_flops,
        defaults={"auto_pad": "NOTSET", "ceil_mode": 0},
        traits=Traits(windowed=True, fusion=Fusion.PADDED, uses=(picks(0),)),
        onnx=OnnxForm(
            ignored=frozenset({"storage_order"}),
            attributes_since={"ceil_mode": 10, "dilations": 10},
            complete=_complete_max,
        ),
    ),
    Operator(
        "AveragePool",
        _infer_average,
        _average,
        since=7,
        arity=(1, 1),
        required=("kernel_shape", "strides", "pads"),
        flops=_pool_flops,
        defaults={"auto_pad": "NOTSET", "ceil_mode": 0, "count_include_pad": 0},
        traits=Traits(windowed=True, fusion=Fusion.PADDED, accumulates=True, uses=(averages,)),
        onnx=OnnxForm(attributes_since={"ceil_mode": 10}, complete=_complete_average),
    ),
    Operator(
        "GlobalAveragePool",
        _infer_global_average,
        lambda domain, attributes, x: (domain.mean(x[0], tuple(range(2, len(x[0].shape)))),),
        since=1,
        arity=(1, 1),
        flops=lambda attributes, inputs, outputs: inputs[0].elements,
        traits=Traits(accumulates=True, uses=(averages,)),
    ),
)
