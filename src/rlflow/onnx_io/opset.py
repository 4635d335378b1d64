"""How ONNX writes an operator's parameters in each opset, and how the library writes them: always as
attributes.

Reshape's shape was an attribute until opset 4 and is an operand since 5; Split's sizes moved in 13, the
reductions' axes in 13 or 18. Rules should not have to know.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rlflow.ir.node import AttributeValue


@dataclass(frozen=True, slots=True)
class Parameter:
    """Attribute `name`; since opset `since`, operand number `operand` (int64, or a scalar of the data's
    type).
    """

    name: str
    operand: int
    since: int
    required: bool = True
    scalar: bool = False


PARAMETERS: Mapping[str, tuple[Parameter, ...]] = {
    "Reshape": (Parameter("shape", 1, since=5),),
    "Split": (Parameter("split", 1, since=13, required=False),),
    "Squeeze": (Parameter("axes", 1, since=13, required=False),),
    "Unsqueeze": (Parameter("axes", 1, since=13),),
    "ReduceSum": (Parameter("axes", 1, since=13, required=False),),
    "ReduceMean": (Parameter("axes", 1, since=18, required=False),),
    "Clip": (
        Parameter("min", 1, since=11, required=False, scalar=True),
        Parameter("max", 2, since=11, required=False, scalar=True),
    ),
    "Pow": (Parameter("exponent", 1, since=7, scalar=True),),
    "Pad": (
        Parameter("pads", 1, since=11),
        Parameter("constant_value", 2, since=11, required=False, scalar=True),
        Parameter("axes", 3, since=18, required=False),
    ),
    "Slice": (
        Parameter("starts", 1, since=10),
        Parameter("ends", 2, since=10),
        Parameter("axes", 3, since=10, required=False),
        Parameter("steps", 4, since=10, required=False),
    ),
}

AXIS_ATTRIBUTES: Mapping[str, str] = {
    "Softmax": "axis",
    "Concat": "axis",
    "Split": "axis",
    "Gather": "axis",
    "LayerNormalization": "axis",
    "RMSNormalization": "axis",
    "ReduceSum": "axes",
    "ReduceMean": "axes",
    "Slice": "axes",
    "Squeeze": "axes",
}
"""Axes of the operand, stored from the end: -1 is the last axis whatever the rank."""

ATTRIBUTES_SINCE: Mapping[tuple[str, str], int] = {
    ("MaxPool", "ceil_mode"): 10,
    ("MaxPool", "dilations"): 10,
    ("AveragePool", "ceil_mode"): 10,
}
"""First opsets of attributes that an operator had not from its beginning: before, it did as with 0, or ones."""

FLATTENING_BEFORE: Mapping[str, int] = {"Softmax": 13}
"""First opsets in which an operator works along its axis alone. Before, it worked on all axes from there on at once,
which is the same on the last axis, and another axis was the default.
"""

IGNORED_ATTRIBUTES: Mapping[str, frozenset[str]] = {
    "LayerNormalization": frozenset({"stash_type"}),
    "RMSNormalization": frozenset({"stash_type"}),
    "Split": frozenset({"num_outputs"}),
    "Cast": frozenset({"saturate"}),
    "MaxPool": frozenset({"storage_order"}),
    "BatchNormalization": frozenset({"momentum"}),
}
"""Attributes that change nothing for the types and outputs that the library handles, unless `IGNORABLE_VALUES` names
their one harmless value.
"""

IGNORABLE_VALUES: Mapping[tuple[str, str], AttributeValue] = {
    ("LayerNormalization", "stash_type"): 1,
    ("RMSNormalization", "stash_type"): 1,
    ("Cast", "saturate"): 1,
    ("Attention", "is_causal"): 0,
    ("com.microsoft.FusedMatMul", "transBatchA"): 0,
    ("com.microsoft.FusedMatMul", "transBatchB"): 0,
    ("Attention", "softcap"): 0.0,
    ("Attention", "qk_matmul_output_mode"): 0,
    ("BatchNormalization", "training_mode"): 0,
}
