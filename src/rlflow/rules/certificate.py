"""Certificates: the verifier's acceptance of a rule, bound to that rule and to the semantics it was checked under."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from rlflow.errors import CertificateError
from rlflow.rules.semantics import semantics

if TYPE_CHECKING:
    from rlflow.rules.rule import Rule

METHOD = "field-random+float+domain+precision+values"
FINITE, MODERATE = "finite", "moderate"
ASSUMPTIONS = {
    FINITE: "values are finite: neither side computes NaN or an infinity",
    MODERATE: "values are of ordinary size: products of them in another order neither overflow nor vanish",
}
"""What a rule may assume of the values that a model carries, and what that means."""

REMEDY = "`rlflow rules certify` verifies it again"

_UNBOUND = ("certificate", "declared_at")
"""Of a rule's record, what its certificate does not speak of: itself, and where the rule is declared."""


@dataclass(frozen=True)
class Certificate:
    """The record of a verification that found no fault (`rules/verification/verify.py`).

    `assumes` are those of the `ASSUMPTIONS` without which the rule may change what a model computes. `semantics` are
    the digests of what it rests on (`rules/semantics.py`); `digest` binds it to one rule and to its own content.
    `max_relative_error` is what the floats of this machine differed by: it is told, but never written, so that a
    library is the same file wherever it is made; None where the certificate was read from one.
    """

    method: str
    trials: int
    shapes: int
    refuted_without_condition: int
    float_cases: int
    assumes: tuple[str, ...]
    semantics: Mapping[str, str]
    digest: str
    max_relative_error: float | None = field(default=None, compare=False)

    def to_json(self) -> dict[str, Any]:
        written = {name: getattr(self, name) for name in _WRITTEN}
        return written | {"assumes": list(self.assumes), "semantics": dict(self.semantics)}

    @classmethod
    def from_json(cls, written: object) -> Certificate | None:
        """None where there is none, or one of another form than today's: the rule has to be verified again."""
        if not isinstance(written, Mapping) or set(written) != set(_WRITTEN):
            return None
        if not isinstance(written["semantics"], Mapping) or not isinstance(written["assumes"], list):
            return None
        return cls(**{**written, "assumes": tuple(written["assumes"])})


_WRITTEN = tuple(name for name in Certificate.__dataclass_fields__ if name != "max_relative_error")


def digest(rule: Rule, certificate: Certificate) -> str:
    """Binds a certificate to its rule and to its own figures."""
    said = {key: value for key, value in rule.to_json().items() if key not in _UNBOUND}
    content = said | {"certificate": certificate.to_json() | {"digest": ""}}
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def check_certificate(rule: Rule) -> None:
    """`CertificateError` naming the rule if its certificate is missing, corrupted or of other semantics."""
    where, certificate = f"rule {rule.id} ({rule.name})", rule.certificate
    if certificate is None:
        raise CertificateError(f"{where} has no certificate of today's form: {REMEDY}")
    if certificate.method != METHOD:
        raise CertificateError(f"{where} was certified by another method, {certificate.method}: {REMEDY}")
    changed = _changed(certificate.semantics, semantics(rule))
    if changed:
        raise CertificateError(f"{where} was certified under another meaning of {', '.join(changed)}: {REMEDY}")
    if certificate.digest != digest(rule, certificate):
        raise CertificateError(f"{where}: the rule or its certificate was changed after verification; {REMEDY}")


def _changed(before: Mapping[str, str], today: Mapping[str, str]) -> list[str]:
    """The names whose meaning is another one than it was, or that only one of the two has."""
    return [name for name in {**before, **today} if before.get(name) != today.get(name)]
