"""The stress test of a rule: many drawn instances, each compared exactly and in ONNX Runtime."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from random import Random

import numpy as np

from rlflow.errors import RuleError
from rlflow.rules.rule import Rule
from rlflow.rules.verification.refutation import Refutation
from rlflow.rules.verification.sampler import Sampler
from rlflow.rules.verification.sides import Sides
from rlflow.rules.verification.verify import (
    VerificationConfig,
    differs_in_floats,
    exact_difference,
    float_errors,
    is_rounding,
)

_TOGETHER = 100
"""The instances that one session of ONNX Runtime computes; opening a session takes longer than the rest."""

_DRAWS_PER_INSTANCE = 16
"""Attempts for each instance: the target of a few rules is not well typed at nine of ten."""


@dataclass(frozen=True)
class StressReport:
    """The instances that a rule passed, and its largest relative error in float32.

    At `cancelled` ones the sides differ by more than rounding, but only by cancellation of the numbers drawn, as b -
    (b - a) differs from a in floats if a is small: other numbers agree.
    """

    instances: int
    max_relative_error: float
    cancelled: int


def stress(rule: Rule, instances: int, seed: int) -> StressReport | Refutation:
    """Compare so many drawn instances, exactly and in floats; `RuleError` if so many cannot be drawn."""
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
    return StressReport(done, largest, cancelled)


def _drawn(sampler: Sampler, random: Random, wanted: int) -> Iterator[Sides]:
    """Yield so many drawn instances at which both sides are well typed."""
    found = 0
    for _ in range(_DRAWS_PER_INSTANCE * wanted):
        case = sampler.sides(sampler.draw(random))
        if case is not None:
            found += 1
            yield case
        if found == wanted:
            return
    raise RuleError(f"rule {sampler.rule.id}: the target is well typed at only {found} drawn instances, not {wanted}")
