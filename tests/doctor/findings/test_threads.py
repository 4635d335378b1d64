"""Fewer threads beside all of them."""

from dataclasses import replace

import pytest
from support.examined import subject_of
from support.small_models import dense_model

from rlflow.doctor.findings.threads import threads
from rlflow.doctor.subject import NotLookedFor


def test_the_ratios_are_told_and_advice_follows_the_clock(tmp_path):
    (finding,) = threads(subject_of(dense_model(), tmp_path))
    assert "1 thread is " in finding.found
    assert bool(finding.advice) == (finding.effect is not None)
    assert "intra_op_num_threads = 1" in finding.advice or not finding.advice


def test_one_core_leaves_no_choice(tmp_path):
    with pytest.raises(NotLookedFor, match="one core"):
        list(threads(replace(subject_of(dense_model(), tmp_path), threads=1)))
