"""Traits of operators: the questions that the rest of the library asks instead of looking at names.

A cost model asks what ONNX Runtime may fuse, a comparison how rounding errors grow, the importer of sizes what computes
sizes. Each such question is a trait here, and each operator answers where it is defined:

    Operator("Sqrt", ..., traits=Traits(elementwise=True, fusion=Fusion.POINTWISE, uses=(defined_on(0.0, inf),)))

Operators that the library carries without understanding them answer in `ops/carried.py`, in the same words.

The invariant: outside `ops`, no code tells operators apart by their names (`tests/ops/test_traits.py` has the few
exceptions, each with its reason).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Flag, auto
from typing import Any

import numpy as np

from rlflow.ir.tensor_type import TensorType
from rlflow.ops.use import Reading


class Fusion(Flag):
    """The parts that an operator plays where ONNX Runtime's CPU optimisers fuse neighbours (see `cost/regions.py`)."""

    NONE = 0
    TRANSPOSE = auto()
    """Products take it up, and it merges with its like."""
    PAD = auto()
    """Windows take it up."""
    PADDED = auto()
    """A window that takes up a Pad before it."""
    PRODUCT = auto()
    """Takes up a transposition or a constant factor before it, and pointwise operators after it."""
    POINTWISE = auto()
    """Is fused with its like, and into what comes before it."""
    SUM = auto()
    """Adds tensors: in a residual stream it is not fused with the next sum."""
    SCALE = auto()
    """Multiplies or divides, perhaps by a constant factor, which a product takes up."""
    GATE = auto()
    """The function inside of a Gelu."""
    GATED = auto()
    """May be the last step of a Gelu, which keeps its constant factor."""
    REDUCTION = auto()
    """Takes up pointwise operators before it, and is fused with those after it."""
    NORMALISATION = auto()
    """Takes up a sum or a convolution before it."""
    NORMALISED = auto()
    """Normalisations take it up."""
    ACTIVATED = auto()
    """Takes up pointwise operators after it."""
    MASKED = auto()
    """A kernel of its own whose time depends on the pointwise operators before it: on what these mask."""


class SizeArithmetic(Flag):
    """The ways in which models compute sizes by an operator, such as the shape that a Reshape reads."""

    NONE = 0
    WHOLE = auto()
    """On a few whole numbers, where the result is exact."""
    ROUNDING = auto()
    """On one float, where every machine computes the same bits: sizes are rounded up in this way."""
    DYNAMIC = auto()
    """On sizes that are known only when the model runs: its evaluation moves or adds whatever the elements are."""


@dataclass(frozen=True, kw_only=True)
class Traits:
    """The answers of one operator. Those of an operator of which nothing is said are all no."""

    elementwise: bool = False
    """Each element of the result comes from those in the same place of the operands, which broadcast."""

    view: bool = False
    """Only relabels memory: the result has the operand's elements, in their order."""

    converts: bool = False
    """Gives elements another type, and changes nothing where they have it already."""

    windowed: bool = False
    """Slides a window over an image, by strides, pads and dilations."""

    fusion: Fusion = Fusion.NONE

    accumulates: bool = False
    """Adds up many terms (or their squares): one step of the random walk by which rounding errors grow."""

    draws_numbers: bool = False
    """Draws random numbers."""

    inexact: bool = False
    """A function whose last bit is another one in every library: only the runtime may compute constants by it."""

    exponential: bool = False
    """Raises e to its operand: over the finite field, its operands are drawn with their exponents."""

    cancelling: bool = False
    """An inverse, by which variables may cancel each other: of what is found with it, more is asked."""

    dequantises: bool = False
    """Makes floats of quantised numbers, and of constants only when the model runs: what reads them is computed with
    the whole numbers where the runtime can.
    """

    selects: bool = False
    """Selects elements of its first operand by their numbers, which are the second one."""

    chooses: bool = False
    """Its results are elements of its operands, or truths about them: every library computes the same."""

    typed_like_operand: tuple[int, ...] = ()
    """The outputs that surely have the type of the first operand, of an operator that ONNX knows nothing of."""

    size_arithmetic: SizeArithmetic = SizeArithmetic.NONE

    of_sizes: Callable[..., np.ndarray] | None = None
    """An answer about sizes that are known only when the model runs, of an operator that is not understood."""

    type_by_sizes: Callable[[TensorType, Sequence[list[Any] | None]], TensorType | None] | None = None
    """The type of the result by that of the first operand and by operands that are numbers and sizes (`ops/sizes.py`),
    where other inference leaves it unknown.
    """

    elements: Callable[[Sequence[Sequence[int]]], float] | None = None
    """The number of elements that come out, where it is one of the numbers that go in."""

    uses: tuple[Reading, ...] = ()
    """What the operands are for, by which a model's inputs are drawn."""
