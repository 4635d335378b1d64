"""The doctor's sentence on subnormal weights, and the model without them."""

import pytest
from support.examined import subject_of
from support.small_models import dense_model
from support.subnormal_models import HARMLESS, amplified, guarded

from rlflow.doctor.findings.subnormal_weights import subnormal_weights
from rlflow.doctor.subject import NotLookedFor
from rlflow.equivalence.compare import compare
from rlflow.subnormal.flush import decayed


@pytest.mark.parametrize("name", ["convolutions", "loop"])
def test_harmless_ones_are_mended(tmp_path, name):
    model = HARMLESS[name]()
    (finding,) = subnormal_weights(subject_of(model, tmp_path))
    numbers = sum(each.subnormal for each in decayed(model).weights)
    assert f"{numbers} numbers are subnormal" in finding.found
    assert "Set them to zero" in finding.advice
    assert finding.effect.before_ms > 0
    assert not decayed(finding.remedy).all
    assert compare(model, finding.remedy).equivalent


@pytest.mark.parametrize("make", [lambda: amplified(1e38), guarded], ids=["needed", "an epsilon"])
def test_others_are_left_with_advice(tmp_path, make):
    (finding,) = subnormal_weights(subject_of(make(), tmp_path))
    assert (finding.remedy, finding.effect) == (None, None)
    assert "They stay as they are" in finding.found
    assert finding.advice


def test_a_model_without_them_is_healthy(tmp_path):
    assert not list(subnormal_weights(subject_of(dense_model(), tmp_path)))


def test_without_a_judgement_nothing_is_proven(tmp_path):
    model = HARMLESS["convolutions"]()
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    with pytest.raises(NotLookedFor, match="batch"):
        list(subnormal_weights(subject_of(model, tmp_path)))
