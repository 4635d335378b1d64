"""Certificates can be made again, and are the same each time."""

from dataclasses import replace
from random import Random

import pytest

from rlflow.rules.certificate import Certificate
from rlflow.rules.library import Library
from rlflow.rules.verification.sampler import Sampler
from rlflow.rules.verification.verify import VerificationConfig, certified, verify

_EVERY = 5


@pytest.mark.slow
def test_certificates_can_be_made_again(library: Library) -> None:
    """The figures in the file are those that the verifier finds: nobody wrote them by hand. The error in floats, and
    with it the digest, is the machine's.
    """

    def exact(certificate: Certificate | None) -> Certificate:
        assert certificate is not None
        return replace(certificate, max_relative_error=0.0, digest="")

    for rule in library.rules[::_EVERY]:
        again = certified(rule, VerificationConfig())
        assert exact(again.certificate) == exact(rule.certificate), rule.name


def test_every_mined_condition_is_needed(library: Library) -> None:
    """A verifier that never sees a wrong instance certifies nothing: conditions must rule some out. (Some, as those of
    joins and windows, are about sizes without which the target is not well typed.)
    """
    mined = [r for r in library.rules if r.where and r.family in ("algebra", "transformer")]
    assert len(mined) > 10
    idle = [r for r in mined if r.certificate is None or not r.certificate.refuted_without_condition]
    assert len(idle) < len(mined) / 10
    for rule in idle:
        sampler, random = Sampler(rule), Random(0)
        drawn = [sampler.sides(sampler.draw(random, respect_condition=False)) for _ in range(100)]
        assert None in drawn, rule.equation()


def test_verification_is_deterministic(library: Library) -> None:
    rule = library.get("scale-into-weight")
    assert verify(rule, VerificationConfig(seed=3)) == verify(rule, VerificationConfig(seed=3))
