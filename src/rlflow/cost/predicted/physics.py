"""A region's time as a sum of what it does, each kind of work at its own pace: operations, bytes, launches.

    coefficients = fit(terms_of_regions, ms_of_regions)     # non-negative: no work makes a region faster
    milliseconds(coefficients, terms(features, cold=1.0))

It is the first half of a prediction, and what the trees correct: of a region far larger than any that was measured,
the trees know nothing, but twice the operations still take twice as long.

Invariant: terms are sums over nodes and over the values at the border, so that they grow with the work and no order of
nodes changes them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import fsum, prod

import numpy as np

from rlflow.cost.predicted.facts import Kind, NodeFacts
from rlflow.cost.predicted.features import Features

_MEGA = 1e6
_SHORT_RUN = 16  # elements: a cache line of float32
_BYTES_AT_ONCE = 2  # products of bytes in the time of one of floats: nothing was learned, and more on some processors
_FLOOR_MS = 0.005  # below it, errors count as absolute ones

Terms = dict[str, float]
"""Amounts of work by kind: millions of operations, elements or bytes, and launches."""


def terms(features: Features, cold: float) -> Terms:
    """Return the work of a region by its kind; the names are the same for all regions.

    `cold` is the share of its weights that come from memory, as they do not fit into the caches with all others.
    """
    border = features.border
    found: Terms = dict.fromkeys(TERMS, 0.0)
    # with whole numbers no fusion was learned: each kernel begins like a region, wherever the region is cut
    found["region"] = float(len(features.nodes) if features.is_quantised else 1)
    found["border values"] = float(border.values_in + border.values_out)
    found["border bytes"] = (border.bytes_in + border.bytes_out) / _MEGA
    found["weight bytes"] = border.bytes_weights / _MEGA
    found["cold weight bytes"] = cold * border.bytes_weights / _MEGA
    found["inside bytes"] = border.bytes_inside / _MEGA
    whole: Counter[str] = Counter()  # numbers: their sum has no last digit that the order of nodes could change
    for facts, has_constant in zip(features.nodes, features.constant_second, strict=True):
        found["launches"] += facts.kind != Kind.VIEW
        for name, amount in _of_node(facts, has_constant):
            whole[name] += amount
    return found | {name: amount / _MEGA for name, amount in whole.items()}


def _of_node(facts: NodeFacts, has_constant: bool) -> list[tuple[str, int]]:
    if facts.product or facts.convolution:
        work = _of_product(facts, has_constant) if facts.product else _of_convolution(facts)
        return [(name, amount // _BYTES_AT_ONCE) for name, amount in work] if facts.whole else work
    if facts.kind == Kind.MOVEMENT:
        return [("short runs" if facts.run < _SHORT_RUN else "long runs", facts.elements)]
    if facts.kind == Kind.ROWS:
        elements = prod(facts.operands[0]) if facts.operands else 0
        return [("exponential rows" if facts.exponential else "rows", elements), ("rows flops", facts.flops)]
    if facts.kind == Kind.ELEMENTWISE:
        return [("costly elements" if facts.inexact or facts.whole else "elements", facts.elements)]
    if facts.kind == Kind.WINDOW:
        return [("window bytes", facts.moved_bytes)]
    return [("other bytes", facts.moved_bytes)] if facts.kind == Kind.OTHER else []


def _of_product(facts: NodeFacts, has_constant: bool) -> list[tuple[str, int]]:
    product = facts.product
    assert product is not None
    if product.m == 1 or product.n == 1:  # a matrix is read once: memory decides
        return [("vector product flops", 2 * product.batch * product.m * product.n * product.k)]
    return [("packed product flops" if has_constant else "product flops", product.padded_flops)]


def _of_convolution(facts: NodeFacts) -> list[tuple[str, int]]:
    convolution, flops = facts.convolution, facts.flops
    assert convolution is not None
    if not convolution.is_blocked:
        name = "plain grouped flops" if convolution.groups > 1 else "plain convolution flops"
        return [(name, convolution.padded_flops), ("columns", convolution.columns)]
    if convolution.is_depthwise:
        return [("depthwise flops", flops)]
    if convolution.groups > 1:
        return [("grouped flops", flops)]
    return [("pointwise convolution flops" if convolution.kernel == 1 else "blocked convolution flops", flops)]


TERMS = (
    "region",
    "launches",
    "border values",
    "border bytes",
    "weight bytes",
    "cold weight bytes",
    "inside bytes",
    "packed product flops",
    "product flops",
    "vector product flops",
    "blocked convolution flops",
    "pointwise convolution flops",
    "depthwise flops",
    "grouped flops",
    "plain convolution flops",
    "plain grouped flops",
    "columns",
    "short runs",
    "long runs",
    "exponential rows",
    "rows",
    "rows flops",
    "costly elements",
    "elements",
    "window bytes",
    "other bytes",
)


def fit(work: Sequence[Mapping[str, float]], ms: Sequence[float]) -> dict[str, float]:
    """Return milliseconds for one unit of each term: non-negative least squares of relative errors.

    A term that no region has gets 0.
    """
    from scipy.optimize import nnls  # takes longer to import than a small model to optimise, which asks for no fit

    amounts = np.array([[entry[name] for name in TERMS] for entry in work])
    weights = 1.0 / (np.asarray(ms) + _FLOOR_MS)
    scale = np.maximum(amounts.max(axis=0), np.finfo(float).tiny)  # columns of one size, for the solver's tolerance
    found, _ = nnls(amounts / scale * weights[:, None], np.asarray(ms) * weights)
    return dict(zip(TERMS, map(float, found / scale), strict=True))


def milliseconds(coefficients: Mapping[str, float], work: Mapping[str, float]) -> float:
    """Return the time of some work; the exact sum, rounded once."""
    return fsum(coefficients[name] * work[name] for name in TERMS)


def composition(coefficients: Mapping[str, float], work: Mapping[str, float]) -> list[float]:
    """Return the time of some work, and before it each term's share in it: what kind of region this is, at any size."""
    total_ms = milliseconds(coefficients, work)
    shares = [coefficients[name] * work[name] / total_ms if total_ms else 0.0 for name in TERMS]
    return [*shares, total_ms]
