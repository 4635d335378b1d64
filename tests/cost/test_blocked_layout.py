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
from rlflow.zoo.builder import GraphBuilder

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


@pytest.mark.parametrize("readers", [1, 2])
def test_a_reorder_transposes_for_a_reader_alone(readers: int, reordering: Reordering) -> None:
    """Two convolutions that read one image whose channels were the last: its Transpose runs, and a reorder after it."""
    size = (1, 8, 8, 32)
    b = GraphBuilder("rows", seed=0, opset=17)
    image = b.node("Transpose", b.node("Exp", b.input("x", size), scope="rows"), scope="first", perm=[0, 3, 1, 2])
    for k in range(readers):
        filters = b.parameter(f"filters_{k}", (32, 32, 1, 1), std=0.1)
        b.output(f"y_{k}", b.node("Conv", image, filters, scope="conv"), (1, 32, 8, 8))
    model = b.finish()
    assert counted(reordering.reorders(imported(model))) == runtime_reorders(model)
