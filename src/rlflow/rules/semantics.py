"""The meaning that a rule was verified under, as digests of the code that gives it.

A rule that says `Softmax` is true of what Softmax computes today. A certificate therefore names what the rule's
verification rests on, each with a digest (`rules/definitions.py`):

    {"verifier": "5f0c...", "expressions": "91ab...", "MatMul": "77e0...", "Softmax": "c2d4..."}

`verifier` is the procedure of `rules/verification/verify.py` with all that it uses: the notation of rules, plans, and
the numbers that operators compute with. `expressions` are the functions that the rule's conditions and computed
attributes call. An operator is its `infer` and `evaluate`, its arity and its defaults; how it is read, written and
priced is no part of its meaning.

The invariant: a change of meaning voids the certificates of the rules that use what has changed, and of no others. A
new operator, a new function for conditions or a change in another family of operators voids none.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from types import CellType, FunctionType
from typing import TYPE_CHECKING, Any

from rlflow.errors import RuleError
from rlflow.ops.registry import OPERATORS
from rlflow.ops.schema import Evaluate, Infer, Operator
from rlflow.rules import definitions, pattern
from rlflow.rules.definitions import Name, closure, digest, is_followed
from rlflow.rules.expression import FUNCTIONS, VARIABLE_FUNCTIONS

if TYPE_CHECKING:
    from rlflow.rules.rule import Rule

_VERIFIER = (
    Name("rlflow.rules.verification.verify", "verify"),
    Name("rlflow.rules.pattern", "parse"),
    Name("rlflow.rules.rule", "VariableSpec"),
    Name("rlflow.rules.rule", "Rule.spec"),
    Name("rlflow.rules.rule", "Rule.indices"),
    Name("rlflow.rules.rule", "Rule.quantised"),
)
FOLLOWED = (
    "rlflow.ir.dimension",
    "rlflow.ir.tensor_type",
    "rlflow.ops",
    "rlflow.rules.expression",
    "rlflow.rules.pattern",
    "rlflow.rules.plan",
    "rlflow.rules.verification",
)
"""Not the exporter and ONNX Runtime: they are the judge of the float check, not the meaning that is judged."""

_TABLES = (
    Name("rlflow.ops.registry", "OPERATORS"),
    Name("rlflow.rules.expression", "FUNCTIONS"),
    Name("rlflow.rules.expression", "VARIABLE_FUNCTIONS"),
)
_LIBRARIES = ("numpy", "scipy")
"""Their functions mean what their names say."""

_DIGITS = 12


def semantics(rule: Rule) -> dict[str, str]:
    """The digests of all that the rule's certificate depends on, as they are today."""
    nodes = pattern.operators(*rule.source, *rule.target)
    written = [*(value for node in nodes for _, value in node.attributes), *rule.where, *rule.attributes.values()]
    functions = sorted(set(_functions_in(written)))
    return {
        "verifier": _verifier(),
        **({"expressions": _expressions(functions)} if functions else {}),
        **{name: _operator(OPERATORS[name])[:_DIGITS] for name in sorted({node.op for node in nodes})},
    }


@cache
def _verifier() -> str:
    return digest(sorted(closure(_VERIFIER, FOLLOWED, _TABLES)))[:_DIGITS]


def _operator(operator: Operator) -> str:
    parameters = repr((operator.arity, sorted(operator.defaults.items())))
    return _meaning(operator.infer, operator.evaluate, parameters)


@cache
def _meaning(infer: Infer, evaluate: Evaluate, parameters: str) -> str:
    return digest([_function(infer), _function(evaluate), parameters])


def _expressions(names: Sequence[str]) -> str:
    functions = [FUNCTIONS.get(name) or VARIABLE_FUNCTIONS[name] for name in names]
    return digest([*names, *map(_function, functions)])[:_DIGITS]


def _functions_in(expression: Any) -> Iterator[str]:
    """The functions that an expression calls, at any depth."""
    if isinstance(expression, list | tuple):
        head = expression[0] if expression else None
        if isinstance(head, str) and (head in FUNCTIONS or head in VARIABLE_FUNCTIONS):
            yield head
        for part in expression:
            yield from _functions_in(part)


@cache
def _function(function: Callable[..., Any]) -> str:
    """The digest of a function object: its definition, all that this uses, and the values that it has captured."""
    if isinstance(function, partial):
        return digest([_function(function.func), _value((*function.args, *sorted(function.keywords.items())))])
    function = inspect.unwrap(function)
    if not inspect.isfunction(function) or function.__module__.partition(".")[0] in _LIBRARIES:
        return f"{type(function).__name__} {function.__name__}"
    found = definitions.module(function.__module__).of_code(function.__code__)
    if not found:
        raise RuleError(f"the text of {function.__qualname__} is not where {function.__module__} says")
    captured = [(name, cell.cell_contents) for name, cell in _cells(function)]
    used = {name for definition in found for name in definition.uses}
    own = {name for name in used if name.module == function.__module__ or is_followed(name.module, FOLLOWED)}
    return digest(
        [
            *(definition.digest for definition in found),
            _value((*captured, *(function.__defaults__ or ()))),
            *sorted(closure(own, FOLLOWED, _TABLES)),
        ]
    )


def _cells(function: FunctionType) -> Iterator[tuple[str, CellType]]:
    return zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)


def _value(value: object) -> str:
    """The digest of a captured value; `RuleError` where it cannot be told what it means."""
    if isinstance(value, tuple | list):
        return digest(map(_value, value))
    if isinstance(value, set | frozenset):
        return digest(sorted(map(_value, value)))
    if isinstance(value, dict):
        return _value(set(value.items()))
    if value is None or isinstance(value, str | bytes | int | float):
        return repr(value)
    if isinstance(value, Operator):
        return _operator(value)
    if callable(value) and not isinstance(value, type):
        return _function(value)
    raise RuleError(f"a function of an operator has captured {value!r}: it cannot be told what that means")
