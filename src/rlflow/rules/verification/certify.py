"""Certificates made anew where they no longer hold, as after a change of what an operator means."""

from __future__ import annotations

from dataclasses import replace

from rlflow.errors import CertificateError
from rlflow.rules.certificate import Certificate, check_certificate
from rlflow.rules.library import Library
from rlflow.rules.rule import Rule
from rlflow.rules.verification.verify import VerificationConfig, certified, verify

_MOST_REMEDIES = 8


def recertified(library: Library, config: VerificationConfig) -> Library:
    """The library with the rules whose certificate does not hold verified again; nothing else in it changes.

    A rule that was found by enumeration gets the conditions that it would be found with today. `RuleError` with the
    counter-example if one of them is refuted: under today's meaning it is false.
    """
    return Library(
        tuple(rule if holds(rule) else _again(replace(rule, certificate=None), config) for rule in library.rules)
    )


def _again(rule: Rule, config: VerificationConfig) -> Rule:
    found = None if rule.is_declared else on_remedies(rule, config)
    return found or certified(rule, config)


def on_remedies(rule: Rule, config: VerificationConfig) -> Rule | None:
    """Return the rule with its certificate, under as few as possible of the conditions that exclude counter-examples.

    None if there are none that do.
    """
    added: list[object] = []
    for _ in range(_MOST_REMEDIES):
        narrower = replace(rule, where=(*rule.where, *added))
        outcome = verify(narrower, config)
        if isinstance(outcome, Certificate):
            return _without_idle(rule, added, config) if len(added) > 1 else replace(narrower, certificate=outcome)
        if not outcome.remedies:
            return None
        added.append(outcome.remedies[0])
    return None


def _without_idle(rule: Rule, conditions: list[object], config: VerificationConfig) -> Rule:
    """Drop conditions without which the rule verifies as well; those that were added last are dropped last."""
    for condition in conditions[:]:
        others = [c for c in conditions if c is not condition]
        if isinstance(verify(replace(rule, where=(*rule.where, *others)), config), Certificate):
            conditions = others
    return certified(replace(rule, where=(*rule.where, *conditions)), config)


def holds(rule: Rule) -> bool:
    """Return True if the rule has a certificate that is its own and of today's semantics."""
    try:
        check_certificate(rule)
    except CertificateError:
        return False
    return True
