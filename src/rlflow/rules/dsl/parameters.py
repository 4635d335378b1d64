"""The parameters of a declaration: the tensors and attributes that the annotations of a function stand for."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from rlflow.errors import RuleError
from rlflow.rules.dsl.domains import Attributes, Domain, Flag, Shape, tensor
from rlflow.rules.dsl.tensors import Tensor
from rlflow.rules.dsl.values import Value
from rlflow.rules.rule import VariableSpec


@dataclass(frozen=True)
class Case:
    """The arguments that a rule gives to its function: one at the first place, or none, and others by name.

    A type that is given by name takes the place of the parameter's annotation.
    """

    first: tuple[Any, ...] = ()
    named: Mapping[str, Any] = field(default_factory=dict)

    @staticmethod
    def of(written: object) -> Case:
        """The case as `rules` takes it: arguments by name, or the first argument."""
        return Case(named=written) if isinstance(written, Mapping) else Case((written,))

    def with_named(self, named: Mapping[str, Any]) -> Case:
        """The case with further arguments."""
        return Case(self.first, {**self.named, **named})


@dataclass(frozen=True)
class Parameters:
    """The meaning of a function's annotations, as a rule writes it; `arguments` are passed to the function by name."""

    arguments: dict[str, Any] = field(default_factory=dict)
    tensors: dict[str, VariableSpec] = field(default_factory=dict)
    domains: dict[str, Domain] = field(default_factory=dict)


def read_parameters(function: Callable[..., object], case: Case) -> Parameters:
    """The parameters that follow the case's first argument; `RuleError` for an annotation that is none of a rule."""
    values = {name: given for name, given in case.named.items() if not _is_type(given)}
    hints = {**get_type_hints(function, include_extras=True), **case.named}
    names = list(inspect.signature(function).parameters)[len(case.first) :]
    for name in sorted(case.named.keys() - set(names)):
        raise RuleError(f"a case gives {name!r}, which is no parameter of the function")
    found = Parameters()
    for name in names:
        if name not in hints:
            raise RuleError(f"the parameter {name!r} has no annotation: write {name}: Tensor, or another type")
        found.arguments[name] = values[name] if name in values else _argument(name, hints[name], found)
    return found


def _is_type(given: object) -> bool:
    return isinstance(given, type) or get_origin(given) is Annotated


def _argument(name: str, hint: Any, found: Parameters) -> Any:
    """The argument that an annotation stands for; its tensors and domains are added to those found."""
    kind, notes = _annotation(hint)
    if kind is Tensor:
        found.tensors[name] = _spec(notes)
        return tensor(name)
    if kind is Value:
        return _attribute(name, _only_note(name, notes, "a domain such as AxisOf"), found)
    if kind is Attributes:
        together = _only_note(name, notes, "Together(...)")
        members = {key: _attribute(symbol, domain, found) for key, (symbol, domain) in together.members.items()}
        return Attributes(members)
    if is_dataclass(kind) and isinstance(kind, type):
        hints = get_type_hints(kind, include_extras=True)
        return kind(**{part.name: _argument(part.name, hints[part.name], found) for part in fields(kind)})
    raise RuleError(f"the parameter {name!r} is no Tensor, Attribute or Attributes, and no data class of these: {kind}")


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


def _attribute(symbol: str, domain: Domain, found: Parameters) -> Value:
    found.domains[f"?{symbol}"] = domain
    return Value(f"?{symbol}", domain.kind)
