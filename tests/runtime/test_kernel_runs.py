"""The kernels of a model as deployed, and the optimisers of ONNX Runtime without which there are others."""

from pathlib import Path

import numpy as np
from onnx import ModelProto
from support.small_models import dense_model
from support.subnormal_models import convolutions

from rlflow.onnx_io.external_data import write_mapped
from rlflow.runtime.inputs import draw_inputs
from rlflow.runtime.kernel_runs import at_work, operators


def run_of(model: ModelProto, folder: Path) -> tuple[Path, dict[str, np.ndarray]]:
    return write_mapped(model, folder / "model.onnx"), draw_inputs(model, np.random.default_rng(0))


def test_those_at_work_change_the_kernels(tmp_path: Path) -> None:
    """A product and its bias become a Gemm, filters blocked; without any one of these other kernels run."""
    dense = run_of(dense_model(), tmp_path)
    found = list(at_work(*dense))
    assert "MatMulAddFusion" in found
    for name in found:
        assert operators(*dense, [name]) != operators(*dense)
    images = run_of(convolutions(), tmp_path)
    assert set(at_work(*images)) & {"ConvActivationFusion", "NchwcTransformer"}


def test_nothing_is_at_work_when_the_time_is_over(tmp_path: Path) -> None:
    assert list(at_work(*run_of(dense_model(), tmp_path), is_over=lambda: True)) == []
