"""Rules of padding and of factors around convolutions: each is verified and keeps outputs; mistakes are refused."""

from random import Random

import numpy as np
import pytest
from support.rewrites import assert_same_outputs, embed

from rlflow.rules.certificate import Certificate
from rlflow.rules.declared import convolution, padding
from rlflow.rules.declared.catalogue import controls_of, rules_of
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.rules.verification import sampler
from rlflow.rules.verification.refutation import Refutation
from rlflow.rules.verification.verify import VerificationConfig, verify

QUICKLY = VerificationConfig(shapes=8, float_cases=1)
_OF_FACTORS = ("scale-out-of-image", "scale-into-image", "scale-out-of-filters", "scale-into-filters")
FACTORS = [rule for rule in rules_of(convolution) if rule.name in (*_OF_FACTORS, "convolution-of-filter-sum")]


@pytest.mark.parametrize("rule", [*rules_of(padding), *FACTORS], ids=lambda rule: rule.name)
def test_a_rule_is_verified_and_keeps_the_outputs(rule):
    assert isinstance(verify(rule, QUICKLY), Certificate)
    rng = np.random.default_rng(0)
    before, _ = embed(rule, sampler.draw(rule, Random(0)), rng)
    rewriter = Rewriter([rule])
    after = rewriter.apply(before, rewriter.matches(before)[0][0])
    assert {i: n.op for i, n in after.nodes.items()} != {i: n.op for i, n in before.nodes.items()}
    assert_same_outputs(before, after, rng)


def test_there_are_rules_of_factors():
    assert len(FACTORS) == len(_OF_FACTORS) + 1


@pytest.mark.parametrize("control", controls_of(padding), ids=lambda control: control.name)
def test_a_mistake_is_refused(control):
    assert isinstance(verify(control, QUICKLY), Refutation)
