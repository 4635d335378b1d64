"""PyTorch as a baseline: it computes what ONNX Runtime computes, or is not timed."""

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnx
import pytest
from studies.paper.documents import Paper
from studies.paper.frameworks import FrameworksCell, check, in_pytorch
from studies.paper.rows import summary
from studies.reward_study.cases import TimingConfig
from studies.subject import Subject

from rlflow import schemas, zoo
from rlflow.cost.base import CostContext
from rlflow.equivalence.reference import run_original
from rlflow.equivalence.tolerance import tolerance_of
from rlflow.errors import EquivalenceError
from rlflow.onnx_io import save_model
from rlflow.runtime.runtimes import open_model

pytestmark = pytest.mark.skipif(find_spec("onnx2torch") is None, reason="make setup installs onnx2torch")
SMALL = {"layers": 1, "hidden": 64, "heads": 2, "intermediate": 128, "sequence": 16}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "bert.onnx"
    save_model(zoo.build("bert", **SMALL), path)
    return path


def test_both_stand_beside_the_control(model: Path):
    cell = FrameworksCell(Subject(model, "analytic", CostContext()), 0, TimingConfig(rounds=2, runs_per_round=1), 2)
    found = cell.run()
    assert [*found] == ["original", "pytorch"]
    for row in found.values():
        for setting in ("as_written", "deployed"):
            low, high = (row.figures[f"latency_ratio_{setting}_{end}"] for end in ("low", "high"))
            assert 0 < low <= row.figures[f"latency_ratio_{setting}"] <= high
    assert found["original"].figures["latency_ratio_deployed"] != 1.0, "it was timed twice"
    schemas.validate(Paper, summary({("bert", name, 0): row for name, row in found.items()}))


def test_other_weights_are_noticed(model: Path):
    """The same model agrees, so that what is noticed is the change."""
    reference = run_original(model, open_model(model, "as_written"), draws=2, seed=0)
    tolerance = tolerance_of(onnx.load(model))
    check(in_pytorch(model), reference, tolerance)

    changed = onnx.load(model)
    for weight in changed.graph.initializer:
        if weight.data_type == onnx.TensorProto.FLOAT and len(weight.dims) == 2:
            weight.raw_data = (onnx.numpy_helper.to_array(weight) * np.float32(1.1)).tobytes()
    onnx.save(changed, model)
    with pytest.raises(EquivalenceError, match="PyTorch and ONNX Runtime disagree"):
        check(in_pytorch(model), reference, tolerance)


def test_inputs_go_where_their_names_say(model: Path):
    """BERT has several, of which each means something else."""
    whole = in_pytorch(model)
    assert len(whole.inputs) > 1
    reference = run_original(model, open_model(model, "as_written"), draws=1, seed=0)
    with pytest.raises((EquivalenceError, IndexError, RuntimeError)):
        check(replace(whole, inputs=whole.inputs[::-1]), reference, tolerance_of(onnx.load(model)))
