"""Certificates: what they say of conditions, and that they are the same each time."""

from random import Random

from rlflow.rules.library import Library
from rlflow.rules.verification.sampler import Sampler
from rlflow.rules.verification.verify import VerificationConfig, verify


def test_every_mined_condition_is_needed(library: Library) -> None:
    """A verifier that never sees a wrong instance certifies nothing: conditions must rule some out. (Some, as those of
    joins and windows, are about sizes without which the target is not well typed; those about bounds and elements are
    needed at masks and at size 0, which tests/rules/verification/test_assumptions.py draws.)
    """
    mined = [r for r in library.rules if r.where and r.family in ("algebra", "transformer")]
    mined = [r for r in mined if not {condition[0] for condition in r.where} <= {"bounded", "<="}]
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
