"""Facts count what a session would run, and cost what is written."""

from __future__ import annotations

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper, parser

from rlflow import zoo
from rlflow.onnx_io import graph_of
from rlflow.passes.onnx.facts import cost_of, facts_of
from rlflow.passes.onnx.normal_form import normal_form


def _facts(text: str) -> dict[str, int]:
    return dict(facts_of(_normal(text), "key").counts)


def _normal(text: str) -> ModelProto:
    head = '<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>\n'
    return normal_form(parser.parse_model(head + text))


def test_nodes_of_inner_graphs_count_and_constants_do_not() -> None:
    text = """g (bool c, float[2] x) => (float[2] y) { one = Constant <value = float {1.0}> () z = Add(x, one)
        y = If (c) <
        then_branch = a () => (float[2] p) { p = Relu(z) }, else_branch = b () => (float[2] q) { q = Relu(x) } >
        }
    """

    assert _facts(text) == {"Add": 1, "If": 1, "Relu": 2}


def test_operators_of_a_domain_bear_its_name() -> None:
    assert _facts("g (float[2] x) => (float[2] y) { y = com.microsoft.Gelu(x) }") == {"com.microsoft.Gelu": 1}


def test_the_cost_of_a_product_and_a_function() -> None:
    """2 * 3 * 4 * 5 operations for the product and at least as many bytes as it reads and writes."""
    model = helper.make_model(
        helper.make_graph(
            [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Tanh", ["a"], ["y"])],
            "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 4])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, 5])],
            [numpy_helper.from_array(np.ones((4, 5), np.float32), "w")],
        ),
        opset_imports=[helper.make_opsetid("", 17)],
    )

    cost = cost_of(graph_of(normal_form(model)))

    assert cost.flops >= 2 * 3 * 4 * 5
    assert cost.transcendentals == 15
    assert cost.bytes_accessed == 4 * ((12 + 20 + 15) + (15 + 15))


def test_an_unknown_operator_costs_its_bytes() -> None:
    """`Mish` is one that the library carries without knowing it; its exponentials are counted all the same."""
    text = '<ir_version: 8, opset_import: ["" : 18]> g (float[8] x) => (float[8] y) { y = Mish(x) }'

    cost = cost_of(graph_of(normal_form(parser.parse_model(text))))

    assert (cost.flops, cost.transcendentals, cost.bytes_accessed) == (0, 8, 64)


def test_folding_constants_lowers_the_cost() -> None:
    """Work on weights alone is work, as long as it is written."""
    folded = "g (float[2] x) => (float[2] y) { y = Relu(x) }"
    written = "g (float[2] x) => (float[2] y) "
    written += "{ c = Constant <value = float[2] {1.0, 2.0}> () d = Exp(c) e = Relu(x) y = Mul(e, d) }"

    assert cost_of(graph_of(_normal(written))).transcendentals == 2
    assert cost_of(graph_of(_normal(folded))).transcendentals == 0


def test_facts_carry_the_key() -> None:
    facts = facts_of(normal_form(zoo.build("mlp")), "key")

    assert facts.key == "key"
    assert facts.operations == sum(count for _, count in facts.counts)
    assert [name for name, _ in facts.counts] == sorted(name for name, _ in facts.counts)
