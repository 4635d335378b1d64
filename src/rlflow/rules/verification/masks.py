"""Trials in which an operand holds a mask, as exported models add them: 0, and numbers that hide.

    mask   [[0, -1e9, 0], [-1e9, -1e9, -1e9]]       the second row is hidden altogether

Such a row is meant: a model was trained and is used with what its softmax makes of it, so that a rule which changes it
changes the model. In reals it would not: there, -1e9 along a whole row cancels. So both sides are compared with each
other in float32, where -1e9 absorbs what it is added to, and not with the exact value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

import numpy as np

from rlflow.ops.masks import HIDDEN, MADE, PASSED
from rlflow.rules import pattern
from rlflow.rules.expression import BOUND, bounded_in
from rlflow.rules.pattern import Apply, Term, Variable
from rlflow.rules.plan import Instance
from rlflow.rules.rule import Rule
from rlflow.rules.verification.batches import in_double, one_draw, outputs_of
from rlflow.rules.verification.settings import Trial
from rlflow.rules.verification.sides import Sides

SOFTEST, LOWEST = -1e4, float(np.finfo(np.float32).min)
HIDING = (SOFTEST, -1e9, LOWEST, -np.inf)
"""The numbers by which exporters hide."""

_SHARE = 0.4
"""The share of elements that are hidden, and that of rows that are hidden altogether."""


def mask_operands(rule: Rule, passed: Mapping[str, slice] = PASSED) -> tuple[str, ...]:
    """The variables whose masks reach an operand by which its source hides, or one of its outputs."""
    found = dict.fromkeys(name for term in rule.source for name in _reaching(term, passed))
    for term in (t for side in rule.source for t in pattern.subterms(side) if isinstance(t, Apply)):
        hiding = term.arguments[HIDDEN.get(term.op, slice(0))]
        found |= dict.fromkeys(name for part in hiding for name in _reaching(part, passed))
    others = rule.indices | rule.quantised
    return tuple(name for name in found if name not in others and not rule.spec(name).literal)


def _reaching(term: Term, passed: Mapping[str, slice]) -> Iterator[str]:
    if isinstance(term, Variable):
        yield term.name
        return
    for part in term.arguments[passed.get(term.op, slice(0))]:
        yield from _reaching(part, passed)


def mask_trials(rule: Rule, case: Sides, rng: np.random.Generator) -> Iterator[Trial]:
    """Yield trials with a mask in each operand that may hold one, by each hiding number, in parts and altogether; and
    with a mask that is made, of zeros and ones and of a factor that hides.

    What the rule wants to be bounded hides no more than a bound admits.
    """
    instance, masks, bounded = case.instance, mask_operands(rule), bounded_in(rule.where)
    for name, number in product(masks, HIDING):
        if name in bounded and -number > BOUND:
            continue
        for everywhere in (False, True):
            hidden = np.ones(instance.shape(name), bool) if everywhere else _hidden(instance.shape(name), rng)
            mask = np.where(hidden, np.float32(number), np.float32(0.0))
            drawn = f"{name} masked by {number:.3g}{' altogether' if everywhere else ''}"
            yield Trial(case, ordinary(instance, rng, {name: mask}), drawn, (["bounded", name],))

    factors = [name for name in mask_operands(rule, MADE) if name not in (*masks, *bounded)]
    for name, number in product(factors, HIDING[:-1]):
        seen = {n: rng.integers(0, 2, instance.shape(n)).astype(np.float32) for n in instance.types}
        seen |= {n: value for n in instance.types if (value := instance.given(n)) is not None}
        values = ordinary(instance, rng, seen | {name: np.full(instance.shape(name), number, np.float32)})
        if _is_finite(case, values):
            yield Trial(case, values, f"a mask made by {name}, {number:.3g}", (["bounded", name],))


def _is_finite(case: Sides, values: Sequence[np.ndarray]) -> bool:
    """Return False where zeros and ones are no values that the source can take, as if it divides by them."""
    batch = in_double(one_draw(case.instance, values))
    return all(bool(np.isfinite(output).all()) for output in outputs_of(case.source, batch))


def _hidden(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    rows = rng.random((*shape[:-1], 1)[: len(shape)]) < _SHARE
    return (rng.random(shape) < _SHARE) | rows


def ordinary(instance: Instance, rng: np.random.Generator, given: dict[str, np.ndarray]) -> tuple[np.ndarray, ...]:
    """Draw the values of all variables, in their order, between -2 and 2, but for those that are given."""
    values = []
    for name in instance.types:
        value = given.get(name, instance.given(name))
        drawn = rng.uniform(-2.0, 2.0, instance.shape(name)) if value is None else value
        values.append(instance.elements(name, drawn) if value is None else value)
    return tuple(values)
