"""Certificates: the verifier's acceptance of a rule, bound to that rule and to the semantics it was checked under."""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from rlflow.errors import CertificateError

if TYPE_CHECKING:
    from rlflow.rules.rule import Rule

METHOD = "field-random+float+domain+precision"
SEMANTICS = "1"
"""Raised whenever the meaning of an operator or of a rule's notation changes: older certificates are then void."""


@dataclass(frozen=True)
class Certificate:
    """What the verifier did and found (rules/verification/verify.py). `digest` binds it to one rule and to its own
    content.
    """

    method: str
    trials: int
    shapes: int
    refuted_without_condition: int
    float_cases: int
    max_relative_error: float
    semantics: str
    digest: str

    def to_json(self) -> dict[str, Any]:
        return {k: getattr(self, k) for k in self.__dataclass_fields__}


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
