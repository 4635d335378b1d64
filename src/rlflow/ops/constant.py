"""Constant (ai.onnx 12, of one number): how a rule writes a number that a model stores.

An imported model has none: whatever its constants are called there, they are weights here. Nor has an exported one, as
constant expressions are evaluated on the way out.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rlflow.errors import TypeInferenceError
from rlflow.ir.graph import Attributes
from rlflow.ir.tensor_type import TensorType
from rlflow.ops.domain import Array, Domain, FloatDomain
from rlflow.ops.schema import Operator, Types


def _infer(attributes: Attributes, inputs: Types) -> tuple[TensorType, ...]:
    if not isinstance(attributes["value_float"], float):
        raise TypeInferenceError(f"Constant: {attributes['value_float']!r} is no float")
    return (TensorType("float32", ()),)


def _evaluate(domain: Domain, attributes: Attributes, x: Sequence[Array]) -> tuple[Array, ...]:
    number = attributes["value_float"]
    assert isinstance(number, float)
    return (np.asarray(number, np.float32) if isinstance(domain, FloatDomain) else domain.constant(number),)


OPERATORS = (Operator("Constant", _infer, _evaluate, since=12, arity=(0, 0)),)
