"""Verification: no rule is trusted. Each is tested on drawn instances, exactly over a finite field and then in floats.

Over the field a wrong equality of rational functions of degree d survives one trial with probability at most d / p
(Schwartz-Zippel), so that a handful of trials leaves nothing to chance; signs and uninterpreted functions are settled
element by element, hence the minimum of compared elements. The float run on ONNX Runtime is no proof, but the only step
that sees domain errors, overflow, and an operator whose attribute we misread (research/rule_generation.md, 3).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

import numpy as np
import onnx

from rlflow.errors import CertificateError, RuleError, TypeInferenceError
from rlflow.ir.graph import Graph, Header
from rlflow.onnx_io import to_onnx
from rlflow.onnx_io.element_type import to_value_info
from rlflow.ops.domain import FieldArray, FieldDomain, NestedExponentialError
from rlflow.ops.reference import evaluate
from rlflow.rules import instances
from rlflow.rules.expression import Unproven
from rlflow.rules.instances import Instance
from rlflow.rules.rule import Certificate, Rule, canonical
from rlflow.runtime.session import open_session

METHOD = "field-random+float"
SEMANTICS = "1"
"""Raised whenever the meaning of an operator or of a rule's notation changes: older certificates are then void."""

_ROUNDINGS = 1000
"""Float check: the largest difference allowed, in units of rounding of the largest reference value."""


@dataclass(frozen=True)
class VerificationConfig:
    """How much is drawn. `min_elements` is per shape, over all its trials."""

    shapes: int = 24
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
    tested: dict[str, Instance] = {}
    for _ in range(20 * config.shapes):
        if len(tested) >= config.shapes:
            break
        instance = instances.draw(rule, rng)
        tested.setdefault(repr((instance.types, instance.attributes)), instance)
    compared = 0
    for instance in tested.values():
        reason = field_difference(rule, instance, rng, config)
        if reason == _TARGET_UNTYPED:
            continue
        compared += 1
        if reason:
            return Refutation(reason, instance)
    if compared == 0:
        return Refutation("the target is well typed at none of the drawn shapes", None)
    largest = 0.0
    for instance in list(tested.values())[-config.float_cases :]:
        error = float_difference(rule, instance, rng)
        if error is not None and not error <= _ROUNDINGS * float(np.finfo(np.float32).eps):
            return Refutation(f"ONNX Runtime's outputs differ by {error:.2e} of the largest value", instance)
        largest = max(largest, error or 0.0)
    certificate = Certificate(
        method=METHOD,
        trials=config.trials,
        shapes=compared,
        refuted_without_condition=_refuted_without_condition(rule, config, rng),
        float_cases=config.float_cases,
        max_relative_error=float(f"{largest:.3e}"),
        semantics=SEMANTICS,
        digest="",
    )
    return replace(certificate, digest=digest(rule, certificate))


def certified(rule: Rule, config: VerificationConfig) -> Rule:
    """The rule with its certificate; `RuleError` with the counter-example if it is refuted."""
    outcome = verify(rule, config)
    if isinstance(outcome, Refutation):
        raise RuleError(f"rule {rule.id} ({rule.name}) is refuted: {outcome}")
    return replace(rule, certificate=outcome)


def digest(rule: Rule, certificate: Certificate) -> str:
    """Binds a certificate to its rule and to its own figures."""
    content = {"rule": canonical(rule), "certificate": certificate.to_json() | {"digest": ""}}
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


_TARGET_UNTYPED = "the target is not well typed"


def field_difference(rule: Rule, instance: Instance, rng: np.random.Generator, config: VerificationConfig) -> str:
    """Empty if both sides agree exactly in every trial, else the reason why not."""
    source = instances.side(rule.source, instance)
    try:
        target = instances.side(rule.target, instance)
    except (TypeInferenceError, Unproven):
        return _TARGET_UNTYPED
    if [source.type_of(r) for r in source.outputs] != [target.type_of(r) for r in target.outputs]:
        return _TARGET_UNTYPED  # the matcher refuses such a place
    trials = max(config.trials, -(-config.min_elements // max(1, instances.elements(source))))
    for _ in range(trials):
        domain = FieldDomain(seed=int(rng.integers(1 << 62)))
        feeds = {n: _field_value(domain, instance, n, rng) for n in instance.types}
        try:
            left, right = evaluate(source, feeds, domain), evaluate(target, feeds, domain)
        except NestedExponentialError as error:
            return str(error)
        for name in left:
            if difference := _differ(left[name], right[name]):
                return difference
    return ""


def _field_value(domain: FieldDomain, instance: Instance, name: str, rng: np.random.Generator) -> FieldArray:
    shape = tuple(d for d in instance.types[name].shape or () if isinstance(d, int))
    if name in instance.literals:
        constant = domain.constant(instance.literals[name])
        broadcast: Callable[[np.ndarray], np.ndarray] = lambda v: np.broadcast_to(v, shape)  # noqa: E731
        return domain.structural(broadcast, constant)  # type: ignore[no-any-return]
    return domain.draw(shape, rng)


def _differ(a: FieldArray, b: FieldArray) -> str:
    if (a.undefined != b.undefined).any():
        return "the sides are undefined at different points"
    if (np.where(a.undefined, 0, a.residue) != np.where(b.undefined, 0, b.residue)).any():
        return "the sides have different values"
    return ""


def float_difference(rule: Rule, instance: Instance, rng: np.random.Generator) -> float | None:
    """Largest difference of the two sides in ONNX Runtime over the largest reference value.

    None if the target is not well typed here; infinity if the sides are undefined at different points.
    """
    try:
        sides = [instances.side(terms, instance) for terms in (rule.source, rule.target)]
    except (TypeInferenceError, Unproven):
        return None
    feeds = {
        name: np.full(kind.shape, instance.literals[name], np.float32)
        if name in instance.literals
        else rng.standard_normal(kind.shape, dtype=np.float32)
        for name, kind in instance.types.items()
    }
    left, right = (_run(graph, feeds) for graph in sides)
    worst = 0.0
    for a, b in zip(left, right, strict=True):
        defined = np.isfinite(a)
        if (defined != np.isfinite(b)).any():
            return float("inf")
        if defined.any():
            scale = float(np.abs(a[defined]).max()) or 1.0
            worst = max(worst, float(np.abs(a[defined] - b[defined]).max()) / scale)
    return worst


def _run(graph: Graph, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    session = open_session(as_model(graph), "as_written")
    wanted = {i.name for i in session.get_inputs()}
    return list(session.run(None, {k: v for k, v in feeds.items() if k in wanted}))


def as_model(graph: Graph) -> onnx.ModelProto:
    """A graph that was built here rather than imported, as an ONNX model (IR version 10)."""
    model = onnx.ModelProto(ir_version=10)
    model.opset_import.add(version=graph.header.opset)
    model.graph.name = "rule"
    for identifier in graph.inputs:
        node = graph.nodes[identifier]
        assert node.types[0] is not None
        model.graph.input.append(to_value_info(node.names[0], node.types[0]))
    for ref, name in zip(graph.outputs, graph.output_names, strict=True):
        kind = graph.type_of(ref)
        assert kind is not None
        model.graph.output.append(to_value_info(name, kind))
    return to_onnx(replace(graph, header=Header(graph.header.opset, model)))


def _refuted_without_condition(rule: Rule, config: VerificationConfig, rng: np.random.Generator) -> int:
    """At how many of the drawn shapes the rule would be wrong if its condition were dropped: why it is there."""
    if not rule.where:
        return 0
    refuted = 0
    for _ in range(config.shapes):
        instance = instances.draw(rule, rng, respect_condition=False)
        refuted += field_difference(rule, instance, rng, config) not in ("", _TARGET_UNTYPED)
    return refuted


def check_false_controls(controls: Sequence[Rule], config: VerificationConfig) -> int:
    """Verify rules that are known to be wrong; `RuleError` if one of them passes. Returns how many were refused."""
    for control in controls:
        if isinstance(verify(control, config), Certificate):
            raise RuleError(
                f"the verifier accepted {control.equation()!r}, which is false: trust none of its certificates"
            )
    return len(controls)
