"""Numbers that are written into a graph: Constant (ai.onnx 12), of which the library has the list of floats. Matrices
are made of it by Reshape. A model's own constants are weights; this one is for rules that bring numbers along.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rlflow.errors import TypeInferenceError
from rlflow.ir.graph import Attributes
from rlflow.ir.tensor_type import TensorType
from rlflow.ops.domain import Array, Domain, FloatDomain
from rlflow.ops.schema import Operator, Types


def _numbers(attributes: Attributes) -> tuple[float, ...]:
    numbers = attributes.get("value_floats")
    if not isinstance(numbers, tuple) or not all(isinstance(v, float) for v in numbers):
        raise TypeInferenceError(f"Constant: expected a list of floats, got {sorted(attributes)}")
    return numbers  # type: ignore[return-value]


def _infer_constant(attributes: Attributes, inputs: Types) -> tuple[TensorType, ...]:
    return (TensorType("float32", (len(_numbers(attributes)),)),)


def _constant(domain: Domain, attributes: Attributes, x: Sequence[Array]) -> tuple[Array, ...]:
    numbers = _numbers(attributes)
    if isinstance(domain, FloatDomain):
        return (np.array(numbers, np.float32),)
    distinct = sorted(set(numbers))
    where = np.array([distinct.index(v) for v in numbers], dtype=int)
    return (domain.structural(lambda *v: np.stack(v)[where], *map(domain.constant, distinct)),)


OPERATORS = (Operator("Constant", _infer_constant, _constant, since=12, arity=(0, 0)),)
