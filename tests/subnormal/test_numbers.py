"""Subnormal numbers are told by their bits, exactly as the float type defines them."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlflow.subnormal.numbers import below, subnormal

TYPES = [np.float32, np.float64, ml_dtypes.bfloat16]


@pytest.mark.parametrize("dtype", TYPES)
def test_the_ends_of_the_range(dtype):
    smallest = ml_dtypes.finfo(dtype).smallest_normal
    least = ml_dtypes.finfo(dtype).smallest_subnormal
    values = np.array([0.0, -0.0, least, -least, smallest, -smallest, np.inf, np.nan, 1.0], dtype)
    assert subnormal(values).tolist() == [False, False, True, True, False, False, False, False, False]
    assert subnormal(np.nextafter(smallest, dtype(0), dtype=dtype) if dtype is not TYPES[2] else least).all()


@given(st.lists(st.floats(width=32), max_size=40))
def test_a_float32_is_subnormal_below_its_smallest_normal_number(numbers):
    """The definition, beside which the bits stand."""
    values = np.array(numbers, np.float32)
    expected = (values != 0) & (np.abs(values) < np.finfo(np.float32).smallest_normal)
    assert subnormal(values).tolist() == expected.tolist()


@given(st.lists(st.floats(width=32), max_size=40), st.floats(2.0**-126, 1.0, width=32))
def test_a_number_is_below_another_by_its_bits(numbers, limit):
    values = np.array(numbers, np.float32)
    assert below(values, limit).tolist() == ((values != 0) & (np.abs(values) < np.float32(limit))).tolist()
    assert not below(values, 1e-60).any(), "which is zero in float32"


@pytest.mark.parametrize("shape", [(), (0,), (3, 2**18 + 5)])
def test_every_shape(shape):
    """The last one is looked at in several parts, of which the last is short."""
    values = np.full(shape, 1e-40, np.float32)
    assert subnormal(values).shape == shape
    assert subnormal(values).all()
    assert not subnormal(np.asarray(values.swapaxes(0, -1) if values.ndim > 1 else values) * 0).any()


@pytest.mark.parametrize("values", [np.array([1e-7], np.float16), np.array([1], np.int32), np.array([True])])
def test_other_types_are_not_looked_after(values):
    """Not vacuous: the float16 is subnormal, and a normal float32."""
    assert not subnormal(values).any()
