"""The operands that an operator multiplies or adds, and does nothing else with (`subnormal/weights.py`).

    COEFFICIENTS["Conv"] == (1, 2)          the filters and the bias

Such an operand may lose a number of next to nothing: the sums that it is part of lose next to nothing. That is not so
where an operator divides by it, takes its logarithm or compares it. An operator that is not here has no such operand.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

COEFFICIENTS: Mapping[str, tuple[int, ...]] = {
    **dict.fromkeys(("Add", "Mul", "MatMul"), (0, 1)),
    "Gemm": (0, 1, 2),
    **dict.fromkeys(("Conv", "ConvTranspose", "LayerNormalization", "InstanceNormalization"), (1, 2)),
    "GroupNormalization": (1, 2),
    "BatchNormalization": (1, 2, 3),
    **dict.fromkeys(("PRelu", "RMSNormalization"), (1,)),
    "LSTM": (1, 2, 3, 7),
    **dict.fromkeys(("GRU", "RNN"), (1, 2, 3)),
    "com.microsoft.Attention": (1, 2),
    **dict.fromkeys(("com.microsoft.BiasGelu", "com.microsoft.FastGelu"), (1,)),
    "com.microsoft.FusedConv": (1, 2, 3),
    "com.microsoft.FusedGemm": (0, 1, 2),
    "com.microsoft.FusedMatMul": (0, 1),
    "com.microsoft.SkipLayerNormalization": (2, 3, 4),
}
"""The places of the operands, by the operator's qualified name."""

PASSED_ON = frozenset("Cast Expand Flatten Gather Identity Reshape Slice Split Squeeze Transpose Unsqueeze".split())
"""Operators whose results are elements of the first operand, perhaps of another type: their readers read it."""


class Scaling(NamedTuple):
    """A function of each channel whose factor is `scale / sqrt(variance + epsilon)`.

    Of these the first two are operands, by their places, and `epsilon` is an attribute with a default; the attribute
    `training` says that the variance is another one.
    """

    scale: int
    variance: int
    epsilon: str
    default: float
    training: str


SCALINGS: Mapping[str, Scaling] = {"BatchNormalization": Scaling(1, 4, "epsilon", 1e-5, "training_mode")}
"""Operators that ONNX Runtime makes part of the product before them when it opens a model."""
SCALED: Mapping[str, int] = {"Conv": 1}
"""The products, with the place of the operand whose first axis are the channels."""
