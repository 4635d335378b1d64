"""Where no step of a trajectory is wrong, import or export is named."""

from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from support.derivations import derivation

from rlflow.equivalence.compare import compare
from rlflow.errors import EquivalenceError
from rlflow.optimise.gate import GateConfig, check


def test_where_no_step_is_wrong_import_or_export_is(tmp_path):
    """An exporter that spoils a weight; both whole models are written, and no trajectory."""
    made = derivation(
        [("Mul", ["x", "two"], ["n"]), ("Neg", ["n"], ["m"]), ("Relu", ["m"], ["y"])], {"two": np.float32(2)}
    )
    spoiled = onnx.ModelProto()
    spoiled.CopyFrom(made.original)
    spoiled.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.float32(2.5), "two"))
    nothing_done = replace(made, candidate=spoiled, trajectory=replace(made.trajectory, steps=()))
    folder = tmp_path / "out.onnx.reproducer"
    with pytest.raises(EquivalenceError, match="it broke at import or export: no step changes what it computes"):
        check(nothing_done, GateConfig(), folder)
    assert {path.name for path in folder.iterdir()} == {"README.txt", "before.onnx", "after.onnx", "inputs.npz"}
    with np.load(folder / "inputs.npz") as arrays:
        inputs = dict(arrays)
    assert not compare(folder / "before.onnx", folder / "after.onnx", inputs=[inputs]).equivalent
    assert "rlflow replay" not in (folder / "README.txt").read_text()
