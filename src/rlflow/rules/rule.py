"""A substitution rule: source and target terms, what the variables may be, and under which condition it
holds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from typing import Any

from rlflow.errors import RuleError
from rlflow.ops import registry
from rlflow.ops.algebra import COUNTING, ELEMENT_TYPES, QUANTISED, Algebra
from rlflow.rules import pattern
from rlflow.rules.certificate import Certificate
from rlflow.rules.expression import Expression, describe
from rlflow.rules.pattern import Apply, Term, Variable


@dataclass(frozen=True)
class VariableSpec:
    """The tensors that a variable may be bound to.

    `shape` is a template: numbers, symbols that must agree wherever they occur, and at most one "...name" in front
    that stands for any number of leading dimensions; None is any shape. `constant` demands a value that is known
    when the model is loaded: then work moved to it is done once. `literal` demands a stored scalar, whose number the
    rule may use in an attribute as ["value", name]. What a Gather selects by holds whole numbers (`Rule.indices`).
    """

    shape: tuple[int | str, ...] | None = None
    constant: bool = False
    literal: bool = False

    def to_json(self) -> dict[str, Any]:
        written: dict[str, Any] = {} if self.shape is None else {"shape": list(self.shape)}
        return written | {flag: True for flag in ("constant", "literal") if getattr(self, flag)}


DECLARED = "declared"


@dataclass(frozen=True)
class Rule:
    """`source[i]` may be replaced by `target[i]`, all outputs together.

    `attributes` says what each attribute variable may be, for drawing instances (rules/verification/sampler.py).
    `where` is what makes it true; `profitable_if`, of which no certificate speaks, where it is worth trying besides:
    its key in the JSON notation, from which ids are made, is "worth".
    `opset` is the first opset in which the rule holds, where that is later than its operators. `declared_at` names the
    file and the line of a declaration, which neither the id nor the certificate covers; it is empty for a rule that
    enumeration found.
    """

    name: str
    family: str
    source: tuple[Term, ...]
    target: tuple[Term, ...]
    variables: Mapping[str, VariableSpec] = field(default_factory=dict)
    attributes: Mapping[str, Any] = field(default_factory=dict)
    where: tuple[Expression, ...] = ()
    profitable_if: tuple[Expression, ...] = ()
    opset: int = 0
    origin: str = DECLARED
    certificate: Certificate | None = None
    declared_at: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if len(self.source) != len(self.target) or not self.source:
            raise RuleError(f"rule {self.name!r}: {len(self.source)} source and {len(self.target)} target outputs")
        if not all(isinstance(s, Apply) for s in self.source):
            raise RuleError(f"rule {self.name!r}: a source that is a bare variable would match everything")
        unbound = set(pattern.variables(*self.target)) - set(pattern.variables(*self.source))
        if unbound:
            raise RuleError(f"rule {self.name!r}: the target uses {sorted(unbound)}, which the source does not bind")

    @cached_property
    def id(self) -> str:
        """Stable: the family and 12 hexadecimal digits of the canonical form, whatever the variables are
        called.
        """
        digest = sha256(json.dumps(canonical(self), sort_keys=True).encode()).hexdigest()
        return f"{self.family}-{digest[:12]}"

    @cached_property
    def versions(self) -> Mapping[str, int]:
        """The first version of each domain ("" is ai.onnx) in which the target can be written: `opset`, and those of
        its operators. Where a model does not import one of them, the rule does not fire.
        """
        needed = registry.versions(node.op for node in pattern.operators(*self.target))
        return needed | {"": max(self.opset, needed.get("", 0))}

    @cached_property
    def indices(self) -> frozenset[str]:
        """The variables that count elements: those by which a Gather of the source selects."""
        terms = (t for side in self.source for t in pattern.subterms(side) if isinstance(t, Apply))
        indices = [t.arguments[1] for t in terms if registry.OPERATORS[t.op].traits.selects]
        return frozenset(index.name for index in indices if isinstance(index, Variable))

    @cached_property
    def quantised(self) -> frozenset[str]:
        """The variables that hold quantised numbers: those of which the source makes floats, moved or not."""
        terms = (t for side in self.source for t in pattern.subterms(side) if isinstance(t, Apply))
        read = (a for t in terms if registry.OPERATORS[t.op].traits.dequantises for a in t.arguments)
        return frozenset(name for argument in read for name in _moved(argument)) - self.indices

    @cached_property
    def element_types(self) -> frozenset[str]:
        """The element types of which the certificate speaks, of all variables but those that count elements."""
        return frozenset().union(*map(self.elements_of, {*pattern.variables(*self.source)} - self.indices))

    def elements_of(self, variable: str) -> frozenset[str]:
        """The element types that a variable may have: those of the operator that asks most of its elements, unless it
        counts elements or holds quantised numbers.
        """
        if variable in self.indices:
            return COUNTING
        return frozenset(QUANTISED) if variable in self.quantised else self._computed

    @cached_property
    def _computed(self) -> frozenset[str]:
        nodes = pattern.operators(*self.source, *self.target)
        return ELEMENT_TYPES[max(registry.OPERATORS[node.op].algebra for node in nodes)]

    @property
    def assumes(self) -> tuple[str, ...]:
        """The assumptions about a model's values that the certificate records; none where there is no certificate."""
        return self.certificate.assumes if self.certificate else ()

    @property
    def is_declared(self) -> bool:
        """Somebody wrote the rule down; the others were found by enumeration, as `origin` tells."""
        return self.origin == DECLARED

    def spec(self, variable: str) -> VariableSpec:
        return self.variables.get(variable, _ANY)

    def reversed(self, name: str) -> Rule:
        return replace(self, name=name, source=self.target, target=self.source, certificate=None)

    def equation(self) -> str:
        """Both sides and the condition in one line."""
        sides = ["; ".join(map(pattern.show, side)) for side in (self.source, self.target)]
        condition, profit = (" and ".join(map(describe, c)) for c in (self.where, self.profitable_if))
        parts = (" => ".join(sides), f"if {condition}" if condition else "", f"tried if {profit}" if profit else "")
        return "  ".join(filter(None, parts))

    def record(self) -> dict[str, Any]:
        """The rule as a library holds it: what its certificate covers, and where it is declared."""
        return self.to_json() | ({"declared_at": self.declared_at} if self.declared_at else {})

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "name": self.name,
            "family": self.family,
            "variables": {k: v.to_json() for k, v in self.variables.items()},
            "attributes": dict(self.attributes),
            "source": [pattern.to_json(t) for t in self.source],
            "target": [pattern.to_json(t) for t in self.target],
            "where": list(self.where),
            **({"worth": list(self.profitable_if)} if self.profitable_if else {}),
            "opset": self.opset,
            "origin": self.origin,
            "certificate": self.certificate.to_json() if self.certificate else None,
        }


def _moved(term: Term) -> Iterator[str]:
    """The variables whose elements are those of the term, where they are but moved."""
    if isinstance(term, Variable):
        yield term.name
    elif registry.OPERATORS[term.op].algebra is Algebra.NOTHING:
        for argument in term.arguments:
            yield from _moved(argument)


_ANY = VariableSpec()


def rule_from_json(
    name: str,
    family: str,
    source: list[Any],
    target: list[Any],
    variables: Mapping[str, Mapping[str, Any]] | None = None,
    **rest: Any,
) -> Rule:
    """A rule from its JSON notation; `source` and `target` are lists of terms, one for each output."""
    specs = {
        k: VariableSpec(
            shape=tuple(v["shape"]) if v.get("shape") is not None else None,
            constant=bool(v.get("constant")),
            literal=bool(v.get("literal")),
        )
        for k, v in (variables or {}).items()
    }
    rest |= {name: tuple(rest[name]) for name in ("where", "profitable_if") if name in rest}
    return Rule(
        name=name,
        family=family,
        source=tuple(pattern.parse(t) for t in source),
        target=tuple(pattern.parse(t) for t in target),
        variables=specs,
        **rest,
    )


def canonical(rule: Rule) -> dict[str, Any]:
    """The rule with variables and dimensions renamed in the order of their occurrence: equal for rules that say
    the same.
    """
    names = pattern.variables(*rule.source)
    tensors = {name: f"v{i}" for i, name in enumerate(names)}
    rename = {**tensors, **{name: f"?a{i}" for i, name in enumerate(pattern.attribute_variables(*rule.source))}}
    parts = dict.fromkeys(d for name in names for d in rule.spec(name).shape or () if isinstance(d, str))
    symbols = {d: ("..." if d.startswith("...") else "") + f"d{i}" for i, d in enumerate(parts)}
    specs = {tensors[name]: rule.spec(name).to_json() for name in names if name in rule.variables}
    return {
        "source": [_renamed(pattern.to_json(t), rename) for t in rule.source],
        "target": [_renamed(pattern.to_json(t), rename) for t in rule.target],
        "variables": {name: _renamed(spec, symbols) for name, spec in specs.items()},
        "where": _sorted(rule.where, rename),
        **({"worth": _sorted(rule.profitable_if, rename)} if rule.profitable_if else {}),
        "opset": rule.opset,
    }


def _sorted(conditions: Sequence[Expression], rename: Mapping[str, str]) -> list[Expression]:
    return sorted((_renamed(c, rename) for c in conditions), key=json.dumps)


def with_short_names(rule: Rule) -> Rule:
    """Variables called a, b, c and dimensions called by their variable, named by the equation."""
    names = pattern.variables(*rule.source)
    short = {name: chr(ord("a") + i) for i, name in enumerate(names)}
    rename = short | {a: f"?p{i}" for i, a in enumerate(pattern.attribute_variables(*rule.source))}
    symbols: dict[str, str] = {}
    for name in names:
        for axis, d in enumerate(rule.spec(name).shape or ()):
            if isinstance(d, str):
                symbols.setdefault(d, f"...{short[name]}" if d.startswith("...") else f"{short[name]}{axis}")
    written = _renamed(rule.to_json(), rename)
    renamed = rule_from_json(
        rule.name,
        rule.family,
        written["source"],
        written["target"],
        {short[name]: _renamed(spec.to_json(), symbols) for name, spec in rule.variables.items()},
        attributes={rename[name]: kind for name, kind in written["attributes"].items()},
        where=written["where"],
        profitable_if=written.get("worth", ()),
        opset=rule.opset,
        origin=rule.origin,
    )
    return replace(renamed, name=renamed.equation())


def _renamed(value: Any, rename: Mapping[str, str]) -> Any:
    if isinstance(value, list):
        return [_renamed(v, rename) for v in value]
    if isinstance(value, dict):
        return {k: _renamed(v, rename) for k, v in value.items()}
    return rename.get(value, value) if isinstance(value, str) else value
