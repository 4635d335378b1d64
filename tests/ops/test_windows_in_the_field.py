"""Convolutions and pools in the finite field: integer arithmetic where it is exact, and what is known of a maximum."""

from math import lcm

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import windows

from rlflow.ops.domain import FloatDomain
from rlflow.ops.field import FieldArray, FieldDomain, P, Q
from rlflow.ops.registry import OPERATORS

TRIALS = (1, 2)
POOL = {"kernel_shape": (2,), "strides": (1,), "dilations": (1,), "pads": (0, 0), "auto_pad": "NOTSET", "ceil_mode": 0}


def whole(values: np.ndarray) -> FieldArray:
    """Integers as elements of the field, alike in all trials."""
    return FieldArray(values[None] % P, values[None] % Q)


def largest(x: FieldArray, **attributes: object) -> FieldArray:
    return OPERATORS["MaxPool"].evaluate(FieldDomain(TRIALS), POOL | attributes, [x])[0]  # type: ignore[no-any-return]


@pytest.mark.parametrize("op", ["Conv", "AveragePool", "GlobalAveragePool"])
@settings(max_examples=40)
@given(data=st.data())
def test_what_is_exact_is_integer_arithmetic(op: str, data: st.DataObject) -> None:
    """Integers that double precision computes with exactly; averaged ones divide by every count up to 125."""
    case = data.draw(st.composite(lambda draw: windows.DRAWN[op](draw))())
    operands = [np.round(4 * x).astype(np.int64) for x in case.operands]
    if op != "Conv":
        operands[0] *= lcm(*range(1, 28)) if op == "AveragePool" else lcm(*(x.size for x in case.operands[0][0]))
    field = OPERATORS[op].evaluate(FieldDomain(TRIALS), case.attributes, [whole(x) for x in operands])[0]
    doubles = [x.astype(np.float64) for x in operands]
    expected = np.rint(OPERATORS[op].evaluate(FloatDomain(), case.attributes, doubles)[0]).astype(np.int64)
    assert field.shape == expected.shape
    assert (field.residue == expected % P).all()
    assert (field.exponent == expected % Q).all()
    assert field.undefined is None


def test_a_convolution_spoils_what_reads_an_undefined_element() -> None:
    filters, last = whole(np.ones((1, 1, 2), np.int64)), np.arange(4).reshape(1, 1, 4)
    x = FieldArray(last[None], last[None], last[None] == 3)
    attributes = {"strides": (1,), "dilations": (1,), "pads": (1, 0), "auto_pad": "NOTSET", "group": 1}
    (result,) = OPERATORS["Conv"].evaluate(FieldDomain(TRIALS), attributes, [x, filters])
    assert result.undefined[0, 0, 0].tolist() == [False, False, False, True]
    assert largest(x).undefined[0, 0, 0].tolist() == [False, False, True]


def test_a_maximum_depends_on_the_elements_seen_alone() -> None:
    """On which, not on their order; padding is no element."""
    ordered, turned = whole(np.array([[[5, 7, 9]]])), whole(np.array([[[9, 7, 5]]]))
    assert (largest(ordered).residue == largest(turned).residue[..., ::-1]).all()
    padded = largest(ordered, kernel_shape=(3,), pads=(2, 2)).residue
    assert (padded[..., 1] == largest(ordered).residue[..., 0]).all()
    assert (padded[..., 2] == largest(ordered, kernel_shape=(3,)).residue[..., 0]).all()
    assert (largest(ordered).residue[..., 0] != largest(ordered).residue[..., 1]).all()


def test_a_maximum_is_not_linear_nor_a_sum() -> None:
    d, rng = FieldDomain(TRIALS), np.random.default_rng(0)
    x, y = d.draw((1, 1, 40), rng), d.draw((1, 1, 40), rng)
    total = d.add(largest(x), largest(y)).residue
    assert (largest(d.add(x, y)).residue != total).mean() > 0.99
    three, one, two = whole(np.array([[[3, 3]]])), whole(np.array([[[1, 5]]])), whole(np.array([[[2, 4]]]))
    assert len({largest(v).residue[0].item() for v in (three, one, two)}) == 3, "equal sums are other multisets"


def test_a_constant_around_is_exact() -> None:
    attributes = {"pads": (1, 2), "mode": "constant", "constant_value": -0.5}
    (result,) = OPERATORS["Pad"].evaluate(FieldDomain(TRIALS), attributes, [whole(np.array([4]))])
    half = (-pow(2, -1, P)) % P
    assert result.residue[0].tolist() == [half, 4, half, half]


def test_batch_normalisation_takes_the_mean_and_divides_by_the_deviation() -> None:
    d, rng = FieldDomain(TRIALS), np.random.default_rng(0)
    x, (scale, shift, mean, variance) = d.draw((2, 3, 4), rng), (d.draw((3,), rng) for _ in range(4))
    attributes = {"epsilon": 0.25}
    (result,) = OPERATORS["BatchNormalization"].evaluate(d, attributes, [x, scale, shift, mean, variance])
    deviation = d.function("sqrt", d.add(variance, d.constant(0.25))).residue[:, 1]
    inside = (x.residue[:, 0, 1, 2] - mean.residue[:, 1]) * np.array([pow(int(s), -1, P) for s in deviation]) % P
    expected = (inside * scale.residue[:, 1] + shift.residue[:, 1]) % P
    assert result.residue[:, 0, 1, 2].tolist() == expected.tolist()
