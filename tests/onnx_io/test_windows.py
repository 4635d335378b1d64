"""Convolutions and pools in every spelling; what is not understood of them is carried as it is."""

from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from support.onnx_models import Build, Survives, floats

from rlflow import zoo
from rlflow.equivalence.compare import compare
from rlflow.ir.node import Node
from rlflow.onnx_io import check_model, from_onnx, to_onnx
from rlflow.rules.library import load
from rlflow.rules.matching.rewriter import Rewriter

X = floats("x", 1, 4, 6, 6)
FILTERS = np.random.default_rng(0).standard_normal((6, 4, 3, 3)).astype(np.float32)
STATISTICS = np.array([0.5, 1.0, 2.0, 0.25], np.float32)


def only_node(model: onnx.ModelProto) -> Node:
    graph = from_onnx(model)
    (identifier,) = graph.order
    return graph.nodes[identifier]


def convolution(model: Build, *, opset: int = 17, data: onnx.ValueInfoProto = X, **attributes: Any) -> onnx.ModelProto:
    node = helper.make_node("Conv", ["x", "f"], ["y"], **attributes)
    return model([node], [data], [floats("y", *[None] * 4)], weights={"f": FILTERS}, opset=opset)


@pytest.mark.parametrize("opset", [7, 9, 11, 12, 13, 17, 21])
@pytest.mark.parametrize(
    ("attributes", "pads"),
    [
        ({}, (0, 0, 0, 0)),
        ({"auto_pad": "VALID", "kernel_shape": [3, 3]}, (0, 0, 0, 0)),
        ({"pads": [1, 0, 2, 1]}, (1, 0, 2, 1)),
        ({"auto_pad": "SAME_UPPER", "strides": [1, 2]}, (1, 0, 1, 1)),
        ({"auto_pad": "SAME_LOWER", "strides": [1, 2]}, (1, 1, 1, 0)),
    ],
)
def test_a_convolution_has_one_spelling(
    model: Build, survives: Survives, opset: int, attributes: dict[str, Any], pads: tuple[int, ...]
) -> None:
    before = convolution(model, opset=opset, **attributes)
    node = only_node(before)
    assert (node.op, node.is_opaque) == ("Conv", False)
    assert dict(node.attributes) == {
        "auto_pad": "NOTSET",
        "group": 1,
        "strides": tuple(attributes.get("strides", (1, 1))),
        "dilations": (1, 1),
        "pads": pads,
    }
    survives(before)


def test_pads_stay_automatic_where_the_image_is_of_unknown_size(model: Build, survives: Survives) -> None:
    before = convolution(model, data=floats("x", "n", 4, "height", 6), auto_pad="SAME_UPPER", strides=[2, 2])
    node = only_node(before)
    assert not node.is_opaque
    assert node.attributes["auto_pad"] == "SAME_UPPER"
    assert "pads" not in node.attributes
    survives(before, {"x": np.random.default_rng(0).standard_normal((2, 4, 7, 6)).astype(np.float32)})


@pytest.mark.parametrize(
    "attributes",
    [
        {"kernel_shape": [3, 2]},
        {"auto_pad": "SAME_UPPER", "dilations": [2, 2]},
        {"auto_pad": "VALID", "pads": [1, 1, 1, 1]},
        {"strides": [1]},
        {"group": 2},
    ],
)
def test_a_contradictory_convolution_is_carried(model: Build, survives: Survives, attributes: dict[str, Any]) -> None:
    before = convolution(model, **attributes)
    assert only_node(before).is_opaque
    after = survives(before, runs=False)
    assert after.graph.node[0].attribute == before.graph.node[0].attribute


@pytest.mark.parametrize("opset", [6, 7, 8, 9, 10, 11, 12, 17, 19])
@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize("attributes", [{}, {"strides": [2, 2], "pads": [1, 0, 1, 0]}, {"auto_pad": "SAME_LOWER"}])
def test_pools(model: Build, survives: Survives, opset: int, op: str, attributes: dict[str, Any]) -> None:
    node = helper.make_node(op, ["x"], ["y"], kernel_shape=[2, 3], **attributes)
    before = model([node], [X], [floats("y", *[None] * 4)], opset=opset)
    assert only_node(before).is_opaque == (opset < {"MaxPool": 8, "AveragePool": 7}[op])
    survives(before, runs=opset >= 7)  # ONNX Runtime itself has no older AveragePool


@pytest.mark.parametrize("opset", [8, 9, 10])
def test_a_pool_of_an_old_opset_is_rewritten(model: Build, opset: int) -> None:
    """What a rule writes is of that opset: without dilations before there were any."""
    nodes = [
        helper.make_node("Concat", ["x", "x"], ["c"], axis=1),
        helper.make_node("MaxPool", ["c"], ["y"], kernel_shape=[2, 3]),
    ]
    before = model(nodes, [X], [floats("y", *[None] * 4)], opset=opset)
    rule = next(rule for rule in load().rules if rule.name == "maxpool-of-channel-parts")
    graph = from_onnx(before)
    rewriter = Rewriter([replace(rule, profitable_if=())])
    after = to_onnx(rewriter.apply(graph, rewriter.matches(graph)[0][0]))
    check_model(after)
    pools = [node for node in after.graph.node if node.op_type == "MaxPool"]
    assert len(pools) == 2
    assert all(("dilations" in {a.name for a in pool.attribute}) == (opset >= 10) for pool in pools)
    assert compare(before, after).equivalent


@pytest.mark.parametrize(
    ("op", "opset", "attributes", "is_opaque"),
    [
        ("AveragePool", 19, {"dilations": [1, 1]}, False),
        ("AveragePool", 19, {"dilations": [2, 2]}, True),
        ("AveragePool", 17, {"count_include_pad": 1, "pads": [1, 1, 1, 1]}, False),
        ("AveragePool", 17, {"count_include_pad": 1, "ceil_mode": 1}, True),
        ("MaxPool", 17, {"storage_order": 1}, False),
        ("MaxPool", 17, {"ceil_mode": 1, "strides": [2, 2]}, False),
    ],
)
def test_attributes_of_pools(
    model: Build, survives: Survives, op: str, opset: int, attributes: dict[str, Any], is_opaque: bool
) -> None:
    before = model(
        [helper.make_node(op, ["x"], ["y"], kernel_shape=[3, 3], **attributes)],
        [X],
        [floats("y", *[None] * 4)],
        opset=opset,
    )
    assert only_node(before).is_opaque == is_opaque
    survives(before)


def test_indices_of_a_maximum_are_not_understood(model: Build, survives: Survives) -> None:
    node = helper.make_node("MaxPool", ["x"], ["y", "i"], kernel_shape=[2, 2], storage_order=1)
    where = helper.make_tensor_value_info("i", onnx.TensorProto.INT64, [None] * 4)
    before = model([node], [X], [floats("y", *[None] * 4), where])
    assert only_node(before).is_opaque
    survives(before)


@pytest.mark.parametrize("opset", [9, 13, 14, 15, 17])
@pytest.mark.parametrize("attributes", [{}, {"momentum": 0.5, "epsilon": 0.01}])
def test_batch_normalisation(model: Build, survives: Survives, opset: int, attributes: dict[str, Any]) -> None:
    node = helper.make_node("BatchNormalization", ["x", *"sbmv"], ["y"], **attributes)
    before = model([node], [X], [floats("y", 1, 4, 6, 6)], weights=dict.fromkeys("sbmv", STATISTICS), opset=opset)
    assert not only_node(before).is_opaque
    survives(before)


def test_training_is_not_understood(model: Build, survives: Survives) -> None:
    node = helper.make_node("BatchNormalization", ["x", *"sbmv"], ["y", "m2", "v2"], training_mode=1)
    before = model([node], [X], [floats("y", 1, 4, 6, 6)], weights=dict.fromkeys("sbmv", STATISTICS))
    assert only_node(before).is_opaque
    survives(before, runs=False)


@pytest.mark.parametrize(
    ("weights", "opset", "pads"),
    [
        ({"p": [0, 0, 1, 2, 0, 0, 0, 1]}, 11, (0, 0, 1, 2, 0, 0, 0, 1)),
        ({"p": [0, 0, 1, 2, 0, 0, 0, 1], "v": np.float32(-1)}, 17, (0, 0, 1, 2, 0, 0, 0, 1)),
        ({"p": [2, 1, 1, 0], "v": np.float32(3), "a": [-1, 2]}, 18, (0, 0, 1, 2, 0, 0, 0, 1)),
        ({"p": [0, 0, -1, 0, 0, 0, 0, 0]}, 17, None),
        ({"p": [1, 1, 1, 1], "v": np.float32(3), "a": [2, -2]}, 18, None),
    ],
)
def test_padding(
    model: Build, survives: Survives, weights: dict[str, Any], opset: int, pads: tuple[int, ...] | None
) -> None:
    before = model(
        [helper.make_node("Pad", ["x", *weights], ["y"])],
        [X],
        [floats("y", *[None] * 4)],
        weights={k: np.asarray(v, None if k == "v" else np.int64) for k, v in weights.items()},
        opset=opset,
    )
    node = only_node(before)
    assert node.is_opaque == (pads is None)
    assert node.attributes.get("pads") == pads
    survives(before, runs=pads is not None or "a" not in weights)


@pytest.mark.parametrize("mode", ["reflect", "edge"])
def test_other_modes_of_padding_are_carried(model: Build, survives: Survives, mode: str) -> None:
    node = helper.make_node("Pad", ["x", "p"], ["y"], mode=mode)
    before = model([node], [X], [floats("y", *[None] * 4)], weights={"p": np.array([0, 0, 1, 1, 0, 0, 1, 1])})
    assert only_node(before).is_opaque
    survives(before)


@pytest.mark.parametrize("batch", [1, "n"])
def test_a_convolutional_network_is_understood_whole(survives: Survives, batch: int | str) -> None:
    before = zoo.build("conv", batch=batch)
    graph = from_onnx(before)
    assert not any(graph.nodes[i].is_opaque for i in graph.order)
    assert all(kind is not None and kind.shape is not None for i in graph.order for kind in graph.nodes[i].types)
    survives(before)
