"""Constant nodes in each of their spellings."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.onnx_models import Build, Survives, floats

from rlflow.onnx_io.node_proto import attribute_value, captured_names, constant_tensor, qualified_name, remarks_of


@pytest.mark.parametrize("value", ["float", "int", "floats", "ints", "tensor", "string", "strings", "sparse"])
def test_constant_nodes_of_every_attribute(model: Build, survives: Survives, value: str) -> None:
    sparse = helper.make_sparse_tensor(
        helper.make_tensor("v", TensorProto.FLOAT, [1], [5.0]),
        helper.make_tensor("i", TensorProto.INT64, [1], [1]),
        [3],
    )
    given: dict[str, Any] = {
        "float": {"value_float": 1.5},
        "int": {"value_int": 3},
        "floats": {"value_floats": [1.0, 2.0]},
        "ints": {"value_ints": [1, 2]},
        "tensor": {"value": onnx.numpy_helper.from_array(np.arange(3, dtype=np.float32))},
        "string": {"value_string": "a"},
        "strings": {"value_strings": ["a", "b"]},
        "sparse": {"sparse_value": sparse},
    }[value]
    nodes = [helper.make_node("Constant", [], ["c"], **given), helper.make_node("Identity", ["c"], ["y"])]
    kind = {"int": TensorProto.INT64, "ints": TensorProto.INT64, "string": TensorProto.STRING}
    kind["strings"] = TensorProto.STRING
    shape = [] if value in ("float", "int", "string") else [None]
    output = helper.make_tensor_value_info("y", kind.get(value, TensorProto.FLOAT), shape)
    survives(model(nodes, [floats("x", 1)], [output]), {"x": np.zeros(1, np.float32)})


def test_names_carry_their_domain_but_for_that_of_onnx() -> None:
    names = [qualified_name(helper.make_node("Gelu", ["x"], ["y"], domain=d)) for d in ("", "ai.onnx", "com.microsoft")]
    assert names == ["Gelu", "Gelu", "com.microsoft.Gelu"]


@pytest.mark.parametrize("value", [3, 0.5, "SAME_UPPER", (1, 2), (0.5, 1.5)])
def test_numbers_and_texts_are_read(value: object) -> None:
    assert attribute_value(helper.make_attribute("a", value)) == value


def test_what_no_operator_is_understood_by_is_none() -> None:
    """A tensor, and a reference to an attribute of the function around."""
    assert attribute_value(helper.make_attribute("a", numpy_helper.from_array(np.zeros(1)))) is None
    referring = onnx.AttributeProto(name="a", type=onnx.AttributeProto.INT, ref_attr_name="outer")
    assert attribute_value(referring) is None


@pytest.mark.parametrize(
    ("written", "dtype", "values"),
    [
        ({"value_float": 0.5}, np.float32, 0.5),
        ({"value_int": 3}, np.int64, 3),
        ({"value_floats": [0.5, 1.5]}, np.float32, [0.5, 1.5]),
        ({"value_ints": [1, 2]}, np.int64, [1, 2]),
        ({"value": numpy_helper.from_array(np.array([True]))}, np.bool_, [True]),
    ],
)
def test_constants_in_each_spelling(written: dict[str, object], dtype: type, values: object) -> None:
    tensor = constant_tensor(helper.make_node("Constant", [], ["c"], **written))
    assert tensor is not None
    array = numpy_helper.to_array(tensor)
    assert (tensor.name, array.dtype, array.tolist()) == ("c", dtype, values)


def test_a_constant_text_is_no_weight() -> None:
    assert constant_tensor(helper.make_node("Constant", [], ["c"], value_string="a")) is None


def test_a_body_captures_what_it_does_not_define() -> None:
    """At any depth, in the order of use: `b` is the body's own."""
    inner = helper.make_graph([helper.make_node("Add", ["b", "outer2"], ["r"])], "i", [], [_bool("r")])
    nodes = [
        helper.make_node("Relu", ["outer1"], ["b"]),
        helper.make_node("If", ["condition"], ["s"], then_branch=inner, else_branch=inner),
    ]
    body = helper.make_graph(nodes, "b", [], [_bool("s")])
    node = helper.make_node("If", ["c"], ["y"], then_branch=body, else_branch=body)
    assert list(dict.fromkeys(captured_names(node))) == ["outer1", "condition", "outer2"]


def _bool(name: str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.BOOL, [])


def test_remarks_are_the_text_alone() -> None:
    node = helper.make_node("Relu", ["x"], ["y"], name="n", doc_string="why")
    assert remarks_of(node) == onnx.NodeProto(doc_string="why")
    assert remarks_of(helper.make_node("Relu", ["x"], ["y"])) is None
