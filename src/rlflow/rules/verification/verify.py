"""Verification: no rule is trusted. Each is tested on drawn instances, exactly over a finite field and then in floats.

Over the field a wrong equality of rational functions of degree d survives one trial with probability at most d / p
(Schwartz-Zippel), so that a handful of trials leaves nothing to chance; signs and uninterpreted functions are settled
element by element, hence the minimum of compared elements. The float run on ONNX Runtime is no proof, but the only step
that sees an operator whose attribute we misread (docs/measurements.md, 7). Poles, overflow and cancellation are
too rare to be drawn: last steps seek them with numbers like 0 and 100, and with tensors of very different magnitudes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import Any

import numpy as np

from rlflow.errors import RuleError
from rlflow.ir.graph import Graph
from rlflow.onnx_io.standalone import standalone_model
from rlflow.ops.algebra import QUANTISED
from rlflow.ops.domain import Array
from rlflow.ops.field import FieldArray, FieldDomain, NoExponentError, undefined
from rlflow.rules.certificate import METHOD, Certificate, digest
from rlflow.rules.plan import Instance, run_plan
from rlflow.rules.rule import Rule
from rlflow.rules.semantics import semantics
from rlflow.rules.verification.assumptions import examined
from rlflow.rules.verification.batches import batches, in_double, outputs_of
from rlflow.rules.verification.refutation import Refutation
from rlflow.rules.verification.sampler import Sampler, draws_permutations
from rlflow.rules.verification.sides import Sides, as_graph
from rlflow.runtime.session import open_session

_ROUNDINGS = 1000
"""Float check: the largest difference allowed, in units of rounding of the largest reference value."""

_DRAWS_PER_SHAPE = 2
_UNCONDITIONAL_DRAWS = 12
_LEAST_COMPARED = 0.25
"""The least share of drawn instances at which both sides must have been compared. A target that is seldom well typed
may be so at degenerate shapes alone, which prove nothing; nor does an equality of outputs without elements. Of a rule
that has a certificate half of it must be: other draws may be less lucky."""


@dataclass(frozen=True)
class VerificationConfig:
    """The amount of testing. `min_elements` is per shape, over all its trials. Rules with permutations or slices are
    tested at `turned` times as many shapes.
    """

    shapes: int = 32
    turned: int = 6
    trials: int = 3
    min_elements: int = 64
    float_cases: int = 4
    seed: int = 0


def verify(rule: Rule, config: VerificationConfig) -> Certificate | Refutation:
    """Return a certificate, or the counter-example that refutes the rule."""
    rng, random = np.random.default_rng(config.seed), Random(config.seed)
    sampler = Sampler(rule)
    compared = _compared(sampler, config, random, rng)
    if isinstance(compared, Refutation):
        return compared
    cases = sorted(compared, key=_size, reverse=True)[: config.float_cases]
    errors = float_errors(cases, rng)
    for case, error in zip(cases, errors, strict=True):
        if not is_rounding(error) and differs_in_floats(case, rng):
            return Refutation(f"ONNX Runtime's outputs differ by {error:.2e} of the largest value", case.instance)
        if leaves_domain(case, rng):
            return Refutation("the target is infinite or undefined where the source is finite", case.instance)
        if loses_precision(case, rng):
            return Refutation("the target is far less accurate than the source where magnitudes differ", case.instance)
    assumes = examined(rule, compared, np.random.default_rng((config.seed, 2))) if cases else ()
    if isinstance(assumes, Refutation):
        return assumes
    if rule.certificate is not None and (unsaid := set(assumes) - set(rule.assumes)):
        return Refutation(f"it assumes what its certificate does not say: {', '.join(sorted(unsaid))}", None)
    certificate = Certificate(
        method=METHOD,
        trials=config.trials,
        shapes=len(compared),
        refuted_without_condition=_refuted_without_condition(sampler, config, random),
        float_cases=len(cases),
        assumes=assumes,
        semantics=semantics(rule),
        digest="",
        max_relative_error=max(filter(is_rounding, errors), default=0.0),
    )
    return replace(certificate, digest=digest(rule, certificate))


def _compared(
    sampler: Sampler, config: VerificationConfig, random: Random, rng: np.random.Generator
) -> list[Sides] | Refutation:
    """Return distinct instances at which both sides agree exactly, or the first at which they do not."""
    seen: set[Any] = set()
    compared: list[Sides] = []
    wanted = config.shapes * (config.turned if draws_permutations(sampler.rule) else 1)
    for _ in range(_DRAWS_PER_SHAPE * wanted):
        if len(compared) == wanted:
            break
        instance = sampler.draw(random)
        if instance.key in seen:
            continue
        seen.add(instance.key)
        case = sampler.sides(instance)
        if case is None or not any(tensor_type.elements for tensor_type in case.source.types):
            continue  # of no elements, all is alike
        reason = exact_difference(case, rng, config)
        if reason:
            return Refutation(reason, instance)
        compared.append(case)
    certified_before = sampler.rule.certificate is not None
    if len(compared) < (_LEAST_COMPARED / 2 if certified_before else _LEAST_COMPARED) * len(seen):
        return Refutation(
            f"the target is well typed, and has elements, at only {len(compared)} of {len(seen)} drawn instances", None
        )
    return compared


def _size(case: Sides) -> int:
    return sum(tensor_type.elements for tensor_type in case.instance.types.values())


def certified(rule: Rule, config: VerificationConfig) -> Rule:
    """Return the rule with its certificate; `RuleError` with the counter-example if it is refuted."""
    outcome = verify(rule, config)
    if isinstance(outcome, Refutation):
        place = f"{rule.declared_at}: " if rule.declared_at else ""
        field = "; compared over a finite field, which has no order" if outcome.reason == _VALUES_DIFFER else ""
        raise RuleError(f"{place}rule {rule.id} ({rule.name}) is refuted: {outcome}{field}")
    return replace(rule, certificate=outcome)


def exact_difference(case: Sides, rng: np.random.Generator, config: VerificationConfig) -> str:
    """Describe how the sides differ over the field; empty if they agree in every trial."""
    elements = sum(tensor_type.elements for tensor_type in case.source.types)
    trials = max(config.trials, -(-config.min_elements // max(1, elements)))
    domain = FieldDomain(rng.integers(1 << 62) + np.arange(trials))
    reason = ""
    for draw in (domain.draw_residues, domain.draw):  # few rules have exponentials, which need twice the work
        try:
            return _differ_in(domain, case, partial(draw, rng=rng))
        except NoExponentError as error:
            reason = str(error)
    return reason


def _differ_in(domain: FieldDomain, case: Sides, draw: Callable[[tuple[int, ...]], FieldArray]) -> str:
    values = _field_values(domain, case.instance, draw)
    source = run_plan(case.source, values, domain)
    try:
        target = run_plan(case.target, values, domain)
    except IndexError:
        return "the target selects an element that there is not"
    return next(filter(None, map(differ, source, target)), "")


def _field_values(
    domain: FieldDomain, instance: Instance, draw: Callable[[tuple[int, ...]], FieldArray]
) -> list[Array]:
    """The values of the variables, in order; the numbers of all of them are drawn at once."""
    drawn = draw((sum(tensor_type.elements for tensor_type in instance.types.values()),))
    values: list[Array] = []
    start = 0
    for name, tensor_type in instance.types.items():
        end = start + tensor_type.elements
        if name in instance.indices:
            values.append(instance.indices[name])
        elif name in instance.literals:
            values.append(_filled(domain, instance.literals[name], instance.shape(name)))
        else:
            value = drawn.each(partial(_shaped, slice(start, end), instance.shape(name)))
            limits = QUANTISED.get(tensor_type.dtype)
            values.append(value if limits is None else value.whole(*limits))
        start = end
    return values


def _shaped(where: slice, shape: tuple[int, ...], vectors: np.ndarray) -> np.ndarray:
    """A slice of each vector of a batch, reshaped."""
    return vectors[:, where].reshape(len(vectors), *shape)


def _filled(domain: FieldDomain, number: float, shape: tuple[int, ...]) -> FieldArray:
    return domain.structural(lambda v: np.broadcast_to(v, shape), domain.constant(number))


def differ(a: FieldArray, b: FieldArray) -> str:
    """Describe how the arrays differ; empty if they are equal in every trial."""
    if a.undefined is None and b.undefined is None:
        return "" if (a.residue == b.residue).all() else _VALUES_DIFFER
    if (undefined(a) != undefined(b)).any():
        return "the sides are undefined at different points"
    equal = undefined(a) | (a.residue == b.residue)
    return "" if equal.all() else _VALUES_DIFFER


_VALUES_DIFFER = "the sides have different values"


def float_errors(cases: Sequence[Sides], rng: np.random.Generator) -> list[float]:
    """The relative error of each case: the largest difference of the two sides, as ONNX Runtime computes them, over the
    largest value of the source. Infinity if the sides are undefined at different points.
    """
    if not cases:
        return []
    graph = as_graph(cases)
    values = [value for case in cases for value in _float_values(case.instance, rng.standard_normal)]
    names = [graph.nodes[i].names[0] for i in graph.inputs]
    outputs = iter(_run(graph, dict(zip(names, values, strict=True))))
    return [_worst(*([next(outputs) for _ in side.outputs] for side in case[1:])) for case in cases]


def is_rounding(error: float) -> bool:
    """Return whether a relative difference may come from rounding alone."""
    return error <= _ROUNDINGS * float(np.finfo(np.float32).eps)


_AGAIN = 8
"""The number of further draws for an instance at which the sides differed by more than rounding."""


def differs_in_floats(case: Sides, rng: np.random.Generator) -> bool:
    """Return whether a difference beyond rounding is systematic: most other draws differ too, or the target is the less
    accurate side."""
    again = float_errors([case] * _AGAIN, rng)
    return sum(not is_rounding(error) for error in again) > _AGAIN // 2 or loses_precision(case, rng)


def _worst(source: Sequence[np.ndarray], target: Sequence[np.ndarray]) -> float:
    worst = 0.0
    for a, b in zip(source, target, strict=True):
        defined = np.isfinite(a)
        if (defined != np.isfinite(b)).any():
            return float("inf")
        worst = max(worst, float(_errors(b[None], a[None], defined[None])[0]))
    return worst


_SPECIAL = (0.0, 1.0, -1.0, 30.0, -100.0, 100.0)
"""Numbers that occur in models and at which functions have poles or overflow float32 (exp of 100)."""

_SPECIAL_DRAWS = 8


def leaves_domain(case: Sides, rng: np.random.Generator) -> bool:
    """Return whether the target is not finite, in float32, at a point where the source is: a / a is not 1 at 0, and
    exp(a + b) not exp(a) exp(b) where one of these is infinite.
    """
    values = batches(case.instance, lambda shape: rng.choice(_SPECIAL, (_SPECIAL_DRAWS, *shape)))
    source, target = (outputs_of(side, values) for side in (case.source, case.target))
    return any((np.isfinite(a) & ~np.isfinite(b)).any() for a, b in zip(source, target, strict=True))


_MAGNITUDES = (1e-5, 1.0, 1e5)
_MAGNITUDE_DRAWS = 16
_LOST = 10.0
"""How many times less accurate than the source the target may be."""


def loses_precision(case: Sides, rng: np.random.Generator) -> bool:
    """Return whether the target, in float32, is far from the float64 value where the source is near.

    As a + (b - a) is not b where a is much larger. In each draw each tensor has a magnitude of its own.
    """

    def drawn(shape: tuple[int, ...]) -> np.ndarray:
        scale = rng.choice(_MAGNITUDES, (_MAGNITUDE_DRAWS, *(1 for _ in shape)))
        return scale * rng.standard_normal((_MAGNITUDE_DRAWS, *shape))

    values = batches(case.instance, drawn)
    exact = outputs_of(case.source, in_double(values))
    source, target = (outputs_of(side, values) for side in (case.source, case.target))
    return any(map(_is_lost, exact, source, target))


def _is_lost(exact: np.ndarray, source: np.ndarray, target: np.ndarray) -> bool:
    """Return whether the target has lost precision in any of the draws (draws, ...)."""
    finite = np.isfinite(exact) & np.isfinite(source)
    allowed = np.maximum(_ROUNDINGS * float(np.finfo(np.float32).eps), _LOST * _errors(source, exact, finite))
    return not (_errors(target, exact, finite) <= allowed).all()


def _errors(values: np.ndarray, reference: np.ndarray, where: np.ndarray) -> np.ndarray:
    """The relative error of each draw: the largest difference over the largest value of the reference, (draws,)."""
    axes = tuple(range(1, values.ndim))
    with np.errstate(invalid="ignore"):
        differences = np.abs(values - reference).max(axes, where=where, initial=0.0)
    scale = np.abs(reference).max(axes, where=where, initial=0.0)
    return np.asarray(differences / np.where(scale == 0.0, 1.0, scale))


def _float_values(instance: Instance, drawn: Callable[[tuple[int, ...]], np.ndarray]) -> list[np.ndarray]:
    """The values of the variables, in order: float32, except for indices and quantised numbers."""
    given = ((name, instance.given(name)) for name in instance.types)
    return [instance.elements(name, drawn(instance.shape(name))) if value is None else value for name, value in given]


def _run(graph: Graph, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    session = open_session(standalone_model(graph), "as_written")
    wanted = {i.name for i in session.get_inputs()}
    return list(session.run(None, {k: v for k, v in feeds.items() if k in wanted}))


def _refuted_without_condition(sampler: Sampler, config: VerificationConfig, random: Random) -> int:
    """Count the drawn shapes at which the rule would be wrong without its condition, which is why it has one.

    The values come from a generator of their own: how many numbers the float checks draw depends on the machine, and
    a certificate must not.
    """
    if not sampler.rule.where:
        return 0
    rng = np.random.default_rng((config.seed, 1))
    drawn = (sampler.sides(sampler.draw(random, respect_condition=False)) for _ in range(_UNCONDITIONAL_DRAWS))
    return sum(exact_difference(case, rng, config) != "" for case in drawn if case is not None)


def check_false_controls(controls: Sequence[Rule], config: VerificationConfig) -> int:
    """Verify rules that are known to be wrong; `RuleError` if one of them passes. Returns how many were refused."""
    for control in controls:
        if isinstance(verify(control, config), Certificate):
            raise RuleError(
                f"the verifier accepted {control.equation()!r}, which is false: trust none of its certificates"
            )
    return len(controls)
