"""Optimisers of ONNX Runtime that do something to a model are found, and timed one by one."""

from support.examined import subject_of
from support.small_models import dense_model
from support.subnormal_models import convolutions

from rlflow.doctor.findings.harmful_fusions import at_work, harmful_fusions, kernels
from rlflow.optimise.clock import Deadline
from rlflow.runtime.transformers import OPTIMISERS


def test_those_at_work_change_the_kernels(tmp_path):
    """A product and its bias become a Gemm, filters blocked; without any one of these other kernels run."""
    dense = subject_of(dense_model(), tmp_path)
    found = list(at_work(dense, OPTIMISERS, kernels(dense, ())))
    assert "MatMulAddFusion" in found
    for name in found:
        assert kernels(dense, [name]) != kernels(dense, ())
    images = subject_of(convolutions(), tmp_path)
    assert set(at_work(images, OPTIMISERS, kernels(images, ()))) & {"ConvActivationFusion", "NchwcTransformer"}


def test_nothing_is_at_work_when_the_time_is_over(tmp_path):
    subject = subject_of(dense_model(), tmp_path, Deadline(0.0))
    assert list(at_work(subject, OPTIMISERS, kernels(subject, ()))) == []


def test_what_is_found_names_the_option(tmp_path):
    """It is the clock's decision whether one is found; what is said follows from it."""
    for finding in harmful_fusions(subject_of(dense_model(), tmp_path)):
        assert "graph_optimization_level" in finding.advice or "disabled_optimizers" in finding.advice
        assert finding.effect.verdict.decision == "faster"
