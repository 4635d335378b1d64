"""The two sides of a rule as terms over tensor variables, and their notation in JSON.

"x"                                        a variable
["Add", "x", "y"]                          an operator applied
["Transpose", {"perm": "?p"}, "x"]         with attributes: a literal, a variable, or an expression
["@", 1, ["Split", {...}, "x"]]            output number 1 of an operator with several
["Constant", {"value_float": 0.5}]         a number: in a source, any part without variables is a scalar of its value
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rlflow.errors import RuleError
from rlflow.ops.registry import OPERATORS
from rlflow.rules.expression import Expression, describe


@dataclass(frozen=True)
class Variable:
    name: str


@dataclass(frozen=True)
class Apply:
    """Attributes are (name, JSON expression as text-hashable tuple) pairs in the order of their names."""

    op: str
    attributes: tuple[tuple[str, Any], ...]
    arguments: tuple[Term, ...]
    output: int = 0

    @property
    def node(self) -> Apply:
        """The application itself, whichever output the term stands for."""
        return self if self.output == 0 else Apply(self.op, self.attributes, self.arguments)


Term = Variable | Apply


def parse(json: Any) -> Term:
    """`RuleError` naming the faulty part."""
    if isinstance(json, str):
        return Variable(json)
    if not isinstance(json, list) or not json or not isinstance(json[0], str):
        raise RuleError(f"{json!r} is no term: expected a variable or [operator, arguments...]")
    if json[0] == "@":
        inner = parse(json[2])
        if not isinstance(inner, Apply):
            raise RuleError(f"{json!r}: only an operator has outputs")
        return Apply(inner.op, inner.attributes, inner.arguments, int(json[1]))
    op, *rest = json
    if op not in OPERATORS:
        raise RuleError(f"{json!r}: the library does not know the operator {op!r}")
    attributes = rest.pop(0) if rest and isinstance(rest[0], dict) else {}
    written = {**OPERATORS[op].defaults, **attributes}
    return Apply(op, tuple(sorted((k, freeze(v)) for k, v in written.items())), tuple(parse(a) for a in rest))


def to_json(term: Term) -> Any:
    if isinstance(term, Variable):
        return term.name
    defaults = OPERATORS[term.op].defaults
    attributes = {k: thaw(v) for k, v in term.attributes if k not in defaults or freeze(defaults[k]) != v}
    json = [term.op, *([attributes] if attributes else []), *map(to_json, term.arguments)]
    return ["@", term.output, json] if term.output or OPERATORS[term.op].name == "Split" else json


def freeze(value: Any) -> Any:
    return tuple(freeze(v) for v in value) if isinstance(value, list | tuple) else value


def thaw(value: Any) -> Expression:
    return [thaw(v) for v in value] if isinstance(value, tuple) else value


def is_computed(value: Any) -> bool:
    """Tell whether a frozen expression is an attribute variable, or has a call or one of these in it."""
    if isinstance(value, tuple):
        return any(isinstance(value[0], str) or is_computed(part) for part in value)
    return isinstance(value, str) and value.startswith("?")


def subterms(term: Term) -> Iterator[Term]:
    """The term and all its parts, operands first, each as often as it occurs."""
    if isinstance(term, Apply):
        for argument in term.arguments:
            yield from subterms(argument)
    yield term


def rebuilt(term: Term, change: Callable[[Term], Term]) -> Term:
    """The term with `change` made to each part, operands first and from left to right."""
    if isinstance(term, Variable):
        return change(term)
    arguments = tuple(rebuilt(a, change) for a in term.arguments)
    return change(Apply(term.op, term.attributes, arguments, term.output))


def substitute(term: Term, bindings: Mapping[str, Term]) -> Term:
    """Terms in place of variables."""
    return rebuilt(term, lambda part: bindings.get(part.name, part) if isinstance(part, Variable) else part)


def variables(*terms: Term) -> tuple[str, ...]:
    """Names in the order of their first occurrence."""
    return tuple(dict.fromkeys(t.name for term in terms for t in subterms(term) if isinstance(t, Variable)))


def attribute_variables(*terms: Term) -> tuple[str, ...]:
    """Attribute variables ("?perm") in the order of their first occurrence."""
    attributes = (v for term in terms for t in subterms(term) if isinstance(t, Apply) for _, v in t.attributes)
    return tuple(dict.fromkeys(v for v in attributes if isinstance(v, str) and v.startswith("?")))


def operators(*terms: Term) -> frozenset[Apply]:
    """The distinct applications: what the terms would be as a graph with common subexpressions shared."""
    return frozenset(t.node for term in terms for t in subterms(term) if isinstance(t, Apply))


def show(term: Term) -> str:
    """The term in one line, as in MatMul(Transpose[perm=p](x), w); a Constant is its number."""
    if isinstance(term, Variable):
        return term.name
    if term.op == "Constant":
        ((_, value),) = term.attributes
        return describe(thaw(value))
    defaults = OPERATORS[term.op].defaults
    shown = [f"{k}={describe(thaw(v))}" for k, v in term.attributes if k not in defaults or freeze(defaults[k]) != v]
    inside = ", ".join(show(a) for a in term.arguments)
    suffix = f".{term.output}" if term.output else ""
    return f"{term.op}{'[' + ', '.join(shown) + ']' if shown else ''}({inside}){suffix}"
