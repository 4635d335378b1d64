"""The closed language of a rule's conditions and of the attributes that it computes: data, never code.

An expression is a number, a text, a list of integers, an attribute variable ("?perm"), or a call written as a
list whose head names one of `FUNCTIONS`: ["==", ["dim", "w", -1], 1].
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from rlflow.errors import RuleError
from rlflow.ir.node import AttributeValue
from rlflow.ir.tensor_type import TensorType

Expression = Any
"""JSON: int, float, str, or list."""


TO_THE_END = 2**31 - 1
"""The end of a slice that has no other."""

BOUND = 1e4
"""The largest absolute value of a tensor that is bounded: no mask hides by less."""


class Unproven(Exception):
    """The expression needs a number that the types do not give, or a dimension that does not exist."""


@dataclass(frozen=True)
class Scope:
    """All that an expression may speak of: types of the bound variables, bound attributes, values of literals, and the
    variables that are `bounded`: known to be no larger than `BOUND`.
    """

    types: Mapping[str, TensorType]
    attributes: Mapping[str, AttributeValue]
    literals: Mapping[str, float] = field(default_factory=dict)
    bounded: Container[str] = ()


def evaluate(expression: Expression, scope: Scope) -> Any:
    """The value; `Unproven` where a symbolic dimension would have to be a number."""
    if isinstance(expression, str) and expression.startswith("?"):
        return scope.attributes[expression]
    if not isinstance(expression, list):
        return expression
    if not expression or not isinstance(expression[0], str):
        return tuple(evaluate(e, scope) for e in expression)
    head, *arguments = expression
    if head == "value":
        return scope.literals[arguments[0]]
    if head == "bounded":
        return arguments[0] in scope.bounded
    if head in VARIABLE_FUNCTIONS:
        return VARIABLE_FUNCTIONS[head](scope.types[arguments[0]], *(evaluate(a, scope) for a in arguments[1:]))
    if head not in FUNCTIONS:
        raise RuleError(f"unknown function {head!r} in the expression {expression}: use one of {sorted(FUNCTIONS)}")
    return FUNCTIONS[head](*(evaluate(a, scope) for a in arguments))


def holds(condition: Expression, scope: Scope) -> bool:
    """Tell whether the condition is proved; what cannot be proved does not hold."""
    try:
        return bool(evaluate(condition, scope))
    except Unproven:
        return False


def mentioned(expression: Expression) -> frozenset[str]:
    """The variables that an expression speaks of: tensors by their names, attributes as "?perm"."""
    if isinstance(expression, str):
        return frozenset([expression]) if expression.startswith("?") else frozenset()
    if not isinstance(expression, list) or not expression:
        return frozenset()
    of_variable = isinstance(expression[0], str) and expression[0] in {"value", "bounded", *VARIABLE_FUNCTIONS}
    tensors = {expression[1]} if of_variable else set()
    return frozenset(tensors).union(*map(mentioned, expression))


_SHOWN = 16
"""Of longer lists - matrices, row by row - only the length is told."""


def bounded_in(conditions: Sequence[Expression]) -> frozenset[str]:
    """The variables that conditions want to be bounded, at any depth."""
    lists = [condition for condition in conditions if isinstance(condition, list) and condition]
    return frozenset(c[1] for c in lists if c[0] == "bounded").union(*(bounded_in(c) for c in lists))


def describe(expression: Expression) -> str:
    """The expression as mathematics for people."""
    if not isinstance(expression, list):
        return str(expression).removeprefix("?")
    if not expression or not isinstance(expression[0], str):
        if len(expression) > _SHOWN:
            return f"[{len(expression)} numbers]"
        return "[" + ", ".join(map(describe, expression)) + "]"
    head, *arguments = expression
    inner = [describe(a) for a in arguments]
    if head in ("*", "/"):
        inner = [
            f"({text})" if isinstance(a, list) and a[0] == "+" else text
            for a, text in zip(arguments, inner, strict=True)
        ]
    if head in ("==", "!=", "<", "<=", "+", "*", "/", "and", "or"):
        return f" {head} ".join(inner)
    return f"{head}({', '.join(inner)})"


def _number(value: Any) -> int:
    if not isinstance(value, int):
        raise Unproven
    return value


def _dim(tensor_type: TensorType, index: int) -> Any:
    if tensor_type.shape is None or not -len(tensor_type.shape) <= index < len(tensor_type.shape):
        raise Unproven
    if tensor_type.shape[index] is None:
        raise Unproven
    return tensor_type.shape[index]


def _shape(tensor_type: TensorType) -> tuple[Any, ...]:
    if tensor_type.shape is None:
        raise Unproven
    return tuple(tensor_type.shape)


def _compose(first: tuple[int, ...], second: tuple[int, ...]) -> tuple[int, ...]:
    """The permutation of transposing by `first` and then by `second`."""
    if len(first) != len(second):
        raise Unproven
    return tuple(first[i] for i in second)


def _quotient(a: Any, b: Any) -> int:
    """The quotient of numbers that divide without rest."""
    if _number(b) == 0 or _number(a) % b:
        raise Unproven
    return int(a // b)


def _reads_some(size: Any, begin: int, end: int, step: int) -> bool:
    """Tell whether a slice has elements wherever the axis has: from the front on, if its size is but a name."""
    if isinstance(size, int):
        return size == 0 or len(range(size)[begin:end:step]) > 0
    return begin == 0 and end > 0 and step > 0


def _keeps_order(shape: tuple[Any, ...], perm: tuple[int, ...]) -> bool:
    """Tell whether the permutation moves only axes of length one past each other."""
    longer = [axis for axis in perm if axis >= len(shape) or shape[axis] != 1]
    return longer == sorted(longer)


def _inverse(perm: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(perm.index(i) for i in range(len(perm)))


VARIABLE_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "dim": _dim,
    "shape": _shape,
    "rank": lambda tensor_type: len(_shape(tensor_type)),
    "elements": lambda tensor_type, first=0: prod(_number(d) for d in _shape(tensor_type)[first:]),
    "float": lambda tensor_type: tensor_type.is_float,
    "unsigned": lambda tensor_type: tensor_type.dtype.startswith("uint"),
}

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: _number(a) < _number(b),
    "<=": lambda a, b: _number(a) <= _number(b),
    "and": lambda *a: all(a),
    "or": lambda *a: any(a),
    "not": lambda a: not a,
    "in": lambda a, b: a in b,
    "+": lambda *a: sum(map(_number, a)),
    "*": lambda *a: prod(map(_number, a)),
    "/": _quotient,
    "list": lambda *a: tuple(_number(x) for x in a),
    "join": lambda *a: tuple(x for part in a for x in part),
    "length": len,
    "get": lambda a, i: a[i] if -len(a) <= i < len(a) else None,
    "reads_some": _reads_some,
    "static": lambda a: all(isinstance(d, int) for d in a),
    "compose": _compose,
    "inverse": _inverse,
    "keeps_order": _keeps_order,
    "is_identity": lambda perm: tuple(perm) == tuple(range(len(perm))),
    "last_two_swapped": lambda rank: (*range(_number(rank) - 2), rank - 1, rank - 2),
    "swaps_last_two": lambda perm: tuple(perm) == (*range(len(perm) - 2), len(perm) - 1, len(perm) - 2),
}
