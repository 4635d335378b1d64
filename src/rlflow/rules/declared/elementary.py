"""The functions of one element that declared rules pass by: whatever holds of every function of elements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Elementary:
    """An operator, what a pattern writes as its attributes, and the kinds of these."""

    op: str
    attributes: Mapping[str, Any] = field(default_factory=dict)
    kinds: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.op.lower()

    def __call__(self, term: Any) -> list[Any]:
        return [self.op, dict(self.attributes), term] if self.attributes else [self.op, term]


CLIP = Elementary(
    "Clip", {"min": "?lo", "max": "?hi"}, {"?lo": ["choice", 0.0, -1.0], "?hi": ["choice", 6.0, 1.0, 0.5]}
)
UNARY = (*map(Elementary, ("Relu", "Neg", "Reciprocal", "Exp", "Erf", "Tanh", "Sqrt", "Log", "Sigmoid")), CLIP)
