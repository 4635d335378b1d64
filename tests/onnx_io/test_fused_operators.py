"""Fused operators survive import and export; what is not understood of them is carried verbatim."""

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from support.onnx_models import Build, Survives, floats

from rlflow.onnx_io import from_onnx

X = floats("x", 2, 3, 4)
G, W = np.array([1, -2, 0.5, 3], np.float32), np.arange(16, dtype=np.float32).reshape(4, 4)


def imported(model: Any) -> list[str]:
    graph = from_onnx(model)
    return [("opaque " if graph.nodes[i].is_opaque else "") + graph.nodes[i].op for i in graph.order]


@pytest.mark.parametrize("attributes", [{}, {"approximate": "none"}, {"approximate": "tanh"}])
def test_gelu(model: Build, survives: Survives, attributes: dict[str, str]) -> None:
    node = helper.make_node("Gelu", ["x"], ["y"], **attributes)
    before = model([node], [floats("x", "n", 4)], [floats("y", "n", 4)], opset=20)
    assert imported(before) == ["Gelu"]
    survives(before)


@pytest.mark.parametrize(
    ("attributes", "shape", "understood"),
    [
        ({}, (4,), True),
        ({"axis": 2, "epsilon": 0.1}, (4,), True),
        ({"axis": 1}, (3, 4), True),
        ({"stash_type": 1}, (4,), True),
        ({"stash_type": 11}, (4,), False),
    ],
)
def test_rms_normalisation(
    model: Build, survives: Survives, attributes: dict[str, Any], shape: tuple[int, ...], understood: bool
) -> None:
    scale = np.broadcast_to(G, shape)
    node = helper.make_node("RMSNormalization", ["x", "g"], ["y"], **attributes)
    before = model([node], [floats("x", 2, 3, 4)], [floats("y", 2, 3, 4)], weights={"g": scale}, opset=23)
    assert imported(before) == ["RMSNormalization" if understood else "opaque RMSNormalization"]
    survives(before, runs=understood)


@pytest.mark.parametrize(
    ("attributes", "mask", "understood"),
    [
        ({}, (), True),
        ({"scale": 0.3}, (4, 6), True),
        ({"is_causal": 0, "softcap": 0.0}, (2, 1, 4, 6), True),
        ({"is_causal": 1}, (), False),
        ({"softcap": 2.0}, (), False),
        ({"softmax_precision": 1}, (), False),
    ],
)
def test_attention(
    model: Build, survives: Survives, attributes: dict[str, Any], mask: tuple[int, ...], understood: bool
) -> None:
    operands = {"q": (2, 3, 4, 5), "k": (2, 3, 6, 5), "v": (2, 3, 6, 7)} | ({"m": mask} if mask else {})
    node = helper.make_node("Attention", list(operands), ["y"], **attributes)
    inputs = [floats(name, *shape) for name, shape in operands.items()]
    before = model([node], inputs, [floats("y", 2, 3, 4, 7)], opset=23)
    assert imported(before) == ["Attention" if understood else "opaque Attention"]
    survives(before)


def test_attention_of_packed_heads_or_with_a_memory_is_carried(model: Build, survives: Survives) -> None:
    packed = helper.make_node("Attention", ["x", "x", "x"], ["y"], q_num_heads=2, kv_num_heads=2)
    before = model([packed], [floats("x", 2, 3, 4)], [floats("y", 2, 3, 4)], opset=23)
    assert imported(before) == ["opaque Attention"]
    survives(before)
    memory = helper.make_node("Attention", ["q", "q", "q", "", "p", "p"], ["y", "k", "v"])
    values = [floats(n, 1, 2, 4, 3) for n in "q"] + [floats("p", 1, 2, 5, 3)]
    outputs = [floats("y", 1, 2, 4, 3), floats("k", 1, 2, 9, 3), floats("v", 1, 2, 9, 3)]
    before = model([memory], values, outputs, opset=23)
    assert imported(before) == ["opaque Attention"]
    survives(before)


@pytest.mark.parametrize(
    ("kind", "operands", "attributes", "understood"),
    [
        ("FusedMatMul", "xw", {}, True),
        ("FusedMatMul", "xw", {"alpha": 0.3, "transB": 1, "transBatchA": 0}, True),
        ("FusedMatMul", "xw", {"transBatchA": 1}, False),
        ("Gelu", "x", {}, True),
        ("BiasGelu", "xg", {}, True),
        ("QuickGelu", "x", {}, True),
        ("QuickGelu", "x", {"alpha": 0.4}, True),
        ("SkipLayerNormalization", "xxgg", {}, True),
        ("SkipLayerNormalization", "xxggg", {"epsilon": 0.1}, True),
        ("SkipLayerNormalization", "xxg", {}, True),
        ("SkipSimplifiedLayerNormalization", "xxgg", {}, True),
        ("FastGelu", "x", {}, False),
    ],
)
def test_operators_of_microsoft(
    model: Build, survives: Survives, kind: str, operands: str, attributes: dict[str, Any], understood: bool
) -> None:
    node = helper.make_node(kind, list(operands), ["y"], domain="com.microsoft", **attributes)
    weights = {name: value for name, value in (("g", G), ("w", W)) if name in operands}
    before = model([node], [X], [floats("y", 2, 3, 4)], weights=weights, domains=["com.microsoft"])
    assert imported(before) == [("" if understood else "opaque ") + f"com.microsoft.{kind}"]
    survives(before, runs="transBatchA" not in attributes or understood)


@pytest.mark.parametrize(
    ("attributes", "understood"),
    [
        ({"activation": "Relu", "kernel_shape": [2, 2], "pads": [1, 0, 0, 1]}, True),
        ({"activation": "Relu", "auto_pad": "SAME_UPPER", "strides": [2, 1]}, True),
        ({"activation": "Tanh"}, False),
        ({"activation": "LeakyRelu", "activation_params": [0.1]}, False),
    ],
)
def test_a_convolution_with_its_activation(
    model: Build, survives: Survives, attributes: dict[str, Any], understood: bool
) -> None:
    node = helper.make_node("FusedConv", ["x", "f"], ["y"], domain="com.microsoft", **attributes)
    filters = {"f": np.arange(24, dtype=np.float32).reshape(3, 2, 2, 2) - 11}
    shape = [floats("y", 1, 3, None, None)]
    before = model([node], [floats("x", 1, 2, 4, 5)], shape, weights=filters, domains=["com.microsoft"])
    assert imported(before) == [("" if understood else "opaque ") + "com.microsoft.FusedConv"]
    survives(before)


def test_a_fused_gemm_and_what_no_kernel_takes(model: Build, survives: Survives) -> None:
    node = helper.make_node("FusedGemm", ["a", "w", "g"], ["y"], domain="com.microsoft", activation="Relu", transB=1)
    operands, weights = [floats("a", 2, 4)], {"w": W, "g": G}
    before = model([node], operands, [floats("y", 2, 4)], weights=weights, domains=["com.microsoft"])
    assert imported(before) == ["com.microsoft.FusedGemm"]
    survives(before)
    node = helper.make_node("Gelu", ["d"], ["y"], domain="com.microsoft")
    doubles = [helper.make_tensor_value_info(name, TensorProto.DOUBLE, [2]) for name in "dy"]
    before = model([node], doubles[:1], doubles[1:], domains=["com.microsoft"])
    assert imported(before) == ["opaque com.microsoft.Gelu"]
    survives(before, runs=False)


def test_a_sum_that_is_read_as_well_keeps_its_operator_whole(model: Build, survives: Survives) -> None:
    outputs = ["y", "", "", "sum"]
    node = helper.make_node("SkipLayerNormalization", ["x", "x", "g", "g"], outputs, domain="com.microsoft")
    values = [floats(name, 2, 3, 4) for name in ("y", "sum")]
    before = model([node], [X], values, weights={"g": G}, domains=["com.microsoft"])
    assert imported(before) == ["opaque com.microsoft.SkipLayerNormalization"]
    survives(before)


def test_a_model_that_defines_functions_in_the_domain_means_its_own(model: Build, survives: Survives) -> None:
    opsets = [helper.make_opsetid("", 17)]
    relu = helper.make_node("Relu", ["a"], ["b"])
    function = helper.make_function("com.microsoft", "Gelu", ["a"], ["b"], [relu], opsets)
    node = helper.make_node("Gelu", ["x"], ["y"], domain="com.microsoft")
    before = model([node], [X], [floats("y", 2, 3, 4)], domains=["com.microsoft"], functions=[function])
    assert imported(before) == ["opaque com.microsoft.Gelu"]
    assert from_onnx(before).header.domains == {}
    survives(before)


def test_other_domains_are_known_by_their_version(model: Build) -> None:
    node = helper.make_node("Relu", ["x"], ["y"])
    before = model([node], [X], [floats("y", 2, 3, 4)], domains=["com.microsoft", "org.other"])
    assert from_onnx(before).header.domains == {"com.microsoft": 1, "org.other": 1}
