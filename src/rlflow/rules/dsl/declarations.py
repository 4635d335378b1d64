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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from rlflow.errors import RuleError
from rlflow.rules import pattern
from rlflow.rules.dsl.domains import Domain, drawn_for
from rlflow.rules.dsl.parameters import Case, Parameters, read_parameters
from rlflow.rules.dsl.tensors import Operand, as_tensor
from rlflow.rules.dsl.values import Condition, Value
from rlflow.rules.expression import Expression, mentioned
from rlflow.rules.rule import Rule, VariableSpec

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
    refuse it. Of a law, these are the rules for one member of what it is declared over, the one at this place.
    """

    rules: tuple[Rule, ...]
    place: Place
    is_false_control: bool = False
    control_of: str | None = None
    member: int | None = None


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
        return _declare(function, {name: Case()}, {name: reverse}, family, opset)

    return declared


def rules(
    cases: Mapping[str | tuple[str, str], Any], *, family: str | None = None, opset: int = 0
) -> Callable[[Callable[..., Rewrite]], Declaration]:
    """Declare one rule for each case, which is passed as the first argument: `{"relu-of-parts": Relu, ...}`.

    A case that is a mapping gives arguments by name, `{"sum-of-rows": {"op": ReduceSum, "axes": OneAxis}}`, where a
    type takes the place of the parameter's annotation. A key is the rule's name, or its name and that of its reverse.
    A parameter may be idle in some cases, not in all.
    """

    def declared(function: Callable[..., Rewrite]) -> Declaration:
        names = [key if isinstance(key, tuple) else (key, None) for key in cases]
        given = {name: Case.of(case) for (name, _), case in zip(names, cases.values(), strict=True)}
        return _declare(function, given, dict(names), family, opset)

    return declared


def law(*names: str, over: Sequence[Mapping[str, Any]]) -> Callable[[Callable[..., Rewrite]], tuple[Declaration, ...]]:
    """Declare one rule for each member of a registry, by its own name: `@law("slice-...", "gather-...", over=READERS)`.

    A member gives arguments by name, as a case of `rules` does.
    """
    return laws({names: {}}, over=over)


def laws(
    cases: Mapping[tuple[str, ...], Any], *, over: Sequence[Mapping[str, Any]]
) -> Callable[[Callable[..., Rewrite]], tuple[Declaration, ...]]:
    """Declare one rule for each case and each member of a registry; a key names the rules of one case, by member.

    Where laws follow one another in a file, their rules are ordered by member: all rules of the first one come first.
    """

    for names in cases:
        if len(names) != len(over):
            raise RuleError(f"a law over {len(over)} members needs as many names, not {names}")

    def declared(function: Callable[..., Rewrite]) -> tuple[Declaration, ...]:
        members = [
            {names[place]: Case.of(case).with_named(member) for names, case in cases.items()}
            for place, member in enumerate(over)
        ]
        made = _rules(function, members, {}, None, 0)
        found = [Declaration(rules, _place(function), member=place) for place, rules in enumerate(made)]
        _declarations(function).extend(found)
        return tuple(found)

    return declared


def false_control(name: str, *, of: str | None = None) -> Callable[[Callable[..., Rewrite]], Declaration]:
    """Declare a rule that is false: a mistake that is easily made about the rule `of`, if about one.

    It is well typed wherever it is wrong, and a verifier that accepts it is not to be trusted.
    """

    def declared(function: Callable[..., Rewrite]) -> Declaration:
        return _declare(function, {name: Case()}, {}, "control", 0, is_false_control=True, control_of=of)

    return declared


def declarations(module: Mapping[str, Any]) -> tuple[Declaration, ...]:
    """All that a module declares, given its namespace, in the order of the file; laws in a row, member by member."""
    runs = groupby(module.get(_DECLARATIONS, ()), key=lambda d: d.member is None)
    return tuple(d for _, run in runs for d in sorted(run, key=lambda d: d.member or 0))


_DECLARATIONS = "__rule_declarations__"


def _declarations(function: Callable[..., Rewrite]) -> list[Declaration]:
    namespace = _plain(function).__globals__
    found: list[Declaration] = namespace.setdefault(_DECLARATIONS, [])
    return found


def _plain(function: Callable[..., Rewrite]) -> FunctionType:
    assert isinstance(function, FunctionType)
    return function


def _place(function: Callable[..., Rewrite]) -> Place:
    code = _plain(function).__code__
    return Place(code.co_filename, code.co_firstlineno)


def _declare(
    function: Callable[..., Rewrite],
    cases: Mapping[str, Case],
    reverses: Mapping[str, str | None],
    family: str | None,
    opset: int,
    *,
    is_false_control: bool = False,
    control_of: str | None = None,
) -> Declaration:
    (made,) = _rules(function, [cases], reverses, family, opset, control_of)
    declaration = Declaration(made, _place(function), is_false_control, control_of)
    _declarations(function).append(declaration)
    return declaration


def _rules(
    function: Callable[..., Rewrite],
    members: Sequence[Mapping[str, Case]],
    reverses: Mapping[str, str | None],
    family: str | None,
    opset: int,
    control_of: str | None = None,
) -> list[tuple[Rule, ...]]:
    """The rules of each member's cases, checked all together."""
    code, place = _plain(function).__code__, _place(function)
    chosen = family or _plain(function).__globals__.get("FAMILY", "user")
    made: list[list[Rule]] = [[] for _ in members]
    read: list[Parameters] = []
    try:
        for cases, rules_of_member in zip(members, made, strict=True):
            for name, case in cases.items():
                parameters = read_parameters(function, case)
                read.append(parameters)
                one = _rule(name, chosen, opset, function(*case.first, **parameters.arguments), parameters, place)
                reverse = reverses.get(name)
                rules_of_member += [one, one.reversed(reverse)] if reverse else [one]
        everything = [rule for rules_of_member in made for rule in rules_of_member]
        _check_names([rule.name for rule in everything], control_of, _declarations(function))
        _check_idle(everything, read)
    except RuleError as error:
        names = " or ".join(repr(name) for cases in members for name in cases)
        raise RuleError(f"{_innermost(error, code, place)}: {names}: {error}") from None
    return [tuple(rules_of_member) for rules_of_member in made]


def _innermost(error: RuleError, code: CodeType, place: Place) -> Place:
    """The last line of the rule's own file that was running when the error came."""
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == code.co_filename:
            place = Place(code.co_filename, trace.tb_lineno)
        trace = trace.tb_next
    return place


def _rule(name: str, family: str, opset: int, rewrite: object, parameters: Parameters, place: Place) -> Rule:
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


def _check_idle(made: Sequence[Rule], read: Sequence[Parameters]) -> None:
    used = {name for rule in made for name in pattern.variables(*rule.source)}
    for name in (name for parameters in read for name in parameters.tensors):
        if name not in used:
            raise RuleError(f"the parameter {name!r} is idle: no source has it")
    symbols = {symbol for rule in made for symbol in rule.attributes}
    for name, value in (item for parameters in read for item in parameters.arguments.items()):
        if isinstance(value, Value) and value.json not in symbols:
            raise RuleError(f"the parameter {name!r} is idle: no source has it as an attribute")
