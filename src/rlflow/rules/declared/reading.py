"""What it is to read some of a tensor's elements, by Slice or by Gather, along one axis: for rules that are the same of
both. Axes are counted from the end, as the library stores them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rlflow.rules.rule import Rule, declare

_FAMILY = "reading"
TO_THE_END = 2**31 - 1

BEGIN, END, STEP = (["get", name, 0] for name in ("?b", "?e", "?t"))
"""Of a slice along one axis."""


@dataclass(frozen=True)
class Reading:
    """An operator that reads along one axis. `operands` are its other operands; of its attributes, `axis_attribute`
    holds the axis: alone, or as a list of one (`listed`).
    """

    name: str
    op: str
    axis_attribute: str
    listed: bool
    written: Mapping[str, Any] = field(default_factory=dict)
    kinds: Mapping[str, Any] = field(default_factory=dict)
    operands: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def axis(self) -> Any:
        """Where the rule leaves it open."""
        return ["get", "?axis", 0] if self.listed else "?axis"

    def some(self, axis: Any) -> list[Any]:
        """Condition: something is read of x along the axis. ONNX Runtime does not pool or reduce no elements."""
        extent = ["reads_some", ["dim", "x", axis], BEGIN, END, STEP]
        return [extent if self.listed else ["<", 0, ["elements", "i"]]]

    def __call__(self, x: Any, axis: Any = None) -> Any:
        """Reading `x` along the axis that the rule leaves open, or along this one."""
        if axis is None:
            where: Any = "?axis"
        elif self.listed:
            where = [axis] if isinstance(axis, int) else ["list", axis]
        else:
            where = axis
        return [self.op, {self.axis_attribute: where, **self.written}, x, *self.operands]

    def before(
        self,
        name: str,
        whole: Any,
        part: Any,
        variables: Mapping[str, Any] | None = None,
        *,
        axis: int | None = None,
        attributes: Mapping[str, Any] | None = None,
        where: Sequence[Any] = (),
    ) -> Rule:
        """What is read of `whole` is `part`."""
        axes = [-1, -2, -3, -4]
        open_axis = {"?axis": ["choice", *([[a] for a in axes] if self.listed else axes)]} if axis is None else {}
        one = [["==", ["length", "?axis"], 1]] if self.listed and axis is None else []
        return declare(
            f"{self.name}-before-{name}",
            _FAMILY,
            [self(whole, axis)],
            [part],
            {**(variables or {}), **self.operands},
            attributes={**open_axis, **self.kinds, **(attributes or {})},
            where=[*one, *where],
        )


EXTENT = {"starts": "?b", "ends": "?e", "steps": "?t"}
EXTENTS = {
    "?b": ["choice", [0], [0], [1], [-1], [-2]],
    "?e": ["choice", [1], [2], [3], [-1], [TO_THE_END]],
    "?t": ["choice", [1], [1], [2], [-1]],
}
SLICE = Reading("slice", "Slice", "axes", True, EXTENT, EXTENTS)
GATHER = Reading("gather", "Gather", "axis", False, operands={"i": {"shape": ["...i"]}})
PICK = Reading("gather", "Gather", "axis", False, operands={"i": {"shape": ["i"]}})
"""Indices of any rank, which take the place of the axis, or of one axis in its stead."""
