import copy
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper

from rlflow.errors import InputError, RLFlowError
from rlflow.runtime import session as session_module
from rlflow.runtime.inputs import draw_inputs
from rlflow.runtime.session import SETTINGS, fused_model, open_session, run, structure_of, weight_bytes


def inputs_of(model: ModelProto) -> dict[str, np.ndarray]:
    return draw_inputs(model, np.random.default_rng(0))


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_session_computes_what_numpy_computes(make_dense, setting):
    model = make_dense()
    inputs = inputs_of(model)
    weight, bias = (onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer)
    expected = np.maximum(inputs["x"] @ weight + bias, 0)
    np.testing.assert_allclose(run(open_session(model, setting), inputs)["y"], expected, rtol=1e-5, atol=1e-5)
    assert expected.any()


def test_settings_differ_in_what_the_runtime_fuses(make_dense):
    assert [node.op_type for node in fused_model(make_dense(), "as_written").graph.node] == [
        "MatMul",
        "Add",
        "Relu",
    ]
    assert [node.op_type for node in fused_model(make_dense(), "deployed").graph.node] == ["FusedGemm"]


def test_a_fused_model_carries_its_weights_and_runs(make_dense):
    model = make_dense(width=64)
    fused = fused_model(model)
    assert weight_bytes(fused) == weight_bytes(model) > 1024
    np.testing.assert_allclose(
        run(open_session(fused, "as_written"), inputs_of(model))["y"],
        run(open_session(model, "deployed"), inputs_of(model))["y"],
        rtol=1e-6,
    )


def test_weights_beyond_the_limit_travel_as_external_data(make_dense, monkeypatch):
    """16 KiB of weights against a limit of 1 KiB stand for 2 GiB; the spilled file must really be what is
    loaded.
    """
    model = make_dense(width=64)
    before = copy.deepcopy(model)
    loaded: list[onnx.ModelProto] = []
    load = session_module._load

    def recording_load(source, *how):
        loaded.append(onnx.ModelProto.FromString(source))
        return load(source, *how)

    monkeypatch.setattr(session_module, "_load", recording_load)
    spilled = open_session(model, "as_written", inline_limit_bytes=1024)
    monkeypatch.undo()

    locations = {tensor.name: tensor.data_location for tensor in loaded[0].graph.initializer}
    assert locations == {"w": TensorProto.EXTERNAL, "b": TensorProto.DEFAULT}
    inline = open_session(model, "as_written")
    np.testing.assert_array_equal(run(spilled, inputs_of(model))["y"], run(inline, inputs_of(model))["y"])
    assert model == before


def test_a_path_is_opened_with_its_own_external_data(make_dense, tmp_path: Path):
    model = make_dense(width=64)
    expected = run(open_session(model, "as_written"), inputs_of(model))["y"]
    path = tmp_path / "model.onnx"
    onnx.save_model(make_dense(width=64), path, save_as_external_data=True, location="weights.bin")
    assert (tmp_path / "weights.bin").stat().st_size > 0
    np.testing.assert_array_equal(run(open_session(path, "as_written"), inputs_of(model))["y"], expected)
    assert structure_of(path).graph.initializer[0].data_location == TensorProto.EXTERNAL


def test_a_refusal_is_raised_and_not_printed_too(make_dense, capfd):
    """ONNX Runtime would write the same on standard error, in red and with the place in its source."""
    with pytest.raises(RLFlowError):
        run(open_session(make_dense(), "as_written"), {"x": np.zeros(9, np.float32)})
    reshape = helper.make_node("Reshape", ["x", "s"], ["y"])
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3])]
    inputs.append(helper.make_tensor_value_info("s", TensorProto.INT64, [1]))
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None])]
    graph = helper.make_graph([reshape], "reshaped", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    with pytest.raises(RLFlowError, match="could not run the model"):
        run(open_session(model, "as_written"), {"x": np.zeros(3, np.float32), "s": np.array([4])})
    assert capfd.readouterr().err == ""


def test_refusals_say_what_and_where(make_dense, make_model, tmp_path: Path):
    with pytest.raises(InputError, match="unknown runtime setting 'fast'; choose one of as_written, deployed"):
        open_session(make_dense(), "fast")
    with pytest.raises(InputError, match="threads is 0"):
        open_session(make_dense(), "deployed", threads=0)
    with pytest.raises(InputError, match=r"no model file at .*absent\.onnx"):
        open_session(tmp_path / "absent.onnx", "deployed")
    text = tmp_path / "text.onnx"
    text.write_text("this is no model")
    with pytest.raises(InputError, match=r"cannot read .*text\.onnx as an ONNX model"):
        structure_of(text)
    with pytest.raises(RLFlowError, match=r"could not load .*text\.onnx"):
        open_session(text, "deployed")
    unknown = make_model(
        [helper.make_node("NoSuchOperator", ["x"], ["y"])],
        [("x", TensorProto.FLOAT, [1])],
        [("y", TensorProto.FLOAT, [1])],
    )
    with pytest.raises(RLFlowError, match=r"could not load graph 'test'.*NoSuchOperator"):
        open_session(unknown, "deployed")
    with pytest.raises(RLFlowError, match=r"could not run the model on inputs x float32\[9\]"):
        run(open_session(make_dense(), "as_written"), {"x": np.zeros(9, np.float32)})
