"""Shapes that a model computes of its open dimensions, as exporters write them, are read as what they copy."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.onnx_models import Build, Survives, floats

from rlflow.ir import Graph, Node
from rlflow.ir.dimension import plus
from rlflow.ir.tensor_type import Dimension
from rlflow.onnx_io import from_onnx, to_onnx
from rlflow.runtime.session import open_session, run

NUMBERS = {
    **{f"i{n}": np.array(n) for n in (0, 1, 2)},
    **{f"v{n}": np.array([n]) for n in (-1, 0, 1, 2, 3, 4, 8, 12, 64)},
}


def node(kind: str, inputs: str, output: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(kind, inputs.split(), [output], **attributes)


def size(read: str, axis: int, name: str) -> list[onnx.NodeProto]:
    """One dimension of a value, as torch's older exporter reads it."""
    return [
        node("Shape", read, f"{name}_shape"),
        node("Gather", f"{name}_shape i{axis}", f"{name}_scalar"),
        node("Unsqueeze", f"{name}_scalar v0", name),
    ]


def last(graph: Graph) -> Node:
    return graph.nodes[graph.outputs[0].node]


def reshaped(model: Build, shape: Sequence[Dimension], parts: str, *before: onnx.NodeProto, **attributes: Any) -> Any:
    """A Reshape of x to parts end to end: the model and the node it became."""
    nodes = [*before, node("Concat", parts, "s", axis=0), node("Reshape", "x s", "y", **attributes)]
    made = model(nodes, [floats("x", *shape)], [floats("y", *(None,) * len(parts.split()))], weights=NUMBERS)
    return made, last(from_onnx(made))


@pytest.mark.parametrize("allowzero", [0, 1])
def test_dimensions_that_stay_are_copied(model: Build, survives: Survives, allowzero: int) -> None:
    """Heads of attention, with two open dimensions: nothing of what computes the shape is left."""
    nodes = [*size("x", 0, "b"), *size("x", 1, "t")]
    before, found = reshaped(model, ("n", "t", 12), "b t v3 v4", *nodes, allowzero=allowzero)
    assert (found.op, found.attributes) == ("Reshape", {"shape": (0, 0, 3, 4)})
    assert found.types[0].shape == ("n", "t", 3, 4)
    assert len(from_onnx(before).order) == 1
    for n, t in ((2, 5), (1, 1), (0, 3)):
        survives(before, {"x": np.ones((n, t, 12), np.float32)})


def test_what_is_left_of_the_others_is_minus_one(model: Build, survives: Survives) -> None:
    before, found = reshaped(model, ("n", 12), "v3 b v4", *size("x", 0, "b"), allowzero=1)
    assert found.attributes == {"shape": (3, -1, 4)}
    survives(before, {"x": np.ones((2, 12), np.float32)})
    survives(before, {"x": np.ones((0, 12), np.float32)})


def test_minus_one_beside_a_copy_only_where_it_is_a_number(model: Build, survives: Survives) -> None:
    """Of an empty batch, ONNX Runtime cannot tell what -1 is; a computed size that is not copied could be anything."""
    product = [*size("x", 0, "b"), *size("x", 1, "t"), node("Mul", "t v3", "w")]
    before, found = reshaped(model, ("n", "t", 3), "b w", *product)
    assert found.is_opaque
    survives(before, {"x": np.ones((0, 2, 3), np.float32)})
    before, found = reshaped(model, ("n", 4, 3), "b w", *product)
    assert found.attributes == {"shape": (0, 12)}
    survives(before, {"x": np.ones((0, 4, 3), np.float32)})


def test_two_open_dimensions_elsewhere_are_computed_when_the_model_runs(model: Build, survives: Survives) -> None:
    before, found = reshaped(model, ("n", "t", 4), "t b v4", *size("x", 0, "b"), *size("x", 1, "t"))
    assert found.is_opaque
    assert found.types[0].shape == ("t", "n", 4)
    survives(before, {"x": np.ones((2, 5, 4), np.float32)})


def test_a_number_that_is_fed_is_no_size(model: Build, survives: Survives) -> None:
    """It may be -1."""
    nodes = [node("Concat", "n v4", "s", axis=0), node("Reshape", "x s", "y")]
    fed = helper.make_tensor_value_info("n", TensorProto.INT64, [1])
    before = model(nodes, [floats("x", "n", 4), fed], [floats("y", None, None)], weights=NUMBERS)
    assert last(from_onnx(before)).is_opaque
    survives(before, {"x": np.ones((3, 4), np.float32), "n": np.array([-1])})


def test_expand_as_torch_writes_it(model: Build, survives: Survives) -> None:
    """-1 keeps a dimension there: a size is none, so that the question can be answered."""
    nodes = [
        *size("x", 0, "b"),
        node("Concat", "b v3 v4", "s", axis=0),
        node("ConstantOfShape", "v3", "ones", value=helper.make_tensor("v", TensorProto.INT64, [1], [1])),
        node("Mul", "ones v-1", "minus"),
        node("Equal", "s minus", "keeps"),
        node("Where", "keeps ones s", "t"),
        node("Expand", "w t", "e"),
        node("Add", "e x", "y"),
    ]
    weights = NUMBERS | {"w": np.ones((1, 1, 4), np.float32)}
    before = model(nodes, [floats("x", "n", 3, 4)], [floats("y", "n", 3, 4)], weights=weights)
    graph = from_onnx(before)
    (expand,) = (n for n in graph.nodes.values() if n.op == "Expand")
    assert expand.types[0].shape == ("n", 3, 4)
    assert not any(n.op in ("Equal", "Mul") for n in graph.nodes.values())
    survives(before, {"x": np.ones((2, 3, 4), np.float32)})


def test_positions_cut_from_a_table_fit_what_they_are_added_to(model: Build, survives: Survives) -> None:
    """min(t, 64) positions are added to t words: where that can be done there are t of them."""
    nodes = [
        *size("x", 1, "t"),
        node("Slice", "table v0 t v1 v1", "positions"),
        node("Add", "x positions", "y"),
    ]
    weights = NUMBERS | {"table": np.ones((1, 64, 4), np.float32)}
    before = model(nodes, [floats("x", "n", "t", 4)], [floats("y", "n", "t", 4)], weights=weights)
    graph = from_onnx(before)
    assert last(graph).types[0].shape == ("n", "t", 4)
    (cut,) = (n for n in graph.nodes.values() if n.op == "Slice")
    assert cut.types[0].shape not in ((1, "t", 4), (1, 64, 4))
    survives(before, {"x": np.ones((2, 7, 4), np.float32)})


def test_a_range_to_a_size_is_so_long(model: Build, survives: Survives) -> None:
    nodes = [node("Shape", "x", "s"), node("Gather", "s i1", "t"), node("Range", "i0 t i1", "r")]
    nodes += [node("Cast", "r", "f", to=TensorProto.FLOAT), node("Add", "x f", "y")]
    before = model(nodes, [floats("x", "n", "t")], [floats("y", "n", "t")], weights=NUMBERS)
    assert last(from_onnx(before)).types[0].shape == ("n", "t")
    survives(before, {"x": np.ones((2, 7), np.float32)})


def test_branches_over_an_image_of_open_size_meet_in_one_size(model: Build, survives: Survives) -> None:
    """A 3 x 3 window padded by 1 and a 1 x 1 window, both in steps of 2, as in the first block of a ResNet."""
    nodes = [
        node("Conv", "x w3", "a", pads=[1] * 4, strides=[2, 2]),
        node("Conv", "x w1", "b", strides=[2, 2]),
        node("Add", "a b", "c"),
        node("Pad", "c p", "y"),
    ]
    weights = {
        "w3": np.ones((4, 3, 3, 3), np.float32),
        "w1": np.ones((4, 3, 1, 1), np.float32),
        "p": np.array([0, 0, 0, 1, 0, 0, 0, 1]),
    }
    before = model(nodes, [floats("x", 1, 3, "h", "w")], [floats("y", 1, 4, None, None)], weights=weights)
    graph = from_onnx(before)
    a, b, c, y = (graph.nodes[i].types[0].shape for i in graph.order)
    assert a == b == c
    assert y == (*c[:3], plus(c[3], 2))
    survives(before, {"x": np.ones((1, 3, 7, 8), np.float32)})


def test_axes_counted_from_the_end_of_what_unsqueeze_makes(model: Build) -> None:
    """Before opset 11 they should not be: torch writes them so, and ONNX Runtime runs it unless it knows the shape."""
    nodes = [node("Unsqueeze", "x", "u", axes=[-1]), node("Concat", "u u", "y", axis=2)]
    before = model(nodes, [floats("x", "n", 3)], [floats("y", "n", 3, 2)], opset=9)
    after = to_onnx(from_onnx(before))
    assert [list(a.ints) for n in after.graph.node for a in n.attribute if a.name == "axes"] == [[2]]
    x = np.ones((2, 3), np.float32)
    assert run(open_session(after, "as_written"), {"x": x})["y"].shape == (2, 3, 2)


def test_a_function_of_constants_is_left_to_the_runtime(model: Build, survives: Survives) -> None:
    """CLIP scales by exp of a weight, whose last bit is another one in numpy than in ONNX Runtime."""
    scales = np.random.default_rng(0).standard_normal(1000, np.float32)
    before = model(
        [node("Exp", "w", "e"), node("Mul", "x e", "y")],
        [floats("x", 1000)],
        [floats("y", 1000)],
        weights={"w": scales},
    )
    assert [from_onnx(before).nodes[i].op for i in from_onnx(before).order] == ["Exp", "Mul"]
    survives(before, {"x": np.ones(1000, np.float32)})


def test_a_size_that_is_rounded_up_to_patches_is_a_number(model: Build, survives: Survives) -> None:
    """As MobileViT does it, through floats: 7 rows are four patches of two."""
    nodes = [
        node("Shape", "x", "s"),
        node("Gather", "s i1", "rows"),
        node("Cast", "rows", "r", to=TensorProto.FLOAT),
        node("Div", "r patch", "q"),
        node("Ceil", "q", "c"),
        node("Mul", "c patch", "m"),
        node("Cast", "m", "whole", to=TensorProto.INT64),
        node("Unsqueeze", "whole v0", "w"),
        node("Concat", "w v1", "target", axis=0),
        node("ConstantOfShape", "target", "zeros"),
    ]
    weights = NUMBERS | {"patch": np.float32(2)}
    before = model(nodes, [floats("x", 1, 7)], [floats("zeros", 8, 1)], weights=weights)
    (found,) = (n for n in from_onnx(before).nodes.values() if "zeros" in n.names)
    assert found.types[0].shape == (8, 1)
    assert not any(n.op in ("Div", "Ceil", "Cast") for n in from_onnx(before).nodes.values())
    survives(before, {"x": np.ones((1, 7), np.float32)})


@pytest.mark.parametrize("symbol", ["#0", "#1", "n"])
def test_a_size_without_a_name_is_none_that_has_one(model: Build, symbol: str) -> None:
    """Whatever that is called. Of equal sizes the sum of two products would be one product of what is joined."""
    sizes = [floats("a", symbol, 4), floats("b", None, 4)]
    graph = from_onnx(model([node("Add", "a b", "y")], sizes, [floats("y", None, 4)]))
    (first,), (second,) = (graph.nodes[i].types for i in graph.inputs)
    assert first is not None
    assert second is not None
    assert (first.shape or ())[0] == symbol != (second.shape or ())[0]
    assert last(graph).types[0] not in (first, second), "one of them may be 1"
