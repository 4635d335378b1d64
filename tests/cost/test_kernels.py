"""The nodes that each kernel of ONNX Runtime computes, told from the names that it keeps."""

import pytest
from support.cost_graphs import SMALL_ZOO, small_graph

from rlflow import zoo
from rlflow.cost.kernels import kernels_of
from rlflow.cost.regions import first_twin
from rlflow.onnx_io import from_onnx


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
