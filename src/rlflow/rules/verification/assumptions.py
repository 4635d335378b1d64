"""Assumptions of a rule about the values that models carry; about masks and dimensions of no elements it may make none.

Both sides are run in ONNX Runtime, as written and as deployed, and compared within each setting. A rule that changes
what a mask hides, or fails where there are no elements, is refused: it must say in its condition where that cannot be.
What else it needs, that values are finite or of ordinary size, is recorded in its certificate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice

import numpy as np

from rlflow.rules.certificate import ASSUMPTIONS, FINITE, MODERATE
from rlflow.rules.expression import bounded_in
from rlflow.rules.rule import Rule
from rlflow.rules.verification.batches import in_double, on_the_way, one_draw, outputs_of
from rlflow.rules.verification.empty import empty_trials
from rlflow.rules.verification.extremes import are_close, assumed, extreme_trials, unlike
from rlflow.rules.verification.masks import LOWEST, SOFTEST, mask_trials, ordinary
from rlflow.rules.verification.refutation import Refutation
from rlflow.rules.verification.settings import Outputs, Trial, computed, is_stored
from rlflow.rules.verification.sides import Sides
from rlflow.runtime.session import SETTINGS, Setting

_RUN_CASES, _NUMPY_CASES = 3, 24
"""The cases that ONNX Runtime runs, and that numpy computes."""

_SPECIAL_SHARE = 0.3
_TOLERANCE = 1000 * float(np.finfo(np.float32).eps)
_SOFTLY_MASKED = -8 * SOFTEST * float(np.finfo(np.float32).eps)
"""The tolerance where -1e4 is added: it rounds away some of what it is added to, in each of a few sums."""

_SEEN, _HIDDEN = 1e3, -0.99 * LOWEST
"""What is smaller is not hidden; what is larger is hidden like an infinity: the sum of two masks is either."""


def examined(rule: Rule, cases: Sequence[Sides], rng: np.random.Generator) -> tuple[str, ...] | Refutation:
    """Return what the rule assumes, in the order of `ASSUMPTIONS`, or the counter-example that refuses it."""
    largest = sorted(cases, key=lambda case: sum(t.elements for t in case.instance.types.values()), reverse=True)
    few = largest[:_RUN_CASES]
    masked = [trial for case in few for trial in mask_trials(rule, case, rng)]
    refused = chain(*(_differences(rule, trials, _agree) for trials in (masked, empty_trials(rule, rng))))
    for trial, reason in refused:
        return Refutation(f"{reason}: {trial.drawn}", trial.case.instance, trial.remedies)

    shown = {assumption for case in largest[:_NUMPY_CASES] for assumption in assumed(case, rng)}
    special = [trial for case in few for trial in _special_trials(rule, case, rng)]
    extreme = [trial for case in few for trial in extreme_trials(case, rng)]
    for name, trials, agree in ((FINITE, special, _agree), (MODERATE, extreme, _agree_in_size)):
        if name not in shown:
            shown.update(name for _ in islice(_differences(rule, trials, agree), 1))
    return tuple(name for name in ASSUMPTIONS if name in shown)


def _special_trials(rule: Rule, case: Sides, rng: np.random.Generator) -> Iterator[Trial]:
    """Yield trials in which some elements of an operand are NaN or an infinity.

    It is none that is stored: what kernels make of a filter that is infinite depends on how each processor blocks it.
    Nor is it one that the rule applies to only where the graph proves that it is bounded, or one of quantised numbers.
    """
    for name in case.instance.types:
        if case.instance.given(name) is None and not is_stored(rule, name) and name not in rule.quantised:
            numbers = (np.nan,) if name in bounded_in(rule.where) else (np.nan, np.inf, -np.inf)
            for number in numbers:
                shape = case.instance.shape(name)
                ordinary_values = rng.uniform(-2.0, 2.0, shape)
                value = np.where(rng.random(shape) < _SPECIAL_SHARE, number, ordinary_values).astype(np.float32)
                yield Trial(case, ordinary(case.instance, rng, {name: value}), f"{name} with {number}")


_Agreement = Callable[[Trial, Outputs, Outputs], bool]


def _differences(rule: Rule, trials: Sequence[Trial], agree: _Agreement) -> Iterator[tuple[Trial, str]]:
    """Yield the trials at which the sides differ, with the reason, in either setting.

    Where the source itself differs between the settings, that is ONNX Runtime's fault, and counts as written alone.
    """
    sources = computed(rule, trials, "source")
    compared = [n for n, source in enumerate(sources) if source]
    targets = dict(zip(compared, computed(rule, [trials[n] for n in compared], "target"), strict=True))
    for setting in SETTINGS:
        compared = [n for n in compared if setting in sources[n] and _is_itself(trials[n], sources[n], setting, agree)]
        for n in compared:
            source, target = sources[n][setting], targets[n].get(setting)
            if target is None:
                yield trials[n], f"ONNX Runtime cannot run the target, {setting.replace('_', ' ')}"
            elif not agree(trials[n], source, target) and not _overflows(trials[n]):
                yield trials[n], f"the sides differ, {setting.replace('_', ' ')}"


def _is_itself(trial: Trial, source: dict[Setting, Outputs], setting: Setting, agree: _Agreement) -> bool:
    as_written = source["as_written"]
    return source[setting] is as_written or agree(trial, as_written, source[setting])


def _agree(trial: Trial, one: Outputs, other: Outputs) -> bool:
    softly = any((value == SOFTEST).any() for value in trial.values)
    return all(_alike(a, b, _SOFTLY_MASKED if softly else _TOLERANCE) for a, b in zip(one, other, strict=True))


def _agree_in_size(trial: Trial, one: Outputs, other: Outputs) -> bool:
    """Compare relative to the largest number, however small it is."""
    return all(bool(are_close(b[None], a[None]).all()) for a, b in zip(one, other, strict=True))


def _alike(a: np.ndarray, b: np.ndarray, tolerance: float) -> bool:
    """Compare NaN, what is hidden, and all else relative to its own size or that of what is not hidden."""
    if a.shape != b.shape or a.dtype.kind != "f":
        return bool(np.array_equal(a, b))
    a, b = (np.where(np.abs(v) > _HIDDEN, np.copysign(np.inf, v), v.astype(np.float64)) for v in (a, b))
    if unlike(a, b).any():
        return False
    a, b = (v[np.isfinite(a)] for v in (a, b))
    scale = np.abs(a[np.abs(a) < _SEEN]).max(initial=1.0)
    return bool((np.abs(a - b) <= tolerance * (np.abs(a) + scale)).all())


def _overflows(trial: Trial) -> bool:
    """Return True if something on the way, in either side, is out of float32's range, though finite."""
    instance = trial.case.instance
    if not all(value.size for value in trial.values):
        return False
    values = one_draw(instance, trial.values)
    for side in trial.case[1:]:
        way = on_the_way(side, len(values))
        for single, exact in zip(outputs_of(way, values), outputs_of(way, in_double(values)), strict=True):
            if (np.isfinite(exact) & (~np.isfinite(single) | (np.abs(exact) > -LOWEST))).any():
                return True
    return False
