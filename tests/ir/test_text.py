"""Print and parse: a graph survives its text, and two graphs of one structure print alike."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.square_graphs import SQUARE, graph_of, node, random_graph, renumbered, source, weight
from support.zoo_names import SMALL, ZOO

from rlflow import zoo
from rlflow.errors import GraphError
from rlflow.ir import Node, Ref, TensorType, structural_hash, validate
from rlflow.ir.text import UnknownPayload, from_text, to_text
from rlflow.onnx_io import from_onnx, to_onnx

NAMES = st.text(max_size=6)
VALUES = st.recursive(
    st.integers() | st.floats(allow_nan=False) | NAMES | st.binary(max_size=4),
    lambda inner: st.lists(inner, max_size=3).map(tuple),
    max_leaves=5,
)
WORDS = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.]*", fullmatch=True)
DIMENSIONS = st.integers(0, 9) | st.none() | st.text(min_size=1, max_size=5)
TYPES = st.builds(
    TensorType, st.sampled_from(["float32", "int4"]), st.none() | st.lists(DIMENSIONS, max_size=3).map(tuple)
)


def test_what_it_looks_like() -> None:
    nodes = [source("x"), weight("w1"), node("MatMul", 0, 1, name="m"), node("Pair", 2, None, outputs=2, axis=-1)]
    assert to_text(graph_of(nodes, Ref(3, 1))) == (
        "opset 17\n"
        '%0 = Input "x": float32[4, 4]\n'
        '%1 = Weight @w1 "w1": float32[4, 4] constant\n'
        '%2 = MatMul(%0, %1) "m": float32[4, 4]\n'
        '%3 = Pair(%2, ?) {axis=-1} "": float32[4, 4], "1": float32[4, 4]\n'
        "inputs %0\n"
        'outputs "y0" = %3.1\n'
    )


@settings(max_examples=50)
@given(seed=st.integers(0, 2**32 - 1))
def test_round_trip_of_random_graphs(seed: int) -> None:
    graph = random_graph(seed)
    again = from_text(to_text(graph))
    validate(again)
    assert structural_hash(again) == structural_hash(graph)
    assert to_text(again) == to_text(graph)
    assert [n.names for n in again.nodes.values()] == [graph.nodes[i].names for i in _in_text_order(graph)]


def _in_text_order(graph):  # type: ignore[no-untyped-def]
    from rlflow.ir.text import _listing

    return _listing(graph)


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32 - 1))
def test_numbers_do_not_show(seed: int) -> None:
    graph = random_graph(seed)
    assert to_text(renumbered(graph, seed)).replace("'\"", '"') == to_text(graph)


@pytest.mark.slow
@settings(max_examples=200)
@given(
    op=WORDS,
    attributes=st.dictionaries(WORDS, VALUES, max_size=3),
    kind=st.none() | TYPES,
    name=NAMES,
    label=NAMES,
    output=NAMES,
)
def test_round_trip_of_anything_inside_a_node(op, attributes, kind, name, label, output) -> None:  # type: ignore[no-untyped-def]
    odd = Node(op, (Ref(0), None), attributes, (kind,), (name,), label=label)
    graph = graph_of([source(), odd], 1)
    graph = type(graph)(
        graph.nodes, graph.inputs, graph.outputs, (output,), graph.consumers, graph.header, graph.next_id
    )
    read = from_text(to_text(graph))
    again = read.nodes[read.order[0]]
    assert (again.op, again.attributes, again.types, again.names, again.label) == (
        op,
        attributes,
        (kind,),
        (name,),
        label,
    )
    assert again.signature == odd.signature
    assert read.output_names == (output,)


@pytest.mark.parametrize("name", ZOO)
def test_round_trip_of_the_zoo_through_its_text(name: str) -> None:
    """The model that is exported afterwards is the same to the byte, names and weights included."""
    graph = from_onnx(zoo.build(name, **SMALL.get(name, {})))
    again = from_text(to_text(graph), like=graph)
    assert to_text(again) == to_text(graph)
    exported, original = (to_onnx(g).SerializeToString(deterministic=True) for g in (again, graph))
    assert exported == original


def test_without_the_model_weights_are_known_by_their_digest() -> None:
    graph = graph_of([source(), weight("w1"), node("Add", 0, 1)], 2)
    again = from_text(to_text(graph))
    payload = again.nodes[1].payload
    assert isinstance(payload, UnknownPayload)
    assert payload.digest == "w1"
    assert from_text(to_text(graph), like=graph).nodes[1].payload is graph.nodes[1].payload


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('%1 = Relu(%7) "r": float32[4]', "line 3 .*%7 has not been computed"),
        ('%1 = Relu(%0.1) "r": float32[4]', "%0.1 has not been computed"),
        ('%1 = Relu(%0 "r": float32[4]', r"expected '\)'"),
        ('%1 = Relu(%0) "r" float32[4]', "expected ':'"),
        ('%1 = Relu(%0) "r": float32[4', r"expected ']'"),
        ('%1 = Relu(%0) {axis} "r": float32[4]', "expected '='"),
        ('%1 = Relu(%0) "r": float32[4] nonsense', "unexpected 'nonsense'"),
        ("nonsense", "unexpected 'nonsense'"),
        ('outputs "y" = %1', "%1 has not been computed"),
    ],
)
def test_refusals_name_the_line(line: str, reason: str) -> None:
    text = f'opset 17\n%0 = Input "x": float32[4]\n{line}\ninputs %0\noutputs "y" = %0\n'
    with pytest.raises(GraphError, match=reason):
        from_text(text)


@pytest.mark.parametrize("text", ["", "opset 17\n", '%0 = Input "x": float32[4]\ninputs %0\noutputs "y" = %0\n'])
def test_a_text_that_is_not_whole(text: str) -> None:
    with pytest.raises(GraphError, match="the text is no graph: it needs a line"):
        from_text(text)


def test_domains_are_kept() -> None:
    graph = graph_of([source(), node("Relu", 0)], 1)
    custom = replace(graph, header=replace(graph.header, domains={"com.microsoft": 1, "a b": 3}))
    read = from_text(to_text(custom))
    assert read.header.domains == {"com.microsoft": 1, "a b": 3}
    assert read.header.offers({"": 17, "com.microsoft": 1})
    assert not any(read.header.offers(v) for v in ({"": 18}, {"com.microsoft": 2}, {"org.other": 1}))


def test_a_graph_of_another_opset() -> None:
    graph = graph_of([source(), node("Relu", 0)], 1)
    with pytest.raises(GraphError, match=r"opset 17, .* of opset 18"):
        from_text(to_text(graph), like=graph_of([source(), Node("Relu", (Ref(0),), {}, (SQUARE,), ("",))], 1, opset=18))
