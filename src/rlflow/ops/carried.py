"""Traits of operators that the library carries through a rewrite without understanding them.

Such a node is never looked into, but the model around it is run on drawn inputs, compared and priced, and for that a
little must be known of it: that a GatherND looks rows up, that an LSTM adds up many terms. An operator that is not here
has no traits, which is always safe: its inputs are drawn as any numbers, and it is fused with nothing.

The names are those of `ops/registry.py`, and no name is in both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf, prod

import numpy as np

from rlflow.ops.readings import (
    asks,
    bounds_all,
    carries,
    compared,
    computes,
    counted_to_depth,
    defined_on,
    divides,
    divisor_at,
    looks_up,
    looks_up_everywhere,
    mask_at,
    picks,
    result_shape_at,
    sequence_lengths_at,
    whole_range_at,
)
from rlflow.ops.sizes import counted, expanded
from rlflow.ops.traits import Fusion, SizeArithmetic, Traits
from rlflow.ops.turns import (
    bends_at,
    bends_at_attribute,
    bends_at_others,
    folded,
    is_compared,
    leaves_remainder,
    ramps,
    turns_at,
)


def _filled(operands: Sequence[Sequence[int]]) -> float:
    """The elements of a tensor of which the last operand is the shape."""
    return prod(operands[-1])


def _counted(operands: Sequence[Sequence[int]]) -> float:
    """The elements from a start to a limit, in steps."""
    if any(len(operand) != 1 for operand in operands):
        return 0
    (start,), (limit,), (step,) = operands
    distance = abs(limit - start)
    if step == 0:
        return inf if distance else 0
    return -(-distance // abs(step))


_ACCUMULATING = Traits(accumulates=True)
_DRAWING = Traits(draws_numbers=True)
_COUNTED = Traits(size_arithmetic=SizeArithmetic.WHOLE)
_CHOSEN = replace(_COUNTED, chooses=True)
_ROUNDED = Traits(size_arithmetic=SizeArithmetic.ROUNDING)
_COMPUTED = Traits(uses=(computes(),))
_POINTWISE = Traits(elementwise=True, fusion=Fusion.POINTWISE)
_MOVED = Traits(chooses=True, uses=(carries(0),))
_RECURRENT = Traits(accumulates=True, uses=(sequence_lengths_at(4),))
_LOOKING_UP = Traits(chooses=True, uses=(looks_up(table=0, index=1),))

CARRIED: dict[str, Traits] = {
    # Reductions, products and normalisations.
    **dict.fromkeys(("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"), _ACCUMULATING),
    **dict.fromkeys(("CumSum", "Einsum", "LRN", "LogSoftmax"), _ACCUMULATING),
    **dict.fromkeys(("GroupNormalization", "InstanceNormalization", "LpNormalization"), _ACCUMULATING),
    "MeanVarianceNormalization": _ACCUMULATING,
    "ReduceProd": Traits(accumulates=True, size_arithmetic=SizeArithmetic.WHOLE),
    "ConvTranspose": Traits(accumulates=True, fusion=Fusion.PRODUCT),
    **dict.fromkeys(("GRU", "LSTM", "RNN"), _RECURRENT),
    # Elementwise functions.
    "LeakyRelu": replace(_POINTWISE, uses=(bends_at(0.0),)),
    "HardSigmoid": replace(_POINTWISE, uses=(ramps(0.2, 0.5),)),
    **dict.fromkeys(("Celu", "Elu", "Selu", "Softsign"), Traits(uses=(computes(0), turns_at(0.0)))),
    "PRelu": Traits(uses=(computes(), bends_at(0.0))),
    "HardSwish": replace(_POINTWISE, uses=(computes(0), bends_at(-3.0, 3.0))),
    "ThresholdedRelu": Traits(uses=(computes(0), bends_at_attribute("alpha", 1.0))),
    "Shrink": Traits(uses=(computes(0), bends_at_attribute("lambd", 0.5))),
    "Abs": Traits(chooses=True, uses=(computes(0), folded)),
    "Sign": Traits(chooses=True, uses=(computes(0), turns_at(0.0))),
    "Round": Traits(uses=(computes(0), bends_at(-1.5, -0.5, 0.5, 1.5, 2.5))),
    **dict.fromkeys(("Cos", "Cosh", "Mish", "Sin", "Sinh", "Softplus", "Tan"), _COMPUTED),
    **dict.fromkeys(("BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "Xor"), _COMPUTED),
    "BitShift": Traits(uses=(computes(0),)),
    **dict.fromkeys(("Asin", "Acos", "Atanh"), Traits(elementwise=True, uses=(defined_on(-1.0, 1.0),))),
    "Acosh": Traits(elementwise=True, uses=(defined_on(1.0, inf),)),
    "Mod": replace(_COUNTED, uses=(computes(), divisor_at(1), divides, leaves_remainder)),
    **dict.fromkeys(("Max", "Min"), replace(_CHOSEN, uses=(computes(), bounds_all, bends_at_others))),
    **dict.fromkeys(("Ceil", "Floor"), replace(_ROUNDED, uses=(computes(), bends_at(-1.0, 0.0, 1.0)))),
    # Questions.
    **dict.fromkeys(("And", "Not", "Or"), replace(_CHOSEN, uses=(computes(),))),
    **dict.fromkeys(("Greater", "GreaterOrEqual", "Less", "LessOrEqual"), replace(_CHOSEN, uses=(is_compared,))),
    "Equal": replace(_CHOSEN, of_sizes=np.equal, uses=(is_compared, compared)),
    **dict.fromkeys(("IsInf", "IsNaN"), Traits(uses=(asks(0),))),
    "Where": replace(_CHOSEN, of_sizes=np.where, uses=(carries(1, 2), asks(0))),
    "If": Traits(uses=(asks(0),)),
    # Movements.
    "Compress": Traits(uses=(carries(0),)),  # of how many elements, its type does not tell
    **dict.fromkeys(("Tile", "Trilu"), _MOVED),
    **dict.fromkeys(("ArgMax", "ArgMin", "ReduceMax", "ReduceMin"), Traits(uses=(picks(0),))),
    "Expand": replace(_CHOSEN, elements=_filled, type_by_sizes=expanded, uses=(result_shape_at(1), carries(0))),
    "GatherElements": Traits(chooses=True, uses=(looks_up(table=0, index=1), carries(0))),
    "GatherND": Traits(chooses=True, uses=(looks_up_everywhere, carries(0))),
    "ScatterElements": _LOOKING_UP,
    "ScatterND": Traits(chooses=True, uses=(looks_up_everywhere,)),
    "ReverseSequence": Traits(uses=(sequence_lengths_at(1),)),
    # Tensors made of numbers.
    "ConstantOfShape": replace(_COUNTED, elements=_filled, uses=(result_shape_at(0),)),
    "Range": replace(_COUNTED, elements=_counted, type_by_sizes=counted),
    "OneHot": Traits(uses=(counted_to_depth,)),
    **dict.fromkeys(("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike"), _DRAWING),
    **dict.fromkeys(("RandomUniform", "RandomUniformLike"), _DRAWING),
    # Quantised operators.
    **dict.fromkeys(("ConvInteger", "QLinearConv"), Traits(uses=(whole_range_at(0),))),
    "MatMulInteger": Traits(uses=(whole_range_at(0, 1),)),
    "QLinearMatMul": Traits(uses=(whole_range_at(0, 3),)),
    # Contributed operators of ONNX Runtime.
    "com.microsoft.FastGelu": Traits(typed_like_operand=(0,)),
    "com.microsoft.EmbedLayerNormalization": Traits(uses=(looks_up(2, 0), looks_up(3, 8), looks_up(4, 1), mask_at(7))),
    "com.microsoft.MultiHeadAttention": Traits(accumulates=True, uses=(mask_at(4),)),
    "com.microsoft.QAttention": Traits(uses=(mask_at(5),)),
}
