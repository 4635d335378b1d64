"""Constructors of operators of the domain com.microsoft: `microsoft.QuickGelu(x, alpha=1.0)`."""

from __future__ import annotations

from rlflow.rules.dsl.operators import OperatorConstructor, constructor


def __getattr__(name: str) -> OperatorConstructor:
    if name.startswith("__"):
        raise AttributeError(name)
    return constructor(name, "com.microsoft")
