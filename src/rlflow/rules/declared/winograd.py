"""Products traded for sums: true at all even sizes, worth their sums at large ones alone.

A product of matrices by seven products of their quarters (Strassen, 1969, with Winograd's fifteen sums), and a
convolution by 3 x 3 filters with 16 products for every 36 (Lavin and Gray, 2016, F(2 x 2, 3 x 3)).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated

import numpy as np

from rlflow.rules.dsl import (
    CONSTANT,
    Attribute,
    Integers,
    Number,
    Operand,
    Rewrite,
    Shape,
    Tensor,
    Value,
    false_control,
    ints,
    is_even,
    numbers,
    rule,
    rules,
)
from rlflow.rules.dsl import split as parts_of
from rlflow.rules.dsl.operators import Add, Concat, Conv, MatMul, Pad, Reshape, Slice, Sub, Transpose
from rlflow.rules.dsl.vocabulary import LAST, ROWS, Bias, Image
from rlflow.rules.expression import TO_THE_END

FAMILY = "convolution"

Left = Annotated[Tensor, Shape("m k")]
Right = Annotated[Tensor, Shape("k n"), CONSTANT]

_LEAST_SIDE = 1024
"""Below it a product of matrices is computed faster than its quarters are summed."""


def _quarters(x: Tensor) -> list[Tensor]:
    """The four quarters of a matrix, row by row."""
    rows, columns = x.dim(ROWS) / 2, x.dim(LAST) / 2
    return [part for half in parts_of(x, ROWS, rows, rows) for part in parts_of(half, LAST, columns, columns)]


def _by_seven_products(a: Tensor, b: Tensor, subtract: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    a11, a12, a21, a22 = _quarters(a)
    b11, b12, b21, b22 = _quarters(b)

    s1, t1 = Add(a21, a22), subtract(b12, b11)
    s2, t2 = subtract(s1, a11), subtract(b22, t1)
    left = (a11, a12, subtract(a12, s2), a22, s1, s2, subtract(a11, a21))
    right = (b11, b21, b22, subtract(t2, b21), t1, t2, subtract(b22, b12))
    p1, p2, p3, p4, p5, p6, p7 = (MatMul(x, y) for x, y in zip(left, right, strict=True))

    u2 = Add(p1, p6)
    u3 = Add(u2, p7)
    upper = Concat(Add(p1, p2), Add(Add(u2, p5), p3), axis=LAST)
    lower = Concat(subtract(u3, p4), Add(u3, p5), axis=LAST)
    return Concat(upper, lower, axis=ROWS)


@rule("product-by-seven-products", family="linear")
def product_by_seven_products(a: Left, b: Right) -> Rewrite:
    """A product of matrices by seven products of their quarters, instead of eight."""
    sides = [a.dim(0), a.dim(1), b.dim(1)]
    return Rewrite(
        MatMul(a, b),
        _by_seven_products(a, b, Sub),
        where=[is_even(side) for side in sides],
        profitable_if=[side >= _LEAST_SIDE for side in sides],
    )


@false_control("seven-products-without-signs", of="product-by-seven-products")
def seven_products_without_signs(a: Left, b: Right) -> Rewrite:
    """False: all differences have become sums."""
    sides = [a.dim(0), a.dim(1), b.dim(1)]
    return Rewrite(
        MatMul(a, b),
        _by_seven_products(a, b, Add),
        where=[is_even(side) for side in sides],
        profitable_if=[side >= _LEAST_SIDE for side in sides],
    )


_IMAGE_TILE = np.array([[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]])
_FILTER_TILE = np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]])
_RESULT_TILE = np.array([[1, 1, 1, 0], [0, 1, -1, -1]])
"""B, G and A of Lavin and Gray, section 4.1, for one axis; of both axes the transform is their Kronecker product."""

_LEAST_CHANNELS = 256
"""Below it the transforms cost more than the products that they save."""

Pads = Annotated[Attribute, Integers(0, 2, count=4)]
Kernel = Annotated[Tensor, Shape("m c 3 3"), CONSTANT]


def _reshape(x: Operand, *shape: Number) -> Tensor:
    return Reshape(x, shape=ints(*shape))


def _transformed(along: np.ndarray, x: Tensor) -> Tensor:
    """Multiply both axes of a tile, which lie flat before all others, by this matrix."""
    matrix = np.kron(along, along).astype(float)
    return MatMul(_reshape(numbers(matrix.reshape(-1).tolist()), *matrix.shape), x)


def _windows(x: Tensor, phase: int, axis: int) -> Tensor:
    """Lines 0 to 3 of each tile (from even and odd lines): tiles lie two lines apart, and each sees two of the next."""
    first = Slice(x, axes=[axis], starts=[0], ends=[-1], steps=[1])
    next_ = Slice(x, axes=[axis], starts=[1], ends=[TO_THE_END], steps=[1])
    return Concat(first, next_, axis=phase)


_LAID, _TURNED = (2, 3, 4, 0, 5, 1), (2, 3, 4, 1, 5, 0)
"""From (line, column, image, channel, tile, tile) to images; and with lines and columns exchanged, which is wrong."""


def _padded_size(x: Tensor, pads: Value) -> list[Value]:
    """Height and width of the image with what is padded around it."""
    return [x.dim(2) + pads[0] + pads[2], x.dim(3) + pads[1] + pads[3]]


def _by_sixteen_products(x: Tensor, f: Tensor, pads: Value, laid: Sequence[int]) -> Tensor:
    """Tiles of the image are transformed, multiplied by the transformed filters in sixteen products, and back."""
    images, channels, filters = x.dim(0), x.dim(1), f.dim(0)
    halves = [size / 2 for size in _padded_size(x, pads)]
    tiles = [half - 1 for half in halves]

    padded = Pad(x, pads=ints(0, 0, pads[0], pads[1], 0, 0, pads[2], pads[3]))
    phases = Transpose(_reshape(padded, images, channels, halves[0], 2, halves[1], 2), perm=[3, 5, 0, 1, 2, 4])
    lines = _reshape(_windows(_windows(phases, -6, ROWS), -5, LAST), 16, -1)
    points = _reshape(Transpose(f, perm=[2, 3, 0, 1]), 9, -1)

    products = MatMul(
        _reshape(_transformed(_FILTER_TILE, points), 16, 1, filters, channels),
        _reshape(_transformed(_IMAGE_TILE, lines), 16, images, channels, -1),
    )
    back = _reshape(_transformed(_RESULT_TILE, _reshape(products, 16, -1)), 2, 2, images, filters, *tiles)
    return _reshape(Transpose(back, perm=list(laid)), images, filters, *(2 * tile for tile in tiles))


@rules({"convolution-by-sixteen-products": False, "convolution-by-sixteen-products-with-bias": True})
def convolution_by_sixteen_products(bias: bool, x: Image, f: Kernel, b: Bias, p: Pads) -> Rewrite:
    """A convolution by 3 x 3 filters with sixteen products for every 36."""
    window = {"strides": [1, 1], "pads": p, "dilations": [1, 1]}
    image = _by_sixteen_products(x, f, p, _LAID)
    return Rewrite(
        Conv(x, f, *([b] if bias else []), **window),
        Add(image, _reshape(b, -1, 1, 1)) if bias else image,
        where=[is_even(size) for size in _padded_size(x, p)],
        profitable_if=[count >= _LEAST_CHANNELS for count in (x.dim(1), f.dim(0))],
    )


@false_control("sixteen-products-turned", of="convolution-by-sixteen-products")
def sixteen_products_turned(x: Image, f: Kernel, p: Pads) -> Rewrite:
    """False: the lines of a tile are taken for its columns."""
    return Rewrite(
        Conv(x, f, strides=[1, 1], pads=p, dilations=[1, 1]),
        _by_sixteen_products(x, f, p, _TURNED),
        where=[is_even(size) for size in _padded_size(x, p)],
        profitable_if=[count >= _LEAST_CHANNELS for count in (x.dim(1), f.dim(0))],
    )
