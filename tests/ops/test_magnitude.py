"""A bound on an operator's results is one: it is no less than what the reference interpreter computes."""

from math import inf

import numpy as np
import pytest

from rlflow.ir.tensor_type import TensorType
from rlflow.ops.domain import FloatDomain
from rlflow.ops.magnitude import Magnitude, largest
from rlflow.ops.registry import OPERATORS

ATTRIBUTES = {
    "Softmax": {"axis": -1},
    "Clip": {"min": -0.5, "max": 0.25},
    "ReduceMean": {"axes": (-1,), "keepdims": 1},
    "LayerNormalization": {"axis": -1, "epsilon": 1e-5},
    "RMSNormalization": {"axis": -1, "epsilon": 1e-5},
    "Transpose": {"perm": (1, 0)},
    "Concat": {"axis": 0},
}
OPERANDS = {"Add": 2, "Sub": 2, "Mul": 2, "MatMul": 2, "Concat": 2, "LayerNormalization": 3, "RMSNormalization": 2}


@pytest.mark.parametrize(
    "op",
    ["Sigmoid", "Tanh", "Erf", "Relu", "Neg", "Gelu", "Sum", *ATTRIBUTES, "Add", "Sub", "Mul", "MatMul"],
)
def test_no_result_is_above_its_bound(op: str) -> None:
    rng = np.random.default_rng(0)
    attributes = {
        **OPERATORS[op].defaults,
        **ATTRIBUTES.get(op, {}),
        **({"approximate": "none"} if op == "Gelu" else {}),
    }
    for scale in (0.01, 1.0, 50.0):
        count = OPERANDS.get(op, 1)
        shapes = [(4, 4), *[(4,) if "Normalization" in op else (4, 4)] * (count - 1)]
        values = [scale * rng.standard_normal(shape).astype(np.float32) for shape in shapes]
        magnitudes = [Magnitude(float(np.abs(v).max())) for v in values]
        (result,) = OPERATORS[op].evaluate(FloatDomain(), attributes, values)
        bound = largest(op, attributes, magnitudes, [TensorType("float32", v.shape) for v in values])
        assert np.abs(result).max() <= bound * (1 + 1e-5)
        assert bound < inf


def test_the_columns_of_a_known_matrix_give_a_closer_bound() -> None:
    types = [TensorType("float32", (3, 100)), TensorType("float32", (100, 5))]
    x = Magnitude(2.0)
    assert largest("MatMul", {}, [x, Magnitude(0.5, column_sum=3.0)], types) == 6.0
    assert largest("MatMul", {}, [x, Magnitude(0.5)], types) == 100.0


def test_where_nothing_is_known_there_is_no_bound() -> None:
    anything = TensorType("float32", (2, "N"))
    assert largest("Exp", {}, [Magnitude(1.0)], [anything]) == inf
    assert largest("Mul", {}, [Magnitude(0.0), Magnitude(inf)], [anything, anything]) == inf
    assert largest("Clip", {"min": 0.0}, [Magnitude(inf)], [anything]) == inf
    assert largest("MatMul", {}, [Magnitude(1.0), Magnitude(1.0)], [anything, TensorType("float32", ("N", 2))]) == inf
