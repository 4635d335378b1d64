"""The attributes of convolutions and pools as ONNX lets them be left out or implied, written out.

Rules compare strides and pads, so that there must be one way to write them.
"""

from __future__ import annotations

from collections.abc import Mapping

from rlflow.errors import TypeInferenceError
from rlflow.ir.node import AttributeValue
from rlflow.ir.tensor_type import TensorType
from rlflow.ops.window import Window

_CONVOLUTIONS = frozenset({"Conv", "com.microsoft.FusedConv"})
WINDOWED = _CONVOLUTIONS | {"MaxPool", "AveragePool"}


def written_out(
    op: str, attributes: Mapping[str, AttributeValue], data: TensorType, filters: TensorType | None
) -> dict[str, AttributeValue]:
    """Strides, dilations and pads in full; auto_pad only where the pads depend on an unknown size; Conv's kernel_shape,
    which its filters tell as well, left out.

    `TypeInferenceError` if the attributes contradict each other or the filters.
    """
    written = dict(attributes)
    kernel = written["kernel_shape"] if op not in _CONVOLUTIONS else filters and filters.shape and filters.shape[2:]
    if not isinstance(kernel, tuple) or data.shape is None or len(data.shape) != len(kernel) + 2:
        raise TypeInferenceError(f"{op}: a window over {data}")
    if op in _CONVOLUTIONS and written.pop("kernel_shape", kernel) != kernel:
        raise TypeInferenceError(f"{op}: kernel_shape {attributes['kernel_shape']!r} and filters {filters}")
    ones = (1,) * len(kernel)
    written.setdefault("strides", ones)
    if op != "AveragePool":
        written.setdefault("dilations", ones)
    elif written.get("dilations") == ones:
        del written["dilations"]  # unknown before opset 19
    image = data.shape[2:]
    window = Window.of(written, kernel, op)
    sizes = tuple(d for d in image if isinstance(d, int))
    if window.pads is None and len(sizes) < len(image):
        written.pop("pads", None)
        return written
    return written | {"auto_pad": "NOTSET", "pads": window.padding(sizes)}
