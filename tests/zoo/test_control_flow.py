"""The Loop model against a Python loop."""

import numpy as np
import onnx
import pytest

from rlflow import zoo


def reference(w: dict[str, np.ndarray], x: np.ndarray, steps: int) -> dict[str, np.ndarray]:
    w = {name: values.astype(np.float64) for name, values in w.items()}
    drive = x @ w["loop/drive/weight"]
    state, trace = drive, []
    for _ in range(steps):
        state = np.tanh(state @ w["loop/recurrent/weight"] + drive)
        trace.append(state * w["loop/gain"])
    y = state @ w["loop/expand/weight"] @ w["loop/contract/weight"]
    return {"y": y.astype(np.float32), "trace": np.stack(trace).astype(np.float32)}


@pytest.mark.parametrize("settings", [{}, {"rows": 1, "width": 3, "steps": 1}, {"steps": 9, "opset": 21}])
def test_equals_numpy(settings, run, parameters, assert_close):
    model = zoo.build("loop", **settings)
    x = np.random.default_rng(0).standard_normal((settings.get("rows", 4), settings.get("width", 16)))
    x = x.astype(np.float32)
    steps = settings.get("steps", 5)
    actual, expected = run(model, {"x": x}), reference(parameters(model), x, steps)
    assert list(actual) == list(expected)
    for name, values in expected.items():
        assert_close(actual[name], values, depth=3 * steps + 3, terms=16)


def test_the_body_captures_a_weight_and_a_computed_value():
    model = zoo.build("loop")
    (loop,) = (node for node in model.graph.node if node.op_type == "Loop")
    body = loop.attribute[0].g
    inside = {value.name for value in body.input} | {name for node in body.node for name in node.output}
    captured = {name for node in body.node for name in node.input} - inside
    initialisers = {tensor.name for tensor in model.graph.initializer}
    computed = {name for node in model.graph.node for name in node.output}
    assert captured & initialisers == {"loop/recurrent/weight", "loop/gain"}
    assert captured & computed == {"loop/drive/MatMul"}
    assert captured <= initialisers | computed
    onnx.checker.check_model(model, full_check=True)
