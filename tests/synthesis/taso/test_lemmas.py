"""Lemmas are verified, and a false one never derives anything."""

import pytest

from rlflow.egraph.saturation import CompiledRule
from rlflow.errors import RuleError
from rlflow.rules.declared.catalogue import false_controls
from rlflow.rules.verification.verify import VerificationConfig, certified
from rlflow.synthesis.taso.lemmas import lemmas


def test_lemmas_are_verified_and_a_false_one_never_derives():
    assert all(lemma.rule.certificate is not None for lemma in lemmas())
    false = false_controls()[0]
    with pytest.raises(RuleError, match="is refuted"):
        certified(false, VerificationConfig())
    with pytest.raises(RuleError, match="no certificate"):
        CompiledRule(false)
