"""Verification: no rule is trusted. Each is tested on drawn instances, exactly over a finite field and then in floats.

Over the field a wrong equality of rational functions of degree d survives one trial with probability at most d / p
(Schwartz-Zippel), so that a handful of trials leaves nothing to chance; signs and uninterpreted functions are settled
element by element, hence the minimum of compared elements. The float run on ONNX Runtime is no proof, but the only step
that sees an operator whose attribute we misread (research/rule_generation.md, 3). Poles, overflow and cancellation are
too rare to be drawn: last steps seek them with numbers like 0 and 100, and with tensors of very different magnitudes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

import numpy as np

from rlflow.errors import CertificateError, RuleError, TypeInferenceError
from rlflow.ir.graph import Graph
from rlflow.onnx_io.standalone import standalone_model
from rlflow.ops.domain import Array, FieldArray, FieldDomain, FloatDomain, NestedExponentialError
from rlflow.rules import instances
from rlflow.rules.expression import Unproven
from rlflow.rules.instances import Instance, Plan
from rlflow.rules.rule import Certificate, Rule
from rlflow.runtime.session import open_session

METHOD = "field-random+float+domain+precision"
SEMANTICS = "1"
"""Raised whenever the meaning of an operator or of a rule's notation changes: older certificates are then void."""

_ROUNDINGS = 1000
"""Float check: the largest difference allowed, in units of rounding of the largest reference value."""

_DRAWS_PER_SHAPE = 2
_UNCONDITIONAL_DRAWS = 24
_LEAST_COMPARED = 0.25
"""Where the target is seldom well typed, it may be so at degenerate shapes alone, which prove nothing."""


@dataclass(frozen=True)
class VerificationConfig:
    """How much is drawn. `min_elements` is per shape, over all its trials. Rules with permutations are tested at
    `turned` times as many shapes.
    """

    shapes: int = 64
    turned: int = 4
    trials: int = 3
    min_elements: int = 64
    float_cases: int = 4
    seed: int = 0


@dataclass(frozen=True)
class Refutation:
    """Why a rule is not accepted: a counter-example that can be evaluated again."""

    reason: str
    instance: Instance | None

    def __str__(self) -> str:
        if self.instance is None:
            return self.reason
        shapes = {name: list(kind.shape or ()) for name, kind in self.instance.types.items()}
        attributes = f", attributes {dict(self.instance.attributes)}" if self.instance.attributes else ""
        return f"{self.reason} at shapes {shapes}{attributes}"


def verify(rule: Rule, config: VerificationConfig) -> Certificate | Refutation:
    """A certificate, or the counter-example that refutes the rule."""
    rng = np.random.default_rng(config.seed)
    seen: set[Any] = set()
    compared: list[Instance] = []
    shapes = config.shapes * (config.turned if instances.is_turned(rule) else 1)
    for _ in range(_DRAWS_PER_SHAPE * shapes):
        if len(compared) == shapes:
            break
        instance = instances.draw(rule, rng)
        key = (*instance.types.values(), *instance.attributes.items())
        if key in seen:
            continue
        seen.add(key)
        reason = field_difference(rule, instance, rng, config)
        if reason == TARGET_UNTYPED:
            continue
        if reason:
            return Refutation(reason, instance)
        compared.append(instance)
    if len(compared) < _LEAST_COMPARED * len(seen):
        return Refutation(f"the target is well typed at only {len(compared)} of {len(seen)} drawn instances", None)
    largest = 0.0
    cases = sorted(compared, key=_size, reverse=True)[: config.float_cases]
    for instance in cases:
        error = float_difference(rule, instance, rng)
        if not error <= _ROUNDINGS * float(np.finfo(np.float32).eps):
            return Refutation(f"ONNX Runtime's outputs differ by {error:.2e} of the largest value", instance)
        largest = max(largest, error)
        if leaves_domain(rule, instance, rng):
            return Refutation("the target is infinite or undefined where the source is finite", instance)
        if loses_precision(rule, instance, rng):
            return Refutation("the target is far less accurate than the source where magnitudes differ", instance)
    certificate = Certificate(
        method=METHOD,
        trials=config.trials,
        shapes=len(compared),
        refuted_without_condition=_refuted_without_condition(rule, config, rng),
        float_cases=len(cases),
        max_relative_error=float(f"{largest:.3e}"),
        semantics=SEMANTICS,
        digest="",
    )
    return replace(certificate, digest=digest(rule, certificate))


def _size(instance: Instance) -> int:
    return sum(kind.elements for kind in instance.types.values())


def certified(rule: Rule, config: VerificationConfig) -> Rule:
    """The rule with its certificate; `RuleError` with the counter-example if it is refuted."""
    outcome = verify(rule, config)
    if isinstance(outcome, Refutation):
        raise RuleError(f"rule {rule.id} ({rule.name}) is refuted: {outcome}")
    return replace(rule, certificate=outcome)


def digest(rule: Rule, certificate: Certificate) -> str:
    """Binds a certificate to its rule and to its own figures."""
    content = {"rule": rule.to_json() | {"certificate": certificate.to_json() | {"digest": ""}}}
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def check_certificate(rule: Rule) -> None:
    """`CertificateError` naming the rule if its certificate is missing, corrupted or of other semantics."""
    where = f"rule {rule.id} ({rule.name})"
    if rule.certificate is None:
        raise CertificateError(f"{where} has no certificate: run `rlflow rules verify` on its library")
    if rule.certificate.semantics != SEMANTICS or rule.certificate.method != METHOD:
        raise CertificateError(f"{where} was certified under other semantics: generate the library again")
    if rule.certificate.digest != digest(rule, rule.certificate):
        raise CertificateError(f"{where}: the rule or its certificate was changed after verification")


TARGET_UNTYPED = "the target is not well typed"


def field_difference(rule: Rule, instance: Instance, rng: np.random.Generator, config: VerificationConfig) -> str:
    """Empty if both sides agree exactly in every trial, else the reason why not."""
    source = instances.plan(rule.source, instance)
    try:
        target = instances.plan(rule.target, instance)
    except (TypeInferenceError, Unproven):
        return TARGET_UNTYPED
    if source.types != target.types:
        return TARGET_UNTYPED  # the matcher refuses such a place
    elements = sum(kind.elements for kind in source.types)
    trials = max(config.trials, -(-config.min_elements // max(1, elements)))
    domain = FieldDomain(seeds=rng.integers(1 << 62, size=trials).tolist())
    values = [_field_value(domain, instance, name, rng) for name in instance.types]
    try:
        sides = [instances.run(side, values, domain) for side in (source, target)]
    except NestedExponentialError as error:
        return str(error)
    except IndexError:
        return "the target selects an element that there is not"
    return next(filter(None, map(differ, *sides)), "")


def _field_value(domain: FieldDomain, instance: Instance, name: str, rng: np.random.Generator) -> Array:
    shape = instance.shape(name)
    if name in instance.indices:
        return instance.indices[name]
    if name in instance.literals:
        constant = domain.constant(instance.literals[name])
        broadcast: Callable[[np.ndarray], np.ndarray] = lambda v: np.broadcast_to(v, shape)  # noqa: E731
        return domain.structural(broadcast, constant)  # type: ignore[no-any-return]
    return domain.draw(shape, rng)


def differ(a: FieldArray, b: FieldArray) -> str:
    """Empty if the arrays are equal in every trial, else in what they are not."""
    if (a.undefined != b.undefined).any():
        return "the sides are undefined at different points"
    if (np.where(a.undefined, 0, a.residue) != np.where(b.undefined, 0, b.residue)).any():
        return "the sides have different values"
    return ""


def float_difference(rule: Rule, instance: Instance, rng: np.random.Generator) -> float:
    """Largest difference of the two sides in ONNX Runtime over the largest reference value; infinity if the sides
    are undefined at different points. Both sides must be well typed at the instance.
    """
    sides = [instances.plan(terms, instance) for terms in (rule.source, rule.target)]
    values = _float_values(instance, rng.standard_normal)
    outputs = _run(instances.as_graph(sides, instance), dict(zip(instance.types, values, strict=True)))
    worst = 0.0
    for a, b in zip(outputs[: len(rule.source)], outputs[len(rule.source) :], strict=True):
        defined = np.isfinite(a)
        if (defined != np.isfinite(b)).any():
            return float("inf")
        worst = max(worst, _error(b, a, defined))
    return worst


_SPECIAL = (0.0, 1.0, -1.0, 30.0, -100.0, 100.0)
"""Numbers of models in use at which functions have poles, or leave the range of float32 (exp of 100)."""

_SPECIAL_DRAWS = 4


def leaves_domain(rule: Rule, instance: Instance, rng: np.random.Generator) -> bool:
    """Whether the target has no finite value, in float32, somewhere where the source has one: a / a is not 1 at 0, and
    exp(a + b) not exp(a) exp(b) where one of these is infinite. Both sides must be well typed at the instance.
    """
    source, target = (instances.plan(terms, instance) for terms in (rule.source, rule.target))
    for _ in range(_SPECIAL_DRAWS):
        values = _float_values(instance, lambda shape: rng.choice(_SPECIAL, shape))
        sides = [_computed(side, values) for side in (source, target)]
        if any((np.isfinite(a) & ~np.isfinite(b)).any() for a, b in zip(*sides, strict=True)):
            return True
    return False


_MAGNITUDES = (1e-5, 1.0, 1e5)
_MAGNITUDE_DRAWS = 8
_LOST = 10.0
"""The target may be so many times less accurate than the source."""


def loses_precision(rule: Rule, instance: Instance, rng: np.random.Generator) -> bool:
    """Whether the target, in float32, is far from where the source is near what float64 gives: a + (b - a) is not b
    where a is much larger. Each tensor has a magnitude of its own. Both sides must be well typed at the instance.
    """
    source, target = (instances.plan(terms, instance) for terms in (rule.source, rule.target))
    for _ in range(_MAGNITUDE_DRAWS):
        values = _float_values(instance, lambda shape: rng.choice(_MAGNITUDES) * rng.standard_normal(shape))
        exact = _computed(source, [v.astype(np.float64) if v.dtype.kind == "f" else v for v in values])
        sides = (_computed(side, values) for side in (source, target))
        for reference, a, b in zip(exact, *sides, strict=True):
            finite = np.isfinite(reference) & np.isfinite(a)
            allowed = max(_ROUNDINGS * float(np.finfo(np.float32).eps), _LOST * _error(a, reference, finite))
            if not _error(b, reference, finite) <= allowed:
                return True
    return False


def _error(values: np.ndarray, reference: np.ndarray, where: np.ndarray) -> float:
    """Largest difference over the largest value of the reference."""
    if not where.any():
        return 0.0
    scale = float(np.abs(reference[where]).max()) or 1.0
    return float(np.abs(values[where] - reference[where]).max()) / scale


def _float_values(instance: Instance, drawn: Callable[[tuple[int, ...]], np.ndarray]) -> list[np.ndarray]:
    """Of each variable, in float32 but for indices."""
    given = ((name, instance.given(name)) for name in instance.types)
    return [drawn(instance.shape(name)).astype(np.float32) if value is None else value for name, value in given]


def _computed(side: Plan, values: Sequence[np.ndarray]) -> list[np.ndarray]:
    with np.errstate(all="ignore"):
        return instances.run(side, values, FloatDomain())  # type: ignore[return-value]


def _run(graph: Graph, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    session = open_session(standalone_model(graph), "as_written")
    wanted = {i.name for i in session.get_inputs()}
    return list(session.run(None, {k: v for k, v in feeds.items() if k in wanted}))


def _refuted_without_condition(rule: Rule, config: VerificationConfig, rng: np.random.Generator) -> int:
    """At how many of the drawn shapes the rule would be wrong if its condition were dropped: why it is there."""
    if not rule.where:
        return 0
    refuted = 0
    for _ in range(_UNCONDITIONAL_DRAWS):
        instance = instances.draw(rule, rng, respect_condition=False)
        refuted += field_difference(rule, instance, rng, config) not in ("", TARGET_UNTYPED)
    return refuted


def check_false_controls(controls: Sequence[Rule], config: VerificationConfig) -> int:
    """Verify rules that are known to be wrong; `RuleError` if one of them passes. Returns how many were refused."""
    for control in controls:
        if isinstance(verify(control, config), Certificate):
            raise RuleError(
                f"the verifier accepted {control.equation()!r}, which is false: trust none of its certificates"
            )
    return len(controls)
