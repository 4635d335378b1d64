"""Sliding windows, which convolutions and pools share: where they lie in an image and what they see of it.

window = Window.of(attributes, kernel=(3, 3), operator="MaxPool")     # strides, dilations and pads are checked
window.places((28, "w"), "MaxPool")                                   # windows on each axis; sizes may be symbols
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from rlflow.errors import TypeInferenceError
from rlflow.ir.dimension import over, plus
from rlflow.ir.node import Attributes, AttributeValue
from rlflow.ir.tensor_type import Dimension, TensorType
from rlflow.ops.schema import ints

_SAME = ("SAME_UPPER", "SAME_LOWER")


@dataclass(frozen=True)
class Window:
    """A window over S spatial axes: `kernel`, `strides` and `dilations` (S,); `pads` (2 S,), all begins before all
    ends, or None where `auto_pad` leaves them to the size of the image.
    """

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[int, ...] | None
    auto_pad: str
    ceil_mode: bool

    @classmethod
    def of(cls, attributes: Attributes, kernel: Sequence[Dimension | AttributeValue], operator: str) -> Window:
        """`TypeInferenceError` if the attributes do not fit each other, or mean what ONNX Runtime does not compute."""
        rank = len(kernel)
        auto_pad = str(attributes["auto_pad"])
        sizes = _known(kernel, operator)
        strides = ints(attributes["strides"])
        dilations = ints(attributes.get("dilations", (1,) * rank))
        pads = ints(attributes.get("pads", (0,) * 2 * rank))
        if not rank == len(strides) == len(dilations) or len(pads) != 2 * rank or rank == 0:
            raise TypeInferenceError(f"{operator}: {strides}, {dilations} and {pads} for {rank} spatial axes")
        if min(*sizes, *strides, *dilations) < 1 or min(pads) < 0:
            raise TypeInferenceError(f"{operator}: kernel {sizes}, strides {strides}, {dilations}, pads {pads}")
        if auto_pad not in ("NOTSET", "VALID", *_SAME) or (auto_pad != "NOTSET" and any(pads)):
            raise TypeInferenceError(f"{operator}: pads {pads} beside auto_pad {auto_pad!r}")
        if auto_pad in _SAME and max(dilations) > 1:
            raise TypeInferenceError(f"{operator}: dilations {dilations} beside auto_pad {auto_pad}")
        ceil_mode = bool(attributes.get("ceil_mode", 0))
        return cls(sizes, strides, dilations, None if auto_pad in _SAME else pads, auto_pad, ceil_mode)

    @property
    def extents(self) -> tuple[int, ...]:
        """The length of the window on each axis, gaps between its taps included."""
        return tuple(d * (k - 1) + 1 for k, d in zip(self.kernel, self.dilations, strict=True))

    def places(self, image: Sequence[Dimension], operator: str) -> tuple[Dimension, ...]:
        """Count the windows on each axis of an image (S,), whose sizes may be symbols.

        `TypeInferenceError` if the image has no room for one.
        """
        if len(image) != len(self.kernel):
            raise TypeInferenceError(f"{operator}: a window {self.kernel} over an image {tuple(image)}")
        return tuple(self._places(axis, size, operator) for axis, size in enumerate(image))

    def _places(self, axis: int, size: Dimension, operator: str) -> Dimension:
        stride, extent = self.strides[axis], self.extents[axis]
        begin, end = (0, extent - 1) if self.pads is None else self.pads[axis :: len(self.kernel)]
        if size is None or (isinstance(size, str) and (self.pads is None or self.ceil_mode)):
            return size if stride == 1 and begin + end == extent - 1 else None
        if isinstance(size, str):
            return plus(over(plus(size, begin + end - extent), stride), 1)
        if size == 0 or size + begin + end < extent:
            raise TypeInferenceError(f"{operator}: a window of {extent} in {begin} + {size} + {end} elements")
        if self.pads is None:
            return -(-size // stride)
        free = size + begin + end - extent
        count = (-(-free // stride) if self.ceil_mode else free // stride) + 1
        if self.ceil_mode and (count - 1) * stride >= size + begin:
            # onnx.shape_inference counts such a window, ONNX Runtime does not
            raise TypeInferenceError(f"{operator}: a window that starts behind the {size} elements of the image")
        return count

    def padding(self, image: tuple[int, ...]) -> tuple[int, ...]:
        """Pads (2 S,) around an image of this size."""
        if self.pads is not None:
            return self.pads
        totals = [
            max(0, (-(-size // stride) - 1) * stride + extent - size)
            for size, stride, extent in zip(image, self.strides, self.extents, strict=True)
        ]
        less, more = [t // 2 for t in totals], [t - t // 2 for t in totals]
        return tuple(less + more if self.auto_pad == "SAME_UPPER" else more + less)

    def patches(self, v: np.ndarray, outside: np.ndarray | bool) -> np.ndarray:
        """Return what each window sees, (..., *image) -> (..., *places, *kernel): `outside` where that is no image."""
        widths, where = _taps(self, v.shape[v.ndim - len(self.kernel) :])
        return _surrounded(v, widths, outside)[where]


@lru_cache(maxsize=1024)
def _taps(window: Window, image: tuple[int, ...]) -> tuple[Sequence[tuple[int, int]], tuple[Any, ...]]:
    """Return how much is to be put around an image of this size, and where on each axis the windows look then."""
    rank = len(window.kernel)
    begins = window.padding(image)[:rank]
    widths: list[tuple[int, int]] = []
    where: list[Any] = [...]
    for axis, count in enumerate(_known(window.places(image, "window"), "window")):
        starts = np.arange(count)[:, None] * window.strides[axis]
        seen = starts + np.arange(window.kernel[axis]) * window.dilations[axis]
        widths.append((begins[axis], max(0, int(seen[-1, -1]) + 1 - begins[axis] - image[axis])))
        along = [1] * 2 * rank
        along[axis], along[rank + axis] = seen.shape
        where.append(seen.reshape(along))
    return widths, tuple(where)


def _surrounded(v: np.ndarray, widths: Sequence[tuple[int, int]], outside: np.ndarray | bool) -> np.ndarray:
    """The images (..., *image) with so many elements before and behind each axis: np.pad in a tenth of its time."""
    image = v.shape[v.ndim - len(widths) :]
    whole = np.empty(
        (*v.shape[: v.ndim - len(widths)], *(a + d + b for d, (a, b) in zip(image, widths, strict=True))), v.dtype
    )
    whole[...] = outside
    inside: list[Any] = [..., *(slice(a, a + d) for d, (a, _) in zip(image, widths, strict=True))]
    whole[tuple(inside)] = v
    return whole


def spelled_out(
    attributes: Attributes,
    data: TensorType | None,
    kernel: Sequence[Dimension | AttributeValue],
    operator: str,
) -> dict[str, AttributeValue]:
    """The attributes with strides and pads, which ONNX lets a model leave out or imply: rules compare them, so that
    there must be one way to write them. auto_pad remains only where the pads depend on an unknown size.

    `TypeInferenceError` if the attributes contradict each other or the data.
    """
    if data is None or data.shape is None or len(data.shape) != len(kernel) + 2:
        raise TypeInferenceError(f"{operator}: a window over {data}")
    written = {"strides": (1,) * len(kernel), **attributes}
    image = data.shape[2:]
    window = Window.of(written, kernel, operator)
    sizes = tuple(d for d in image if isinstance(d, int))
    if window.pads is None and len(sizes) < len(image):
        written.pop("pads", None)
        return written
    return written | {"auto_pad": "NOTSET", "pads": window.padding(sizes)}


def _known(sizes: Sequence[Dimension | AttributeValue], operator: str) -> tuple[int, ...]:
    known = tuple(size for size in sizes if isinstance(size, int))
    if len(known) < len(sizes):
        raise TypeInferenceError(f"{operator}: sizes {tuple(sizes)}, which must be known")
    return known
