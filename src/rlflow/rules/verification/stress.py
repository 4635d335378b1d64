"""Many drawn instances of a rule, shapes, attributes and values, each of them compared in ONNX Runtime as well."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from random import Random

import numpy as np

from rlflow.errors import RuleError
from rlflow.rules.rule import Rule
from rlflow.rules.verification.sampler import Sampler
from rlflow.rules.verification.sides import Sides
from rlflow.rules.verification.verify import (
    Refutation,
    VerificationConfig,
    differs_in_floats,
    exact_difference,
    float_errors,
    is_rounding,
)

_TOGETHER = 100
"""Instances that one session of ONNX Runtime computes: opening it takes longer than the rest."""

_DRAWS_PER_INSTANCE = 16
"""At some, at nine of ten for a few rules, the target is not well typed."""


@dataclass(frozen=True)
class Endurance:
    """What a rule survived. At the `cancelled` instances the sides differ by more than rounding, by an accident of the
    numbers: b - (b - a) does, in floats, where a is small.
    """

    instances: int
    max_relative_error: float
    cancelled: int


def endure(rule: Rule, instances: int, seed: int) -> Endurance | Refutation:
    """Compare so many drawn instances, exactly and in floats. `RuleError` if so many cannot be drawn."""
    sampler, random, rng = Sampler(rule), Random(seed), np.random.default_rng(seed)
    drawn = _drawn(sampler, random, instances)
    done, largest, cancelled = 0, 0.0, 0
    while cases := list(islice(drawn, _TOGETHER)):
        errors = float_errors(cases, rng)
        for case, error in zip(cases, errors, strict=True):
            reason = exact_difference(case, rng, VerificationConfig())
            if reason:
                return Refutation(reason, case.instance)
            if is_rounding(error):
                largest = max(largest, error)
            elif differs_in_floats(case, rng):
                return Refutation(f"ONNX Runtime's outputs differ by {error:.2e}", case.instance)
            else:
                cancelled += 1
        done += len(cases)
    return Endurance(done, largest, cancelled)


def _drawn(sampler: Sampler, random: Random, wanted: int) -> Iterator[Sides]:
    found = 0
    for _ in range(_DRAWS_PER_INSTANCE * wanted):
        case = sampler.sides(sampler.draw(random))
        if case is not None:
            found += 1
            yield case
        if found == wanted:
            return
    raise RuleError(f"rule {sampler.rule.id}: the target is well typed at only {found} drawn instances")
