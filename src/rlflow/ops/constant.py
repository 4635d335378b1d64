"""Constant (ai.onnx 12, of one number or a list of them): numbers that a rule names or brings along.

An imported model has none: whatever its constants are called there, they are weights here. Nor has an exported one, as
constant expressions are evaluated on the way out. Matrices are made of lists by Reshape.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rlflow.errors import TypeInferenceError
from rlflow.ir.node import Attributes
from rlflow.ir.tensor_type import TensorType
from rlflow.ops.domain import Array, Domain, FloatDomain
from rlflow.ops.schema import Operator, Types
from rlflow.ops.traits import Traits


def _numbers(attributes: Attributes) -> float | tuple[float, ...]:
    match dict(attributes):
        case {"value_float": float(number)}:
            return number
        case {"value_floats": tuple(numbers)} if all(isinstance(number, float) for number in numbers):
            return numbers  # type: ignore[return-value]
    raise TypeInferenceError(f"Constant: {dict(attributes)} is neither a float nor a list of floats")


def _infer(attributes: Attributes, inputs: Types) -> tuple[TensorType, ...]:
    return (TensorType("float32", np.shape(_numbers(attributes))),)


def _evaluate(domain: Domain, attributes: Attributes, x: Sequence[Array]) -> tuple[Array, ...]:
    numbers = np.asarray(_numbers(attributes), np.float32)
    if isinstance(domain, FloatDomain):
        return (numbers,)
    if not numbers.shape:
        return (domain.constant(float(_numbers(attributes))),)  # type: ignore[arg-type]
    distinct, where = np.unique(_numbers(attributes), return_inverse=True)
    each = [domain.constant(float(number)) for number in distinct]
    return (domain.structural(lambda *v: np.stack(v)[where.reshape(numbers.shape)], *each),)


OPERATORS = (Operator("Constant", _infer, _evaluate, since=12, arity=(0, 0), traits=Traits()),)
