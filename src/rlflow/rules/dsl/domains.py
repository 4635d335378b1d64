"""Notes on a rule's parameters: what its tensors and attributes may be.

    Image = Annotated[Tensor, Shape("n c h w")]
    Permutation = Annotated[Attribute, PermutationOf("x")]

A `Shape`, CONSTANT and LITERAL are part of what the rule says: where they do not hold, it does not match. The notes on
attributes are not: they tell the verifier how to draw instances on which it tries the rule. A rule matches whatever
attributes its source and its conditions admit, drawn or not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from rlflow.errors import RuleError
from rlflow.rules.dsl.tensors import Tensor
from rlflow.rules.dsl.values import Kind, Value, lifted, to_json
from rlflow.rules.pattern import Variable


@dataclass(frozen=True)
class Shape:
    """Dimensions by name or number, separated by blanks: equal names are equal lengths. A first name "...b" stands for
    any number of axes; no text at all is a scalar.
    """

    dimensions: str

    def parts(self) -> tuple[int | str, ...]:
        parts = tuple(int(d) if d.isdigit() else d for d in self.dimensions.split())
        for part in parts[1:]:
            if isinstance(part, str) and part.startswith("..."):
                raise RuleError(f"the shape {self.dimensions!r}: only its first part can stand for several axes")
        return parts


@dataclass(frozen=True)
class Flag:
    """A demand on a tensor beside its shape."""

    name: str


CONSTANT = Flag("constant")
"""The value is known when the model is loaded: what a rule computes of it is computed once."""

LITERAL = Flag("literal")
"""A stored scalar, whose value the rule may use in an attribute: `e.number`."""


class Domain(Protocol):
    """A way to draw instances of an attribute. `kind` is its type; `to_json` is how the verifier reads it."""

    @property
    def kind(self) -> Kind: ...

    def to_json(self) -> list[Any]: ...


class _Of:
    """A domain that is drawn for tensors of the rule."""

    kind: Kind
    word: str

    def __init__(self, *tensors: str) -> None:
        self.tensors = tensors

    def to_json(self) -> list[Any]:
        return [self.word, *self.tensors]


class PermutationOf(_Of):
    """Permutations of the tensor's axes."""

    kind: Kind = "ints"
    word = "permutation"


class AxisOf(_Of):
    """Axes of the tensor, counted from the end, as the library stores axes."""

    kind: Kind = "int"
    word = "axis"


class ShapeOf(_Of):
    """Shapes into which the tensor can be reshaped."""

    kind: Kind = "ints"
    word = "reshape"


class GroupsOf(_Of):
    """The number of groups in which filters read an image: GroupsOf("image", "filters")."""

    kind: Kind = "int"
    word = "groups"


@dataclass(frozen=True)
class Sizes:
    """The lengths of several tensors along an axis, which is a number or the name of an attribute declared before."""

    axis: int | str
    tensors: tuple[str, ...]
    kind: Kind = "ints"

    def to_json(self) -> list[Any]:
        return ["sizes", _axis(self.axis), *self.tensors]


@dataclass(frozen=True)
class Partition:
    """Lengths of so many parts, which together are the tensor's length along an axis (as of `Sizes`)."""

    tensor: str
    axis: int | str
    parts: int
    kind: Kind = "ints"

    def to_json(self) -> list[Any]:
        return ["partition", self.tensor, _axis(self.axis), self.parts]


@dataclass(frozen=True)
class Integers:
    """Lists of so many whole numbers, from the least to the most."""

    least: int
    most: int
    count: int
    kind: Kind = "ints"

    def to_json(self) -> list[Any]:
        return ["integers", self.least, self.most, self.count]


@dataclass(frozen=True)
class Uniform:
    """Small positive numbers."""

    kind: Kind = "float"

    def to_json(self) -> list[Any]:
        return ["uniform"]


class Choice:
    """One of these values; what is written twice is drawn twice as often. A value may be computed: of a tensor as in
    `tensor("x").dim(0)`, or of an attribute that was declared before, as in `attribute("axes", "ints")[0]`.
    """

    def __init__(self, *values: object) -> None:
        self.values = values
        if len({lifted(v).kind for v in values}) != 1:
            raise RuleError(f"{list(values)}: an attribute's values are of one type")

    @property
    def kind(self) -> Kind:
        return lifted(self.values[0]).kind

    def to_json(self) -> list[Any]:
        return ["choice", *map(to_json, self.values)]


class Attributes(Mapping[str, Value]):
    """Several attributes of one operator under one name, to be passed on together: `Conv(x, f, **window)`."""

    def __init__(self, values: Mapping[str, Value]) -> None:
        self._values = values

    def __getitem__(self, name: str) -> Value:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


class Together:
    """The domains of `Attributes`: of each one's name, the symbol that stands for it, and how it is drawn."""

    def __init__(self, **members: tuple[str, Domain]) -> None:
        self.members = members


Attribute = Value
"""An attribute that a rule binds where it matches; its note is a domain."""


def tensor(name: str) -> Tensor:
    """The tensor that a rule calls so, for domains that speak of it."""
    return Tensor(Variable(name))


def attribute(name: str, kind: Kind) -> Value:
    """The attribute that a rule calls so, for domains of attributes that are declared after it."""
    return Value(f"?{name}", kind)


def drawn_for(domain: Domain) -> Sequence[str]:
    """The names of the tensors that a domain is drawn for."""
    match domain:
        case Partition():
            return (domain.tensor,)
        case Sizes() | _Of():
            return domain.tensors
    return ()


def _axis(axis: int | str) -> int | str:
    return f"?{axis}" if isinstance(axis, str) else axis
