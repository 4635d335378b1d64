"""Fused operators survive import and export; what is not understood of them is carried verbatim."""

from typing import Any

import numpy as np
import pytest
from onnx import helper
from onnx_io.conftest import Build, Survives, floats

from rlflow.onnx_io import from_onnx

G = np.array([1, -2, 0.5, 3], np.float32)


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
