"""Coefficients enter a result by sums and products alone: it is affine in each of them."""

import numpy as np
import onnx
import pytest
from onnxruntime.capi.onnxruntime_pybind11_state import get_all_operator_schema

from rlflow.ops.coefficients import COEFFICIENTS, PASSED_ON, SCALED, SCALINGS
from rlflow.ops.float_batch import FloatDomain
from rlflow.ops.registry import OPERATORS

OPERANDS = {
    "Add": [(3, 4), (3, 4)],
    "Mul": [(3, 4), (3, 4)],
    "MatMul": [(3, 4), (4, 2)],
    "Gemm": [(3, 4), (4, 2), (2,)],
    "Conv": [(1, 2, 5, 5), (3, 2, 3, 3), (3,)],
    "LayerNormalization": [(3, 4), (4,), (4,)],
    "RMSNormalization": [(3, 4), (4,)],
    "BatchNormalization": [(2, 3, 4), (3,), (3,), (3,), (3,)],
    "Div": [(3, 4), (3, 4)],
}
ATTRIBUTES = {"Conv": {"strides": (1, 1), "pads": (0, 0, 0, 0), "dilations": (1, 1)}}
AFFINE = [(name, place) for name, places in COEFFICIENTS.items() if name in OPERANDS for place in places]


def bend(name: str, place: int) -> float:
    """The largest f(a + b) - f(a) - f(b) + f(0) over f(a), which is nothing but rounding where f is affine."""
    operator, rng = OPERATORS[name], np.random.default_rng(0)
    operands = [rng.uniform(0.5, 2.0, shape) for shape in OPERANDS[name]]

    def result(value: np.ndarray) -> np.ndarray:
        given = [value if number == place else operand for number, operand in enumerate(operands)]
        with np.errstate(all="ignore"):
            return operator.evaluate(FloatDomain(), {**operator.defaults, **ATTRIBUTES.get(name, {})}, given)[0]

    first, second = operands[place], rng.uniform(0.5, 2.0, OPERANDS[name][place])
    bent = result(first + second) - result(first) - result(second) + result(np.zeros_like(first))
    return float(np.nan_to_num(np.abs(bent), nan=np.inf).max() / np.abs(result(first)).max())


@pytest.mark.parametrize(("name", "place"), AFFINE)
def test_a_result_is_affine_in_each_coefficient(name, place):
    assert bend(name, place) < 1e-12


@pytest.mark.parametrize(("name", "place"), [("BatchNormalization", 4), ("Div", 1), ("RMSNormalization", 0)])
def test_other_operands_bend_it(name, place):
    """The control: what divides is no coefficient."""
    assert place not in COEFFICIENTS.get(name, ())
    assert bend(name, place) > 1e-3


def test_the_operators_exist_and_have_these_operands():
    """A misspelt name would have no coefficients, without a word."""
    known = [(schema.domain, schema.name, schema.max_input) for schema in onnx.defs.get_all_schemas()]
    known += [(schema.domain, schema.name, schema.max_input) for schema in get_all_operator_schema()]
    most = {f"{domain}.{name}".lstrip("."): inputs for domain, name, inputs in known}
    assert all(max(places) < most[name] for name, places in COEFFICIENTS.items())
    assert most.keys() >= PASSED_ON | SCALINGS.keys() | SCALED.keys()
    assert len(AFFINE) >= 15
