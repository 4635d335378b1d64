"""Convolution over any number of spatial axes: Conv (ai.onnx 1, 11, 22)."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from rlflow.errors import TypeInferenceError
from rlflow.ir.node import Attributes, AttributeValue
from rlflow.ir.tensor_type import TensorType
from rlflow.ops.domain import Array, Domain
from rlflow.ops.onnx_form import OnnxForm, OnnxNode
from rlflow.ops.schema import Operator, Types, same_dimension, same_dtype, shape_of
from rlflow.ops.traits import Fusion, Traits
from rlflow.ops.window import Window, spelled_out


def _group(attributes: Attributes) -> int:
    group = attributes["group"]
    if not isinstance(group, int) or group < 1:
        raise TypeInferenceError(f"Conv: {group!r} groups")
    return group


def _infer_conv(attributes: Attributes, inputs: Types) -> tuple[TensorType, ...]:
    """Data (N, C, *image), filters (M, C / group, *kernel) and bias (M) -> (N, M, *places)."""
    data, filters = (shape_of(t, "Conv") for t in inputs[:2])
    dtype = same_dtype(inputs, "Conv")
    group = _group(attributes)
    if not inputs[0].is_float or len(data) < 3 or len(data) != len(filters):
        raise TypeInferenceError(f"Conv: {inputs[0]} under filters {inputs[1]}")
    count, channels = filters[:2]
    if not isinstance(count, int) or not isinstance(channels, int) or min(count, channels) < 1 or count % group:
        raise TypeInferenceError(f"Conv: filters {filters} in {group} groups")
    same_dimension(data[1], channels * group, "Conv")
    if len(inputs) == 3 and shape_of(inputs[2], "Conv") != (count,):
        raise TypeInferenceError(f"Conv: a bias {inputs[2]} for {count} filters")
    window = Window.of(attributes, filters[2:], "Conv")
    return (TensorType(dtype, (data[0], count, *window.places(data[2:], "Conv"))),)


def _conv(domain: Domain, attributes: Attributes, x: Sequence[Array]) -> tuple[Array, ...]:
    """A product of the filters with what each window sees, in each group."""
    data, filters = x[:2]
    group = _group(attributes)
    count, channels, *kernel = filters.shape
    batch, _, *image = data.shape
    window = Window.of(attributes, kernel, "Conv")
    places = window.places(image, "Conv")
    taps = channels * prod(kernel)

    def columns(v: np.ndarray, outside: np.ndarray) -> np.ndarray:
        seen = window.patches(v, outside).reshape(batch, group, channels, prod(places), prod(kernel))  # type: ignore[arg-type]
        return seen.swapaxes(-1, -2).reshape(batch, group, taps, prod(places))  # type: ignore[arg-type]

    rows = domain.structural(lambda v: v.reshape(group, count // group, taps), filters)
    product = domain.matmul(rows, domain.structural(columns, data, domain.constant(0.0)))
    result = domain.structural(lambda v: v.reshape(batch, count, *places), product)
    if len(x) < 3:
        return (result,)
    return (domain.add(result, domain.structural(lambda v: v.reshape(count, *(1,) * len(kernel)), x[2])),)


def _conv_flops(attributes: Attributes, inputs: Types, outputs: Types) -> int:
    taps = prod(d for d in (inputs[1].shape or ())[1:] if isinstance(d, int))
    return outputs[0].elements * (2 * taps + (len(inputs) == 3))


def _complete(attributes: dict[str, AttributeValue], node: OnnxNode) -> Attributes:
    """The window written out, but for kernel_shape, which the filters tell as well."""
    filters = node.type_of(1)
    if filters is None or filters.shape is None:
        raise TypeInferenceError("Conv: filters of unknown rank")
    kernel = filters.shape[2:]
    if attributes.pop("kernel_shape", kernel) != kernel:
        raise TypeInferenceError(f"Conv: a kernel_shape that is not that of the filters {filters}")
    dilated = {"dilations": (1,) * len(kernel), **attributes}
    return spelled_out(dilated, node.type_of(0), kernel, "Conv")


OPERATORS = (
    Operator(
        "Conv",
        _infer_conv,
        _conv,
        since=1,
        arity=(2, 3),
        flops=_conv_flops,
        defaults={"auto_pad": "NOTSET", "group": 1},
        required=("strides", "pads", "dilations"),
        optional=("kernel_shape",),
        traits=Traits(
            windowed=True,
            fusion=Fusion.PRODUCT | Fusion.PADDED | Fusion.NORMALISED,
            accumulates=True,
        ),
        onnx=OnnxForm(complete=_complete),
    ),
)
