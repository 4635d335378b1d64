"""Every way to write the same model gives one normal form, and what breaks a caller is refused."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper, parser

from rlflow.passes.onnx.normal_form import IR_VERSION, bodies_of, nodes_of, normal_form

_NO_NUMBERS = (TensorProto.UNDEFINED, TensorProto.STRING)
_AFTER_OPSET_21 = ("FLOAT4E2M1", "FLOAT6E2M3", "FLOAT6E3M2", "FLOAT8E8M0", "INT2", "UINT2")
_NUMBERS = [
    number for name, number in TensorProto.DataType.items() if number not in _NO_NUMBERS and name not in _AFTER_OPSET_21
]
PLAIN = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[2,3] x) => (float[2,3] y) {
  one = Constant <value = float {1.0}> ()
  z = Add(x, one)
  y = Relu(z)
}
"""
NESTED = """
<ir_version: 8, opset_import: ["" : 17]>
g (bool c, float[2] x) => (float[2] y) {
  y = If (c) <
    then_branch = a () => (float[2] p) { one = Constant <value = float {1.0}> () p = Add(x, one) },
    else_branch = b () => (float[2] q) { q = Identity(x) }
  >
}
"""


def test_constants_are_initializers_and_all_types_are_declared() -> None:
    model = normal_form(parser.parse_model(PLAIN))

    assert [node.op_type for node in model.graph.node] == ["Add", "Relu"]
    assert [tensor.name for tensor in model.graph.initializer] == ["one"]
    assert {value.name for value in model.graph.value_info} == {"z"}
    assert model.ir_version == IR_VERSION


def test_constants_inside_of_a_node_are_initializers_too() -> None:
    model = normal_form(parser.parse_model(NESTED))

    assert sorted(node.op_type for node in nodes_of(model.graph)) == ["Add", "Identity", "If"]
    assert {len(body.initializer) for body in bodies_of(model.graph.node[0])} == {0, 1}


def test_a_constant_that_is_an_output_stays() -> None:
    """An output must be computed by a node for some of the libraries."""
    model = normal_form(
        parser.parse_model(
            '<ir_version: 8, opset_import: ["" : 17]> g () => (float y) { y = Constant <value = float {1.0}> () }'
        )
    )

    assert [node.op_type for node in model.graph.node] == ["Constant"]


def test_weights_listed_among_the_inputs_are_no_inputs() -> None:
    model = _with_weight_as_input()

    assert [value.name for value in normal_form(model).graph.input] == ["x"]


def test_functions_are_inlined_and_remarks_are_gone() -> None:
    """Two marks that libraries leave behind: neither may tell two programs apart."""
    model = parser.parse_model(
        """
        <ir_version: 8, opset_import: ["" : 17, "own" : 1]>
        g (float[2] x) => (float[2] y) { y = own.twice(x) }
        <domain: "own", opset_import: ["" : 17]>
        twice (a) => (b) { b = Add(a, a) }
        """
    )
    model.doc_string = "x"
    normal = normal_form(model)
    normal.graph.node[0].metadata_props.add(key="rule", value="r")
    normal.graph.node[0].doc_string = "why"

    again = normal_form(normal)

    assert [(node.op_type, node.doc_string, len(node.metadata_props)) for node in again.graph.node] == [("Add", "", 0)]
    assert [opset.domain for opset in again.opset_import] == [""]


def test_it_is_the_same_twice() -> None:
    once = normal_form(parser.parse_model(NESTED)).SerializeToString(deterministic=True)

    assert normal_form(onnx.load_from_string(once)).SerializeToString(deterministic=True) == once


@pytest.mark.parametrize("data_type", _NUMBERS, ids=TensorProto.DataType.Name)
def test_numbers_are_raw_bytes(data_type: int) -> None:
    """What is given is a list, and the numbers are the same."""
    listed = helper.make_tensor("w", data_type, [3], [1, 0, 1])
    assert not listed.HasField("raw_data")
    output = helper.make_tensor_value_info("y", data_type, [3])
    graph = helper.make_graph([helper.make_node("Identity", ["w"], ["y"])], "g", [], [output], [listed])
    (written,) = normal_form(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])).graph.initializer
    assert (written.name, written.data_type, written.HasField("raw_data")) == ("w", data_type, True)
    np.testing.assert_array_equal(numpy_helper.to_array(written), numpy_helper.to_array(listed))


def test_numbers_in_attributes_are_raw_bytes() -> None:
    listed = helper.make_tensor("", TensorProto.FLOAT, [1], [2.0])
    model = parser.parse_model('<ir_version: 8, opset_import: ["" : 17]> g (int64[1] n) => (float[k] y) {}')
    model.graph.node.append(helper.make_node("ConstantOfShape", ["n"], ["y"], value=listed))
    (attribute,) = normal_form(model).graph.node[0].attribute
    assert attribute.t == numpy_helper.from_array(np.float32([2.0]))


def test_text_stays_as_it_is() -> None:
    text = helper.make_tensor("w", TensorProto.STRING, [2], ["a", "b"])
    output = helper.make_tensor_value_info("y", TensorProto.STRING, [2])
    graph = helper.make_graph([helper.make_node("Identity", ["w"], ["y"])], "g", [], [output], [text])
    model = normal_form(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]))
    assert list(model.graph.initializer) == [text]


def test_no_two_nodes_have_one_name() -> None:
    """ONNX Runtime refuses such a model, which onnxslim and onnxscript write now and then; an empty name is no name."""
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) { a = Relu(x) b = Relu(a) y = Neg(b) }'
    )
    for node, name in zip(model.graph.node, ("same", "same", ""), strict=True):
        node.name = name

    assert [node.name for node in normal_form(model).graph.node] == ["same", "", ""]


def test_an_input_that_a_pass_dropped_comes_back() -> None:
    before = normal_form(
        parser.parse_model(
            '<ir_version: 8, opset_import: ["" : 17]> g (float[2] x, float[2] unused) => (float[2] y) { y = Relu(x) }'
        )
    )
    after = ModelProto()
    after.CopyFrom(before)
    del after.graph.input[1]

    assert [value.name for value in normal_form(after, interface_of=before).graph.input] == ["x", "unused"]


@pytest.mark.parametrize(
    ("role", "change", "reason"),
    [
        ("output", lambda value: setattr(value, "name", "z"), "outputs are z and not y"),
        ("input", lambda value: setattr(value, "name", "w"), "another input, w"),
        ("input", lambda value: setattr(value.type.tensor_type, "elem_type", TensorProto.DOUBLE), "another type"),
    ],
)
def test_another_interface_is_refused(role: str, change: object, reason: str) -> None:
    before = normal_form(parser.parse_model(PLAIN))
    after = ModelProto()
    after.CopyFrom(before)
    assert callable(change)
    change(getattr(after.graph, role)[0])

    with pytest.raises(ValueError, match=reason):
        normal_form(after, interface_of=before)


def test_a_foreign_domain_is_refused_where_it_is_not_allowed() -> None:
    text = """
        <ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
        g (float[2] x) => (float[2] y) { y = com.microsoft.Gelu(x) }
    """

    with pytest.raises(ValueError, match=r"operators of com\.microsoft"):
        normal_form(parser.parse_model(text), domains=("",))
    assert normal_form(parser.parse_model(text), domains=("", "com.microsoft")).graph.node[0].op_type == "Gelu"


def test_an_operator_that_only_onnx_runtime_knows_counts_as_its_own() -> None:
    """It stands in ONNX's domain, and what comes after it is checked all the same."""
    text = """
        <ir_version: 8, opset_import: ["" : 17]>
        g (float[2,3] x, float[3] w) => (float[2,3] y) { a = SimplifiedLayerNormalization(x, w) y = Relu(a) }
    """

    with pytest.raises(ValueError, match=r"operators of com\.microsoft"):
        normal_form(parser.parse_model(text), domains=("",))
    normal = normal_form(parser.parse_model(text))
    assert normal.graph.node[0].op_type == "SimplifiedLayerNormalization"
    assert normal.graph.node[0].domain == ""
    with pytest.raises(onnx.checker.ValidationError):
        normal_form(parser.parse_model(text.replace("Relu(a)", "Relu(b)")))


def test_types_that_contradict_each_other_are_refused() -> None:
    """A sum of two and of three numbers: the checker alone would let it pass."""
    model = helper.make_model(
        helper.make_graph(
            [helper.make_node("Add", ["x", "w"], ["y"])],
            "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])],
            [numpy_helper.from_array(np.ones(3, np.float32), "w")],
        ),
        opset_imports=[helper.make_opsetid("", 17)],
    )
    onnx.checker.check_model(model)

    with pytest.raises(onnx.shape_inference.InferenceError):
        normal_form(model)


def _with_weight_as_input() -> ModelProto:
    return helper.make_model(
        helper.make_graph(
            [helper.make_node("Add", ["x", "w"], ["y"])],
            "g",
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("x", "w")],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])],
            [numpy_helper.from_array(np.ones(2, np.float32), "w")],
        ),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=3,
    )
