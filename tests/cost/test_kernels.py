"""The nodes that each kernel of ONNX Runtime computes, told from the names that it keeps."""

import numpy as np
import pytest
from support.cost_graphs import SMALL_ZOO, small_graph

from rlflow import zoo
from rlflow.cost.kernels import kernels_of
from rlflow.cost.regions import first_twin
from rlflow.ir.graph import Graph
from rlflow.onnx_io import from_onnx
from rlflow.zoo.builder import GraphBuilder


def computed(name: str) -> list[list[str]]:
    """The operators that each kernel computes."""
    graph = small_graph(name)
    return [[graph.nodes[i].op for i in kernel.nodes] for kernel in kernels_of(graph)[0]]


@pytest.mark.parametrize("name", SMALL_ZOO)
def test_every_node_is_computed_by_a_kernel(name):
    """Or a node that computes the same is. No kernel computes nothing, but for the reorders that ONNX Runtime adds."""
    graph = small_graph(name)
    kernels, fused = kernels_of(graph)
    assert [kernel.operator for kernel in kernels] == [kernel.operator for kernel in fused.kernels]
    assert all(kernel.nodes for kernel in kernels if not kernel.is_reorder)
    known = {first_twin(graph, i) for kernel in kernels for i in kernel.nodes}
    assert known == {first_twin(graph, i) for i in graph.order}


@pytest.mark.parametrize(
    ("name", "nodes"),
    [
        ("resnet18", ["Conv", "BatchNormalization", "Add", "Relu"]),
        ("mobilenet_v3", ["Conv", "BatchNormalization", "HardSwish"]),
        ("bert", ["MatMul", "Add"]),
        ("gpt2", ["Pow", "Mul", "Add", "Mul", "Tanh", "Add", "Mul", "Mul"]),
    ],
)
def test_what_is_fused_is_one_kernel(name, nodes):
    """In the blocked layout as well, where no value has the name of what a convolution ends with."""
    assert sorted(nodes) in [sorted(each) for each in computed(name)]


def test_what_two_nodes_compute_alike_is_computed_once():
    """NASNet's cells rectify one image several times: ONNX Runtime does so once."""
    graph = small_graph("nasnet_a")
    kernels, _ = kernels_of(graph)
    twins = [i for i in graph.order if first_twin(graph, i) != i]
    assert len(twins) > 5
    times = [sum(i in kernel.nodes for kernel in kernels) for i in twins]
    assert max(times) <= 1


def test_an_operand_that_is_prepared_belongs_to_its_reader():
    """ONNX Runtime reshapes what a Gemm of three dimensions reads: that Reshape is part of the MatMul."""
    graph = small_graph("bert")
    kernels, fused = kernels_of(graph)
    added = [k for k in kernels if fused.kernels[k.place].name.startswith("gemm_input_reshape")]
    assert added
    assert all("MatMul" in {graph.nodes[i].op for i in kernel.nodes} for kernel in added)


def test_names_that_a_body_knows_stay():
    """A loop reads values from outside by name: they are not renamed, and the model still runs."""
    graph = from_onnx(zoo.build("loop"))
    assert [kernel.operator for kernel in kernels_of(graph)[0]].count("Loop") == 1


def rows_of_images(channels: int = 32) -> Graph:
    """ConvNeXt's: images whose channels are brought to the end, normalised, and brought back."""
    size = (1, channels, 8, 8)
    b = GraphBuilder("rows", seed=0, opset=17)
    x = b.input("x", size)
    for k in range(2):
        filters = b.parameter(f"filters_{k}", (channels, channels, 3, 3), std=0.1)
        image = b.node("Conv", x, filters, scope="conv", pads=[1, 1, 1, 1])
        rows = b.node("Transpose", image, scope="last", perm=[0, 2, 3, 1])
        rows = b.node("LayerNormalization", rows, b.parameter(f"scale_{k}", (channels,), std=0.1), scope="norm")
        x = b.node("Transpose", rows, scope="first", perm=[0, 3, 1, 2])
    b.output("y", b.node("MaxPool", x, scope="pool", kernel_shape=[3, 3], pads=[1, 1, 1, 1]), size)
    return from_onnx(b.finish())


def test_a_reorder_that_transposes_is_the_transpose():
    """Where the layout is blocked, ONNX Runtime has no other kernel for it; elsewhere it has a Transpose."""
    graph = rows_of_images()
    kernels, _ = kernels_of(graph)
    assert all(len(kernel.nodes) == 1 for kernel in kernels if not kernel.is_reorder)
    assert {i for kernel in kernels for i in kernel.nodes} == set(graph.order)


def test_a_transposed_input_is_no_part_of_the_convolution_that_reads_it():
    """As TensorFlow's exporters write it."""
    b = GraphBuilder("input", seed=0, opset=17)
    image = b.node("Transpose", b.input("x", (1, 8, 8, 32)), scope="first", perm=[0, 3, 1, 2])
    made = b.node("Conv", image, b.parameter("filters", (32, 32, 3, 3), std=0.1), scope="conv", pads=[1, 1, 1, 1])
    b.output("y", made, (1, 32, 8, 8))
    graph = from_onnx(b.finish())
    known = [[graph.nodes[i].op for i in kernel.nodes] for kernel in kernels_of(graph)[0] if not kernel.is_reorder]
    assert known == [["Transpose"], ["Conv"]]


def test_a_kernel_computes_no_input_of_the_model():
    """ONNX Runtime transposes what a Reshape of the input has made, under a name of a later value."""
    b = GraphBuilder("views", seed=0, opset=17)
    first = b.node("Reshape", b.input("z", (1, 32, 8, 8)), b.constant("s", np.array([1, 256, 8])), scope="first")
    turned = b.node("Transpose", first, scope="turned", perm=[2, 0, 1])
    b.output("y", b.node("Reshape", turned, b.constant("t", np.array([8, 1, 1, 256])), scope="last"), (8, 1, 1, 256))
    b.output("q", b.node("Exp", first, scope="exp"), (1, 256, 8))
    graph = from_onnx(b.finish())
    assert {i for kernel in kernels_of(graph)[0] for i in kernel.nodes} == set(graph.order)


def test_what_is_computed_when_a_model_is_opened_belongs_to_no_kernel():
    """A Softplus of a constant is carried verbatim, so that its result is none of the graph's constants."""
    b = GraphBuilder("mask", seed=0, opset=17)
    x, distances = b.input("x", (4, 4)), b.constant("distances", np.eye(4, dtype=np.float32))
    b.output("y", b.node("Add", x, b.node("Softplus", distances, scope="bias"), scope="sum"), (4, 4))
    graph = from_onnx(b.finish())
    assert [graph.nodes[i].op for i in graph.order] == ["Softplus", "Add"]
    assert [[graph.nodes[i].op for i in kernel.nodes] for kernel in kernels_of(graph)[0]] == [["Add"]]
