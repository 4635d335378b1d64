"""Optimisers of ONNX Runtime that do something to a model are timed one by one."""

from support.examined import subject_of
from support.small_models import dense_model

from rlflow.doctor.findings.harmful_fusions import harmful_fusions


def test_what_is_found_names_the_option(tmp_path):
    """It is the clock's decision whether one is found; what is said follows from it."""
    for finding in harmful_fusions(subject_of(dense_model(), tmp_path)):
        assert "graph_optimization_level = ORT_DISABLE_ALL" in finding.advice or "disabled_optimizers" in finding.advice
        assert finding.effect.verdict.decision == "faster"
