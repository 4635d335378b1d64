"""A batch of floats is what numpy's floats give at each of its points."""

from typing import Any

import numpy as np
import pytest

from rlflow.ops.domain import FloatDomain
from rlflow.ops.float_batch import FloatBatch, FloatBatchDomain
from rlflow.ops.registry import OPERATORS

POINTS = 3
WINDOW = {"strides": (2, 1), "pads": (1, 0, 1, 1), "auto_pad": "NOTSET"}
POOL = {**WINDOW, "kernel_shape": (2, 2), "ceil_mode": 0}
IMAGE = (2, 4, 5, 4)
CASES: dict[str, tuple[dict[str, Any], tuple[tuple[int, ...], ...]]] = {
    "Add": ({}, ((2, 3), (3,))),
    "Sub": ({}, ((3,), (2, 1))),
    "Mul": ({}, ((), (2, 3))),
    "Div": ({}, ((2, 3), (2, 3))),
    "Sum": ({}, ((2, 3), (3,), ())),
    **dict.fromkeys(("Relu", "Neg", "Reciprocal", "Exp", "Erf", "Tanh", "Sqrt", "Log", "Sigmoid"), ({}, ((2, 3),))),
    "Clip": ({"min": -0.5, "max": 0.25}, ((2, 3),)),
    "MatMul": ({}, ((2, 3), (4, 3, 2))),
    "Gemm": ({"alpha": 0.5, "beta": 2.0, "transA": 1, "transB": 0}, ((3, 2), (3, 4), (4,))),
    "Conv": ({**WINDOW, "dilations": (1, 2), "group": 2}, (IMAGE, (4, 2, 2, 2), (4,))),
    "MaxPool": ({**POOL, "dilations": (1, 1)}, (IMAGE,)),
    "AveragePool": ({**POOL, "count_include_pad": 0}, (IMAGE,)),
    "GlobalAveragePool": ({}, (IMAGE,)),
    "Softmax": ({"axis": -2}, ((2, 3, 4),)),
    "LayerNormalization": ({"axis": -1, "epsilon": 1e-5}, ((2, 3), (3,), (3,))),
    "ReduceMean": ({"axes": (-2,), "keepdims": 0}, ((2, 3, 4),)),
    "Concat": ({"axis": -1}, ((2, 3), (2, 1))),
    "Pad": ({"mode": "constant", "pads": (0, 1, 2, 0), "constant_value": 1.5}, ((2, 3),)),
    "Transpose": ({"perm": (2, 0, 1)}, ((2, 3, 4),)),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("op", CASES)
def test_every_point_is_computed_as_by_itself(op: str, dtype: type) -> None:
    attributes, shapes = CASES[op]
    rng = np.random.default_rng(0)
    values = [rng.standard_normal((POINTS, *shape)).astype(dtype) for shape in shapes]
    with np.errstate(all="ignore"):
        together = OPERATORS[op].evaluate(FloatBatchDomain(), attributes, list(map(FloatBatch, values)))
        alone = [OPERATORS[op].evaluate(FloatDomain(), attributes, [v[i] for v in values]) for i in range(POINTS)]
    for output, batch in enumerate(together):
        assert batch.values.dtype == dtype
        for i in range(POINTS):
            np.testing.assert_allclose(
                batch.values[i], alone[i][output], rtol=8 * np.finfo(dtype).eps, atol=8 * np.finfo(dtype).eps
            )
    assert not np.array_equal(together[0].values[0], together[0].values[1]), "the points differ"
