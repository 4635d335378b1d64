"""Constructors of operators, one for each that the registry knows: `Transpose(x, perm=p)` is a transpose of x.

`from rlflow.rules.dsl.operators import Transpose` makes the constructor from the registry; there is no list to keep.
Each application is checked where it is written: the number of operands, the names of attributes and their types.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from rlflow.errors import RuleError
from rlflow.ops.registry import OPERATORS
from rlflow.rules import pattern
from rlflow.rules.dsl.tensors import Operand, Tensor, as_tensor
from rlflow.rules.dsl.values import Kind, Value, ints, lifted
from rlflow.rules.pattern import Apply

_KINDS: Mapping[Kind, tuple[str, ...]] = {
    "int": (
        *("axis", "group", "transA", "transB", "transBatchA", "transBatchB"),
        *("keepdims", "ceil_mode", "count_include_pad", "zero_point"),
    ),
    "ints": (
        *("perm", "shape", "axes", "split", "starts", "ends", "steps"),
        *("strides", "pads", "dilations", "kernel_shape"),
    ),
    "float": ("epsilon", "min", "max", "exponent", "alpha", "beta", "scale", "constant_value", "value_float"),
    "floats": ("value_floats",),
    "text": ("to", "mode", "auto_pad", "approximate", "activation"),
}
KIND_OF: Mapping[str, Kind] = {name: kind for kind, names in _KINDS.items() for name in names}
"""The type of each attribute, one for all operators, as in ONNX itself; other names are not checked."""


@dataclass(frozen=True)
class OperatorConstructor:
    """Applies one operator. `name` carries the domain, as in the registry."""

    name: str

    @property
    def takes(self) -> frozenset[str]:
        """The names of all attributes."""
        operator = OPERATORS[self.name]
        return frozenset((*operator.defaults, *operator.required, *operator.optional))

    @property
    def requires(self) -> tuple[str, ...]:
        """The names of the attributes that have no default."""
        return OPERATORS[self.name].required

    def __call__(self, *operands: Operand, **attributes: Any) -> Tensor:
        self._check(len(operands), attributes)
        values = {name: self._value(name, value) for name, value in attributes.items()}
        written = {**OPERATORS[self.name].defaults, **{name: value.json for name, value in values.items()}}
        frozen = tuple(sorted((name, pattern.freeze(value)) for name, value in written.items()))
        return Tensor(Apply(self.name, frozen, tuple(as_tensor(o).term for o in operands)))

    def _check(self, operands: int, attributes: Mapping[str, Any]) -> None:
        least, most = OPERATORS[self.name].arity
        if not least <= operands <= most:
            expected = str(least) if least == most else f"{least} to {most}"
            raise RuleError(f"{self.name} takes {expected} operands, not {operands}")
        for name in sorted(attributes.keys() - self.takes):
            known = ", ".join(sorted(self.takes)) or "none"
            raise RuleError(f"{self.name} has no attribute {name!r}: its attributes are {known}")
        for name in self.requires:
            if name not in attributes:
                raise RuleError(f"{self.name} needs the attribute {name!r}")

    def _value(self, name: str, value: object) -> Value:
        given, kind = lifted(value), KIND_OF.get(name)
        if kind is not None and given.kind != kind and not (given.json == [] and kind in ("ints", "floats")):
            raise RuleError(
                f"{self.name}: the attribute {name!r} is of the type {kind!r}, and {given.json!r} of {given.kind!r}"
            )
        return given


def constructor(name: str, domain: str = "") -> OperatorConstructor:
    """The constructor of a registered operator; `RuleError` naming similar ones if there is none."""
    full = f"{domain}.{name}" if domain else name
    if full not in OPERATORS:
        similar = get_close_matches(full, OPERATORS, n=3)
        hint = f": did you mean {' or '.join(similar)}?" if similar else ""
        raise RuleError(f"the library knows no operator {full}{hint}")
    return OperatorConstructor(full)


def split(x: Operand, axis: int | Value, *sizes: int | Value) -> list[Tensor]:
    """The parts of a tensor, of these sizes along the axis."""
    whole = constructor("Split")(x, axis=axis, split=ints(*sizes))
    return [whole[i] for i in range(len(sizes))]


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return [*(known for known in OPERATORS if known.isidentifier()), "constructor", "split"]
    if name.startswith("__"):
        raise AttributeError(name)
    return constructor(name)
