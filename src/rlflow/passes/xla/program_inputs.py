"""Inputs for a program of which nothing is known but the types of its parameters.

Matrices are standard normal numbers, halved. Vectors and single numbers are between 0.1 and 1, since some are variances
and learning rates. Signed integers are drawn from 0 to 7: most are indices, and few tables have fewer rows. Unsigned
ones are keys of random numbers, and take any value.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from ml_dtypes import bfloat16

from rlflow.errors import InputError
from rlflow.ir.graph import Graph
from rlflow.ir.tensor_type import TensorType

_INDICES = 8


def draw_program_inputs(graph: Graph, seed: int) -> list[np.ndarray]:
    """Draw an array for each input of the graph: same types and seed, same arrays.

    Raises `InputError` for an input that is no tensor of known size, or of complex numbers.
    """
    rng = np.random.default_rng(seed)
    return [_draw(tensor_type, rng) for tensor_type in _input_types(graph)]


def _input_types(graph: Graph) -> Sequence[TensorType]:
    types = [graph.nodes[identifier].types[0] for identifier in graph.inputs]
    for index, tensor_type in enumerate(types):
        if tensor_type is None or not tensor_type.is_static or tensor_type.dtype.startswith("complex"):
            raise InputError(f"no values can be drawn for parameter {index} of the program, of type {tensor_type}")
    return [tensor_type for tensor_type in types if tensor_type is not None]


def _draw(tensor_type: TensorType, rng: np.random.Generator) -> np.ndarray:
    shape = tuple(d for d in tensor_type.shape or () if isinstance(d, int))
    if tensor_type.dtype == "bool":
        return rng.random(shape) < 0.5
    dtype = np.dtype(bfloat16) if tensor_type.dtype == "bfloat16" else np.dtype(tensor_type.dtype)
    if dtype.kind == "u":
        return rng.integers(0, np.iinfo(dtype).max, shape, dtype, endpoint=True)
    if dtype.kind == "i":
        return rng.integers(0, _INDICES, shape).astype(dtype)
    values = 0.5 * rng.standard_normal(shape) if len(shape) > 1 else rng.uniform(0.1, 1.0, shape)
    return np.asarray(values).astype(dtype)
