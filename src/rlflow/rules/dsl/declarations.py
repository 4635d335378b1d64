"""Declaring rules: a Python function whose parameters are tensors and attributes, and which returns both sides.

    @rule("slice-before-softmax")
    def slice_before_softmax(x: Tensor, rows: AnySlice, axis: Axis) -> Rewrite:
        "Of a softmax, only the rows are computed that are looked at."
        return Rewrite(
            Slice(Softmax(x, axis=axis), **rows),
            Softmax(Slice(x, **rows), axis=axis),
            where=[rows["axes"][0] < axis],
        )

The function is called once, when its module is imported, and everything is checked then: a declared rule is data, as
`Rule.to_json` writes it, and what is wrong with it is told with the file and the line.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FunctionType
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

from rlflow.errors import RuleError
from rlflow.rules import pattern
from rlflow.rules.dsl.domains import Attributes, Domain, Flag, Shape, drawn_for, tensor
from rlflow.rules.dsl.tensors import Operand, Tensor, as_tensor
from rlflow.rules.dsl.values import Condition, Value
from rlflow.rules.expression import Expression, mentioned
from rlflow.rules.rule import Rule, VariableSpec

Case = TypeVar("Case")
Sides = Operand | Sequence[Operand]


class Rewrite:
    """`source` may be replaced by `target`: a tensor by another, or several by as many, all together.

    `where` says when that is true. `profitable_if` says when it is worth trying besides; no certificate speaks of it.
    """

    def __init__(
        self,
        source: Sides,
        target: Sides,
        *,
        where: Sequence[Condition] = (),
        profitable_if: Sequence[Condition] = (),
    ) -> None:
        self.source, self.target = _terms(source), _terms(target)
        self.where, self.profitable_if = _conditions(where), _conditions(profitable_if)


RULES_FOLDER = Path(__file__).parents[1]


@dataclass(frozen=True)
class Place:
    """A line of a file."""

    path: str
    line: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"

    @property
    def recorded(self) -> str:
        """The place as a library records it: of the package's own rules, the same on every machine."""
        path = Path(self.path)
        return f"{path.relative_to(RULES_FOLDER).as_posix() if path.is_relative_to(RULES_FOLDER) else path}:{self.line}"


@dataclass(frozen=True)
class Declaration:
    """A decorated function as rules, in their order, with the place of the function.

    A false control is a rule that is wrong: a mistake about the rule `control_of`, if about one. A verifier must
    refuse it.
    """

    rules: tuple[Rule, ...]
    place: Place
    is_false_control: bool = False
    control_of: str | None = None


@dataclass(frozen=True)
class _Parameters:
    """The meaning of a function's annotations, as a rule writes it; `arguments` are passed to the function."""

    arguments: dict[str, Any] = field(default_factory=dict)
    tensors: dict[str, VariableSpec] = field(default_factory=dict)
    domains: dict[str, Domain] = field(default_factory=dict)


def rule(
    name: str, reverse: str | None = None, *, family: str | None = None, opset: int = 0
) -> Callable[[Callable[..., Rewrite]], Declaration]:
    """Declare one rule, and its reverse if that is given a name.

    The family is by default what the module calls FAMILY, and "user" where it does not. `opset` is the first opset in
    which the rule holds, where that is later than its operators.
    """
    if not isinstance(name, str):
        raise RuleError('a rule needs a name: write @rule("name")')

    def declared(function: Callable[..., Rewrite]) -> Declaration:
        return _declare(function, {name: ()}, {name: reverse}, family, opset)

    return declared


def rules(
    cases: Mapping[str | tuple[str, str], Case], *, family: str | None = None, opset: int = 0
) -> Callable[[Callable[..., Rewrite]], Declaration]:
    """Declare one rule for each case, which is passed as the first argument: `{"relu-of-parts": Relu, ...}`.

    A key is the rule's name, or its name and that of its reverse. A parameter may be idle in some cases, not in all.
    """

    def declared(function: Callable[..., Rewrite]) -> Declaration:
        names = [key if isinstance(key, tuple) else (key, None) for key in cases]
        given = {name: (case,) for (name, _), case in zip(names, cases.values(), strict=True)}
        return _declare(function, given, dict(names), family, opset)

    return declared


def false_control(name: str, *, of: str | None = None) -> Callable[[Callable[..., Rewrite]], Declaration]:
    """Declare a rule that is false: a mistake that is easily made about the rule `of`, if about one.

    It is well typed wherever it is wrong, and a verifier that accepts it is not to be trusted.
    """

    def declared(function: Callable[..., Rewrite]) -> Declaration:
        return _declare(function, {name: ()}, {}, "control", 0, is_false_control=True, control_of=of)

    return declared


def declarations(module: Mapping[str, Any]) -> tuple[Declaration, ...]:
    """All that a module declares, given its namespace, in the order of the file."""
    return tuple(module.get(_DECLARATIONS, ()))


_DECLARATIONS = "__rule_declarations__"


def _declarations(function: Callable[..., Rewrite]) -> list[Declaration]:
    namespace = _plain(function).__globals__
    found: list[Declaration] = namespace.setdefault(_DECLARATIONS, [])
    return found


def _plain(function: Callable[..., Rewrite]) -> FunctionType:
    assert isinstance(function, FunctionType)
    return function


def _declare(
    function: Callable[..., Rewrite],
    cases: Mapping[str, tuple[Any, ...]],
    reverses: Mapping[str, str | None],
    family: str | None,
    opset: int,
    *,
    is_false_control: bool = False,
    control_of: str | None = None,
) -> Declaration:
    code = _plain(function).__code__
    place = Place(code.co_filename, code.co_firstlineno)
    chosen = family or _plain(function).__globals__.get("FAMILY", "user")
    made: list[Rule] = []
    try:
        parameters = _parameters(function, 1 if any(cases.values()) else 0)
        for name, case in cases.items():
            one = _rule(name, chosen, opset, function(*case, **parameters.arguments), parameters, place)
            reverse = reverses.get(name)
            made += [one, one.reversed(reverse)] if reverse else [one]
        _check_names([r.name for r in made], control_of, _declarations(function))
        _check_idle(made, parameters)
    except RuleError as error:
        raise RuleError(f"{_innermost(error, code, place)}: {' or '.join(map(repr, cases))}: {error}") from None
    declaration = Declaration(tuple(made), place, is_false_control, control_of)
    _declarations(function).append(declaration)
    return declaration


def _innermost(error: RuleError, code: CodeType, place: Place) -> Place:
    """The last line of the rule's own file that was running when the error came."""
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == code.co_filename:
            place = Place(code.co_filename, trace.tb_lineno)
        trace = trace.tb_next
    return place


def _parameters(function: Callable[..., Rewrite], skipped: int) -> _Parameters:
    hints = get_type_hints(function, include_extras=True)
    found = _Parameters()
    for name in list(inspect.signature(function).parameters)[skipped:]:
        if name not in hints:
            raise RuleError(f"the parameter {name!r} has no annotation: write {name}: Tensor, or another type")
        kind, notes = _annotation(hints[name])
        if kind is Tensor:
            found.tensors[name] = _spec(notes)
            found.arguments[name] = tensor(name)
        elif kind is Value:
            found.arguments[name] = _attribute(name, _only_note(name, notes, "a domain such as AxisOf"), found)
        elif kind is Attributes:
            together = _only_note(name, notes, "Together(...)")
            members = {key: _attribute(symbol, domain, found) for key, (symbol, domain) in together.members.items()}
            found.arguments[name] = Attributes(members)
        else:
            raise RuleError(f"the parameter {name!r} is no Tensor, Attribute or Attributes but {kind}")
    return found


def _annotation(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    if get_origin(hint) is Annotated:
        kind, *notes = get_args(hint)
        return kind, tuple(notes)
    return hint, ()


def _only_note(name: str, notes: tuple[Any, ...], expected: str) -> Any:
    if len(notes) != 1:
        raise RuleError(f"the parameter {name!r} needs one note: Annotated[..., {expected}]")
    return notes[0]


def _spec(notes: Sequence[object]) -> VariableSpec:
    shape, flags = None, {}
    for note in notes:
        if isinstance(note, Shape):
            shape = note.parts()
        elif isinstance(note, Flag):
            flags[note.name] = True
        else:
            raise RuleError(f"{note!r} says nothing of a tensor: use Shape, CONSTANT or LITERAL")
    return VariableSpec(shape, **flags)


def _attribute(symbol: str, domain: Domain, found: _Parameters) -> Value:
    found.domains[f"?{symbol}"] = domain
    return Value(f"?{symbol}", domain.kind)


def _rule(name: str, family: str, opset: int, rewrite: object, parameters: _Parameters, place: Place) -> Rule:
    if not isinstance(rewrite, Rewrite):
        raise RuleError(f"the function returned {rewrite!r}: return Rewrite(source, target)")
    tensors = pattern.variables(*rewrite.source)
    bound = {*tensors, *pattern.attribute_variables(*rewrite.source)}
    domains = {symbol: domain for symbol, domain in parameters.domains.items() if symbol in bound}
    _check_bound(rewrite, domains, bound)
    if rewrite.source == rewrite.target:
        raise RuleError("both sides are the same: the rule would change nothing")
    return Rule(
        name=name,
        family=family,
        source=rewrite.source,
        target=rewrite.target,
        variables={n: spec for n, spec in parameters.tensors.items() if n in bound and spec != VariableSpec()},
        attributes={symbol: domain.to_json() for symbol, domain in domains.items()},
        where=rewrite.where,
        profitable_if=rewrite.profitable_if,
        opset=opset,
        declared_at=place.recorded,
    )


def _terms(sides: Sides) -> tuple[pattern.Term, ...]:
    several = sides if isinstance(sides, Sequence) else [sides]
    return tuple(as_tensor(side).term for side in several)


def _conditions(conditions: Sequence[Condition]) -> tuple[Expression, ...]:
    if isinstance(conditions, Condition):
        raise RuleError("conditions are given as a list, also where there is but one")
    for condition in conditions:
        if not isinstance(condition, Condition):
            raise RuleError(f"{condition!r} is no condition on tensors and attributes of the rule")
    return tuple(condition.json for condition in conditions)


def _check_bound(rewrite: Rewrite, domains: Mapping[str, Domain], bound: set[str]) -> None:
    """Whatever the rule computes with, its source must give."""
    expressions: list[Expression] = [*rewrite.where, *rewrite.profitable_if]
    for term in (t for side in (*rewrite.source, *rewrite.target) for t in pattern.subterms(side)):
        if isinstance(term, pattern.Apply):
            expressions += [pattern.thaw(value) for _, value in term.attributes]
        else:
            expressions.append(["shape", term.name])
    expressions += [["shape", name] for domain in domains.values() for name in drawn_for(domain)]
    expressions += [domain.to_json()[1:] for domain in domains.values()]
    for name in sorted({name for expression in expressions for name in mentioned(expression)} - bound):
        what = f"the attribute {name.removeprefix('?')!r}" if name.startswith("?") else f"the tensor {name!r}"
        raise RuleError(f"{what} is not bound: it must occur in the source as such")


def _check_names(names: Sequence[str], control_of: str | None, before: Sequence[Declaration]) -> None:
    taken = {rule.name: declaration for declaration in before for rule in declaration.rules}
    for name in names:
        if name in taken:
            raise RuleError(f"the name {name!r} is taken by {taken[name].place}")
    if control_of is not None and control_of not in taken:
        raise RuleError(f"this file declares no rule {control_of!r} above its false control")


def _check_idle(made: Sequence[Rule], parameters: _Parameters) -> None:
    used = {name for rule in made for name in pattern.variables(*rule.source)}
    for name in parameters.tensors:
        if name not in used:
            raise RuleError(f"the parameter {name!r} is idle: no source has it")
    symbols = {symbol for rule in made for symbol in rule.attributes}
    for name, value in parameters.arguments.items():
        if isinstance(value, Value) and value.json not in symbols:
            raise RuleError(f"the parameter {name!r} is idle: no source has it as an attribute")
