"""Certificates made anew where they no longer hold, as after a change of what an operator means."""

from __future__ import annotations

from dataclasses import replace

from rlflow.errors import CertificateError
from rlflow.rules.certificate import check_certificate
from rlflow.rules.library import Library
from rlflow.rules.rule import Rule
from rlflow.rules.verification.verify import VerificationConfig, certified


def recertified(library: Library, config: VerificationConfig) -> Library:
    """The library with the rules whose certificate does not hold verified again; nothing else in it changes.

    `RuleError` with the counter-example if one of them is refuted: under today's meaning it is false.
    """
    rules = (rule if holds(rule) else certified(replace(rule, certificate=None), config) for rule in library.rules)
    return Library(tuple(rules))


def holds(rule: Rule) -> bool:
    """Return True if the rule has a certificate that is its own and of today's semantics."""
    try:
        check_certificate(rule)
    except CertificateError:
        return False
    return True
