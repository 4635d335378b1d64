"""Results that must be equal bit for bit: those that the same kernels compute, or that all kernels round alike.

ONNX Runtime computes what a model computes; numpy computes the constant expressions that an export folds. IEEE 754
fixes the bits of a sum of two numbers, and moving data rounds nothing; but a sum of many numbers depends on its order,
which each library chooses by the processor.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from onnx import ModelProto

from rlflow.equivalence.tolerance import tolerance_of
from rlflow.ir import Graph
from rlflow.ir.node import WEIGHT

_MOVES_DATA = frozenset(
    "Concat ConstantOfShape Expand Flatten Gather Identity Pad Reshape Slice Split Squeeze Transpose Unsqueeze".split()
)
_ROUNDS_ONCE = frozenset("Abs Add Cast Clip Div Max Min Mul Neg Relu Sqrt Sub Where".split())


def only_exact_arithmetic_is_folded(graph: Graph) -> bool:
    """Whether the constants that an export of the graph evaluates have the same bits on every processor."""
    folded = {node.op for node in graph.nodes.values() if node.constant and node.op != WEIGHT}
    return folded <= _MOVES_DATA | _ROUNDS_ONCE


def rounding_of_export(graph: Graph, original: ModelProto) -> float:
    """Return how far, relative to the largest value, an exported graph may be from the model that it came from: 0 where
    every kernel rounds what is folded alike.
    """
    return 0.0 if only_exact_arithmetic_is_folded(graph) else tolerance_of(original)


def all_close(expected: Mapping[str, Any], actual: Mapping[str, Any], tolerance: float) -> bool:
    """Whether the values of the same names agree; a tolerance of 0 means bit for bit."""
    return list(expected) == list(actual) and all(close(expected[name], actual[name], tolerance) for name in expected)


def close(expected: Any, actual: Any, tolerance: float) -> bool:
    """Whether floats are within the tolerance of the largest of them, and all else is the same."""
    if tolerance == 0 or not isinstance(expected, np.ndarray) or expected.dtype.kind != "f":
        return same_values(expected, actual)
    if not isinstance(actual, np.ndarray) or (expected.dtype, expected.shape) != (actual.dtype, actual.shape):
        return False
    scale = np.abs(expected[np.isfinite(expected)]).max(initial=0.0)
    return np.allclose(actual, expected, rtol=0, atol=tolerance * scale, equal_nan=True)


def same_values(expected: Any, actual: Any) -> bool:
    """Whether two values have the same bits, through sequences and missing optionals."""
    if isinstance(expected, list):
        return len(expected) == len(actual) and all(map(same_values, expected, actual))
    if expected is None or actual is None:
        return expected is actual
    expected, actual = np.asarray(expected), np.asarray(actual)
    is_float = expected.dtype.kind in "fc"
    return expected.dtype == actual.dtype and np.array_equal(expected, actual, equal_nan=is_float)
