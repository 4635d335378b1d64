"""A model of float16 beside itself in float32."""

import numpy as np
from support.examined import subject_of
from support.small_models import dense_model

from rlflow.doctor.findings.half_precision import half_precision


def test_float32_is_not_looked_at(tmp_path):
    assert not list(half_precision(subject_of(dense_model(), tmp_path)))


def test_float16_runs_in_float32_too(tmp_path):
    """It is the clock's decision whether that is faster."""
    for finding in half_precision(subject_of(dense_model(dtype=np.float16), tmp_path)):
        assert "float32" in finding.advice
        assert finding.remedy is None, "its inputs would have another type"
