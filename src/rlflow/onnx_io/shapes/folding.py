"""Constant folding of computed shapes: numbers that a model computes although they are known.

Models are exported with Shape, Gather and Concat before each Reshape; if the shape is known, so are all of these.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
from onnx import helper
from onnx.reference import ReferenceEvaluator

from rlflow.ir.tensor_type import TensorType
from rlflow.onnx_io.element_type import element_type
from rlflow.ops.registry import NO_TRAITS, TRAITS, having
from rlflow.ops.traits import SizeArithmetic

MOST_ELEMENTS = 1024  # of a shape, axes or positions; a tensor with more is data
MOST_CHOSEN = 2**18  # elements of a mask that is stored, and not computed anew whenever a model is opened
_NO_REDUCTION = frozenset({b"", b"none"})
_WHOLE = frozenset({"bool", "int32", "int64"})
_ARITHMETIC = having(lambda traits: traits.size_arithmetic & SizeArithmetic.WHOLE)
_ROUNDING = having(lambda traits: traits.size_arithmetic & SizeArithmetic.ROUNDING)


def read_shape(proto: onnx.NodeProto, tensor_type: TensorType | None) -> np.ndarray | None:
    """Return the result of a Shape node (ai.onnx 1 to 25) on a value of this type, int64; None unless all is known."""
    bounds = {a.name: helper.get_attribute_value(a) for a in proto.attribute if not a.ref_attr_name}
    if tensor_type is None or tensor_type.shape is None or len(bounds) < len(proto.attribute):
        return None
    read = tensor_type.shape[bounds.get("start") : bounds.get("end")]
    return np.array(read, np.int64) if all(isinstance(d, int) for d in read) else None


def computed(proto: onnx.NodeProto, operands: Mapping[str, np.ndarray], opset: int) -> np.ndarray | None:
    """Compute an operator of ai.onnx on at most 1,024 whole numbers, or on single floats; None for anything else."""
    if len(proto.output) != 1 or not _is_arithmetic(proto, operands) or not _makes_few(proto, operands):
        return None
    value = by_reference(proto, operands, opset)
    return value if value is not None and (_is_few(value) or _is_one_float(value)) else None


def chooses(proto: onnx.NodeProto) -> bool:
    """Return True for an operator of ai.onnx whose result is elements of its operands or truths about them.

    Masks and relative positions are computed so, from constants alone. Every library finds the same, and ONNX Runtime
    computes them when it opens a model.
    """
    adds_up = any(attribute.name == "reduction" and attribute.s not in _NO_REDUCTION for attribute in proto.attribute)
    return len(proto.output) == 1 and TRAITS.get(proto.op_type, NO_TRAITS).chooses and not adds_up


def _is_arithmetic(proto: onnx.NodeProto, operands: Mapping[str, np.ndarray]) -> bool:
    if proto.op_type in _ARITHMETIC and all(map(_is_few, operands.values())):
        return True
    return proto.op_type in _ROUNDING and all(_is_few(o) or _is_one_float(o) for o in operands.values())


def _makes_few(proto: onnx.NodeProto, operands: Mapping[str, np.ndarray]) -> bool:
    """Return True if the result is small, even where an operand sets its size; a large one would fill the memory."""
    elements = TRAITS.get(proto.op_type, NO_TRAITS).elements
    if elements is None:
        return True
    given = [[int(v) for v in operands[name].reshape(-1)] for name in proto.input]
    return elements(given) <= MOST_ELEMENTS


def by_reference(proto: onnx.NodeProto, operands: Mapping[str, np.ndarray], opset: int) -> np.ndarray | None:
    """Compute a node of ai.onnx as onnx's own evaluator does; None where its numbers do not fit."""
    try:
        with np.errstate(all="raise"):
            (value,) = ReferenceEvaluator(_model_of(proto, operands, opset)).run(None, dict(operands))
    except Exception:  # the reference raises anything on numbers that do not fit; the node stays as it is
        return None
    return value if isinstance(value, np.ndarray) else None


def _model_of(proto: onnx.NodeProto, operands: Mapping[str, np.ndarray], opset: int) -> onnx.ModelProto:
    """Make a model of the node alone: without one, the reference takes the node to be of the newest opset."""
    inputs = [helper.make_tensor_value_info(n, element_type(a.dtype.name), a.shape) for n, a in operands.items()]
    graph = helper.make_graph([proto], "sizes", inputs, [onnx.ValueInfoProto(name=proto.output[0])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def _is_few(array: np.ndarray) -> bool:
    return array.dtype.name in _WHOLE and array.size <= MOST_ELEMENTS


def _is_one_float(array: np.ndarray) -> bool:
    return array.dtype.name in ("float32", "float64") and array.size == 1
