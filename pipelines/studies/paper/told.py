"""Figures over seeds as they are told on the page of results: medians with intervals, tables, names.

median_told(variant, "improvement_percent")        "5.50 [5.00, 6.00]", or "5.50" of one seed
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Results = Mapping[str, Any]
"""Documents by name."""
Variant = Mapping[str, Any]
"""The figures of one agent or temperature on one graph (schema `paper`)."""
SAME_POINTS = 0.05
"""Percentage points by which savings may differ and still be called the same."""


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    alignment = [":--", *("--:" for _ in head[1:])]
    return "".join("| " + " | ".join(row) + " |\n" for row in [list(head), alignment, *rows])


def variants_of(document: Mapping[str, Mapping[str, Variant]]) -> list[Variant]:
    return [variant for variants in document.values() for variant in variants.values()]


def median_of(variant: Variant, name: str) -> float:
    value: float = variant["figures"][name]["value"]
    return value


def median_told(variant: Variant, name: str, digits: int = 2) -> str:
    """The median, with its interval where there are several seeds; empty where there is no such figure."""
    if name not in variant["figures"]:
        return ""
    figure = variant["figures"][name]
    return with_interval(figure, digits) if len(figure["values"]) > 1 else f"{figure['value']:.{digits}f}"


def with_interval(figure: Mapping[str, Any], digits: int = 2) -> str:
    low, high = figure["ci95"]
    return f"{figure['value']:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


def is_method(name: str) -> bool:
    return not name.startswith(("unseen ", "tau ", "pooled "))


def gain_points(found: Mapping[str, Variant], one: str, other: str) -> float:
    """The points by which one method saves more than another."""
    return median_of(found[one], "improvement_percent") - median_of(found[other], "improvement_percent")


def best_variant(variants: Mapping[str, Variant], name: str) -> str:
    return max(variants, key=lambda variant: median_of(variants[variant], name))


def printed_or_empty(figures: Mapping[str, float], name: str) -> str:
    return f"{figures[name]:g}" if name in figures else ""


def names_told(graphs: Sequence[str]) -> str:
    return ", ".join(graphs) if graphs else "none"


def range_told(values: Sequence[float]) -> str:
    if not values:
        return "nothing that was measured"
    return f"{min(values):.2f} to {max(values):.2f} %"
