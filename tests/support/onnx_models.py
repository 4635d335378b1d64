"""Models written with onnx.helper, and a check that a model survives import and export."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, parser

from rlflow import zoo
from rlflow.onnx_io import check_model, from_onnx, to_onnx
from rlflow.runtime.inputs import draw_inputs
from rlflow.runtime.session import SETTINGS, open_session, run
from support.kernels import all_close, rounding_of_export

Build = Callable[..., onnx.ModelProto]
Survives = Callable[..., onnx.ModelProto]


def build_model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    *,
    weights: dict[str, Any] | None = None,
    opset: int = 17,
    domains: Sequence[str] = (),
    ir_version: int = 10,
    **fields: Any,
) -> onnx.ModelProto:
    """A checked model; weights are arrays (or tensors) by name."""
    tensors = []
    for name, value in (weights or {}).items():
        tensor = onnx.TensorProto()
        tensor.CopyFrom(value if isinstance(value, onnx.TensorProto) else numpy_helper.from_array(np.asarray(value)))
        tensor.name = name
        tensors.append(tensor)
    functions = fields.pop("functions", [])
    graph = helper.make_graph(nodes, "graph", inputs, outputs, initializer=tensors, **fields)
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, 1) for d in domains)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=ir_version, functions=functions)
    onnx.checker.check_model(model)
    return model


def floats(name: str, *shape: int | str | None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def interface(model: onnx.ModelProto) -> list[bytes]:
    """Names, order, types and documentation of all inputs and outputs."""
    return [v.SerializeToString(deterministic=True) for v in (*model.graph.input, *model.graph.output)]


def assert_survives(
    before: onnx.ModelProto | Path, feeds: dict[str, Any] | None = None, *, runs: bool = True
) -> onnx.ModelProto:
    """Import and export a model: valid, of the same interface, and equal in outputs bit for bit, but for sums that the
    export folds.
    """
    graph = from_onnx(before)
    after = to_onnx(graph)
    check_model(after)
    original = onnx.load(before, load_external_data=False) if isinstance(before, Path) else before
    assert interface(original) == interface(after)
    assert [(o.domain, o.version) for o in original.opset_import] == [(o.domain, o.version) for o in after.opset_import]
    assert original.ir_version == after.ir_version
    if runs:
        feeds = draw_inputs(original, np.random.default_rng(0)) if feeds is None else feeds
        expected = run(open_session(before, "as_written"), feeds)
        actual = run(open_session(after, "as_written"), feeds)
        assert all_close(expected, actual, rounding_of_export(graph, original))
    return after


def save(path, name, **settings):
    onnx.save(zoo.build(name, **settings), str(path))
    return path


def exported(opset: int = 13) -> onnx.ModelProto:
    """(batch, seq, 12) -> (batch, 3, seq, 4), as torch exports x.view(b, s, 3, 4).transpose(1, 2)."""
    axes, zero = ("<axes = [0]>", "") if opset < 13 else ("", ", zero")
    model = parser.parse_model(
        f"""
        <ir_version: 8, opset_import: ["" : {opset}]>
        exported (float[batch, seq, 12] x) => (float[batch, heads, seq, size] y) {{
            shape = Shape(x)
            first = Constant<value = int64 {{0}}>()
            second = Constant<value = int64 {{1}}>()
            zero = Constant<value = int64[1] {{0}}>()
            three = Constant<value = int64[1] {{3}}>()
            four = Constant<value = int64[1] {{4}}>()
            b = Gather<axis = 0>(shape, first)
            s = Gather<axis = 0>(shape, second)
            b1 = Unsqueeze{axes}(b{zero})
            s1 = Unsqueeze{axes}(s{zero})
            target = Concat<axis = 0>(b1, s1, three, four)
            split = Reshape(x, target)
            turned = Transpose<perm = [0, 2, 1, 3]>(split)
            y = Relu(turned)
        }}
        """
    )
    onnx.checker.check_model(model)
    return model


def with_drawn_weights(text: str) -> onnx.ModelProto:
    """The model, its declared values without numbers being weights to draw."""
    model = parser.parse_model(text)
    rng = np.random.default_rng(0)
    for value in model.graph.value_info:
        shape = [dimension.dim_value for dimension in value.type.tensor_type.shape.dim]
        weight = rng.standard_normal(shape).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(weight, value.name))
    del model.graph.value_info[:]
    onnx.checker.check_model(model)
    return model


def twice(name: str) -> onnx.FunctionProto:
    return helper.make_function(
        "local" if name != "Relu" else "",
        name,
        ["a"],
        ["b"],
        [helper.make_node("Add", ["a", "a"], ["b"])],
        [helper.make_opsetid("", 17)],
    )


def run_in_settings(
    models: Mapping[str, Sequence[onnx.ModelProto]], inputs: Mapping[str, np.ndarray]
) -> dict[str, list[dict[str, np.ndarray]]]:
    """Return the outputs of the models of each name in both settings; a module's function, for other processes."""
    return {
        name: [run(open_session(model, setting), inputs) for setting in SETTINGS for model in alike]
        for name, alike in models.items()
    }
