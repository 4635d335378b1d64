"""The blocked layout is the one of ONNX Runtime's own optimised models, on whatever processor this runs."""

import onnx
import pytest
from hypothesis import assume, given, settings
from support.drawn_cnns import counted, imported, networks, runtime_reorders
from support.zoo_names import SMALL

from rlflow import zoo
from rlflow.cost.border_reorders import ReorderConfig, Reordering
from rlflow.onnx_io import from_onnx, to_onnx
from rlflow.runtime.blocks import block_channels

WITH_RESIZE = {"yolo_v5"}
"""ONNX Runtime keeps images blocked through Resize, which is taken for an operator of plain images here."""
CONVOLUTIONAL = [name for name in SMALL if zoo.describe(name).family == "cnn" and name not in WITH_RESIZE]


@pytest.fixture(scope="module")
def reordering() -> Reordering:
    return Reordering(ReorderConfig(block=block_channels()), {})


@pytest.mark.parametrize("name", [*CONVOLUTIONAL, "vit", "bert"])
def test_the_reorders_of_small_models_are_those_of_the_runtime(name: str, reordering: Reordering) -> None:
    model = zoo.build(name, **SMALL[name])
    assert counted(reordering.reorders(imported(model))) == runtime_reorders(model)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", CONVOLUTIONAL)
def test_the_reorders_of_the_zoo_are_those_of_the_runtime(name: str, reordering: Reordering) -> None:
    model = zoo.build(name)
    assert counted(reordering.reorders(imported(model))) == runtime_reorders(model)


def test_there_are_reorders_to_count() -> None:
    """Without them the tests here say nothing: some into blocks, many out of them."""
    if block_channels() > 1:
        counts = [runtime_reorders(zoo.build(name, **SMALL[name])) for name in ("nasnet_a", "resnext50")]
        assert all(into and out for into, out in counts)


@given(networks())
@settings(max_examples=40)
def test_the_reorders_of_drawn_networks_are_those_of_the_runtime(model: onnx.ModelProto) -> None:
    """Of networks in which no image is padded twice: such pads the runtime merges, or takes up both, as it happens."""
    padded = [node.input[0] for node in model.graph.node if node.op_type == "Pad"]
    assume(len(padded) == len(set(padded)))
    reordering = Reordering(ReorderConfig(block=block_channels()), {})
    assert counted(reordering.reorders(imported(model))) == runtime_reorders(model)


def test_a_model_that_was_read_and_written_is_reordered_as_before() -> None:
    """ONNX Runtime keeps a Concat of axis 1 blocked, and not one of axis -3, which says the same."""
    model = zoo.build("squeezenet1_1", **SMALL["squeezenet1_1"])
    assert runtime_reorders(to_onnx(from_onnx(model))) == runtime_reorders(model)
