"""The types of elements that a file can hold, and an array of each."""

import ml_dtypes
import numpy as np

ELEMENT_TYPES = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 bfloat16 int4 uint4 "
    "float8_e4m3fn float8_e5m2"
).split()


def whole_numbers(dtype: str) -> np.ndarray:
    kind = getattr(ml_dtypes, dtype) if hasattr(ml_dtypes, dtype) else np.dtype(dtype)
    return np.array([[0, 1, 3], [5, 7, 2]]).astype(kind)
