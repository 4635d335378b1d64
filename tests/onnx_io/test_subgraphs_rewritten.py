"""Subgraphs of If, Loop, Scan and SequenceMap as models of their own, rewritten, and put back."""

import logging
from collections.abc import Callable

import numpy as np
import onnx
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper
from support.kernels import same_values
from support.onnx_models import Build, build_model, floats
from support.recording import branches
from support.strategies import graphs
from support.walks import REWRITER

from rlflow import zoo
from rlflow.equivalence.compare import compare
from rlflow.errors import RLFlowError
from rlflow.ir import Graph, Ref
from rlflow.onnx_io import check_model, from_onnx, to_onnx
from rlflow.onnx_io.standalone import standalone_model
from rlflow.onnx_io.subgraphs import Subgraph, size, subgraphs, with_subgraphs
from rlflow.runtime.inputs import draw_inputs
from rlflow.runtime.session import open_session, run

Change = Callable[[Graph], Graph]

FLAG = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
COUNTERS = [helper.make_tensor_value_info(n, k, []) for n, k in (("i", TensorProto.INT64), ("go", TensorProto.BOOL))]
GO_ON = helper.make_tensor_value_info("go_on", TensorProto.BOOL, [])
RNG = np.random.default_rng(0)
W = {name: RNG.standard_normal((4, 4)).astype(np.float32) for name in ("w", "v")}
X = RNG.standard_normal((3, 4)).astype(np.float32)
REFUSED = (RLFlowError, ValueError, onnx.checker.ValidationError)


def rewritten(model: ModelProto, change: Change) -> ModelProto:
    """All subgraphs changed, the innermost first."""
    return with_subgraphs(
        model, {body.place: to_onnx(change(from_onnx(rewritten(body.model, change)))) for body in subgraphs(model)}
    )


def as_it_is(graph: Graph) -> Graph:
    return graph


def without_identities(graph: Graph) -> Graph:
    identity = next((i for i, node in graph.nodes.items() if node.op == "Identity"), None)
    if identity is None:
        return graph
    (operand,) = graph.nodes[identity].inputs
    assert operand is not None
    return without_identities(graph.replace({}, {Ref(identity): operand}))


def at_random(seed: int, steps: int = 5) -> tuple[Change, list[str]]:
    """Random rewrites, and the list to which the rules that fired are added."""
    rng, fired = np.random.default_rng(seed), list[str]()

    def change(graph: Graph) -> Graph:
        for _ in range(steps):
            matches = [match for of_rule in REWRITER.matches(graph) for match in of_rule]
            if matches:
                match = matches[int(rng.integers(len(matches)))]
                graph = REWRITER.apply(graph, match)
                fired.append(match.rule.name)
        return graph

    return change, fired


def assert_equal(before: ModelProto, after: ModelProto, **fed: np.ndarray) -> None:
    """Valid, and equal within rounding on informative inputs, or on these."""
    check_model(after)
    inputs = draw_inputs(before, np.random.default_rng(0)) | fed
    report = compare(before, after, inputs=[inputs])
    assert report.equivalent, report.summary
    assert report.non_vacuous_draws


def branch(name: str, nodes: list[NodeProto], output: str, *shape: int | str | None) -> GraphProto:
    return helper.make_graph(nodes, name, [], [floats(output, *shape)], doc_string=f"what {name} is for")


def conditional(then: list[NodeProto], otherwise: list[NodeProto], *shape: int | str | None) -> NodeProto:
    """Results of both branches are called `t` and `e`."""
    return helper.make_node(
        "If",
        ["c"],
        ["y"],
        name="choice",
        then_branch=branch("then", then, "t", *shape),
        else_branch=branch("else", otherwise, "e", *shape),
    )


def loop(nodes: list[NodeProto], carried: list[onnx.ValueInfoProto], results: list[onnx.ValueInfoProto]) -> NodeProto:
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["go_on"]), *nodes], "body", [*COUNTERS, *carried], [GO_ON, *results]
    )
    outputs = ["y", *(f"{value.name}_trace" for value in results[len(carried) :])]
    return helper.make_node("Loop", ["trips", "", "x"], outputs, name="repeat", body=body)


def two_layers(result: str) -> list[NodeProto]:
    """Both weights and the input are captured; rules see two products in a row."""
    return [
        helper.make_node("MatMul", ["x", "w"], [f"{result}_1"]),
        helper.make_node("MatMul", [f"{result}_1", "v"], [result]),
    ]


def perceptrons() -> ModelProto:
    nodes = [conditional(two_layers("t"), [*two_layers("h"), helper.make_node("Relu", ["h"], ["e"])], 3, 4)]
    return build_model(nodes, [FLAG, floats("x", 3, 4)], [floats("y", 3, 4)], weights=W)


def recurrence() -> ModelProto:
    nodes = [
        helper.make_node("MatMul", ["s", "w"], ["p"]),
        helper.make_node("Add", ["p", "x"], ["q"]),
        helper.make_node("Tanh", ["q"], ["r"]),
        helper.make_node("Transpose", ["r"], ["r_transposed"]),
    ]
    node = loop(nodes, [floats("s", 3, 4)], [floats("r", 3, 4), floats("r_transposed", 4, 3)])
    outputs = [floats("y", 3, 4), floats("r_transposed_trace", 3, 4, 3)]
    return build_model([node], [floats("x", 3, 4)], outputs, weights={**W, "trips": np.int64(3)})


def scan() -> ModelProto:
    """Over the second axis of x; the state is a vector."""
    nodes = [helper.make_node("MatMul", ["s", "w"], ["p"]), helper.make_node("Add", ["p", "z"], ["r"])]
    body = helper.make_graph(
        [*nodes, helper.make_node("Neg", ["r"], ["o"])],
        "body",
        [floats("s", 4), floats("z", 4)],
        [floats("r", 4), floats("o", 4)],
    )
    node = helper.make_node(
        "Scan", ["start", "x"], ["last", "y"], name="walk", body=body, num_scan_inputs=1, scan_input_axes=[1]
    )
    outputs = [floats("last", 4), floats("y", 7, 4)]
    return build_model([node], [floats("x", 4, 7), floats("start", 4)], outputs, weights=W)


def nested() -> ModelProto:
    """A Loop around an If whose branches capture the state, a value of the Loop's body, an outer value and weights."""
    inner = helper.make_node(
        "If",
        ["odd"],
        ["r"],
        then_branch=branch("then", [*two_layers("h"), helper.make_node("Add", ["h", "u"], ["t"])], "t", 3, 4),
        else_branch=branch(
            "else",
            [helper.make_node("MatMul", ["s", "w"], ["g"]), helper.make_node("MatMul", ["g", "v"], ["e"])],
            "e",
            3,
            4,
        ),
    )
    nodes = [
        helper.make_node("Cast", ["i"], ["odd"], to=TensorProto.BOOL),
        helper.make_node("MatMul", ["s", "v"], ["u"]),
        inner,
    ]
    outer = [helper.make_node("Exp", ["x_0"], ["x"]), loop(nodes, [floats("s", 3, 4)], [floats("r", 3, 4)])]
    return build_model(outer, [floats("x_0", 3, 4)], [floats("y", 3, 4)], weights={**W, "trips": np.int64(2)})


def sequence_map() -> ModelProto:
    body = helper.make_graph(
        [helper.make_node("MatMul", ["z", "w"], ["p"]), helper.make_node("MatMul", ["p", "a"], ["o"])],
        "body",
        [floats("z", 3, 4), floats("a", 4, 4)],
        [floats("o", 3, 4)],
    )
    nodes = [
        helper.make_node("SequenceConstruct", ["x", "x"], ["s"]),
        helper.make_node("SequenceMap", ["s", "v"], ["m"], name="each", body=body),
        helper.make_node("ConcatFromSequence", ["m"], ["y"], axis=0),
    ]
    return build_model(nodes, [floats("x", 3, 4)], [floats("y", 6, 4)], weights=W)


MODELS: dict[str, Callable[[], ModelProto]] = {
    "perceptrons": perceptrons,
    "recurrence": recurrence,
    "scan": scan,
    "nested": nested,
    "sequence_map": sequence_map,
    "zoo_loop": lambda: zoo.build("loop"),
    "branches": branches,
}


def types_of(body: Subgraph) -> dict[str, str]:
    return {name: str(kind) for name, kind in _types(body.model).items()}


def _types(model: ModelProto) -> dict[str, object]:
    graph = from_onnx(model)
    return {graph.nodes[i].names[0]: graph.nodes[i].types[0] for i in graph.inputs}


@pytest.mark.parametrize("name", MODELS)
def test_bodies_are_models_that_run(name: str) -> None:
    found = list(subgraphs(MODELS[name]()))
    assert found
    for body in found:
        onnx.checker.check_model(body.model, full_check=True)
        outputs = run(open_session(body.model, "as_written"), draw_inputs(body.model, np.random.default_rng(0)))
        assert all(np.asarray(value).std() for value in outputs.values() if np.asarray(value).ndim)


@pytest.mark.parametrize("name", MODELS)
def test_put_back_as_they_are(name: str) -> None:
    """Bit for bit the same model, which the original is not part of."""
    model = MODELS[name]()
    assert with_subgraphs(model, {}) is model
    same = with_subgraphs(model, {body.place: body.model for body in subgraphs(model)})
    assert same is not model
    assert same.SerializeToString(deterministic=True) == model.SerializeToString(deterministic=True)


@pytest.mark.parametrize("name", MODELS)
def test_through_import_and_export(name: str) -> None:
    """Interfaces of subgraphs, their texts and the nodes that hold them stay; no captured weight is stored inside."""
    before = MODELS[name]()
    after = rewritten(before, as_it_is)
    check_model(after)
    assert [n.name for n in before.graph.node] == [n.name for n in after.graph.node]
    for old, new in zip(_graphs_of(before.graph), _graphs_of(after.graph), strict=True):
        assert (old.name, old.doc_string) == (new.name, new.doc_string)
        assert list(old.input) == list(new.input)
        assert list(old.output) == list(new.output)
        assert not new.initializer
    inputs = draw_inputs(before, np.random.default_rng(0))
    expected, actual = (run(open_session(m, "as_written"), inputs) for m in (before, after))
    assert all(same_values(value, actual[name]) for name, value in expected.items())


def _new(before: ModelProto, after: ModelProto) -> list[TensorProto]:
    """Constants of the model that it had not before; subgraphs hold none."""
    assert not any(inner.initializer for inner in _graphs_of(after.graph))
    known = {tensor.name for tensor in before.graph.initializer}
    return [tensor for tensor in after.graph.initializer if tensor.name not in known]


def _graphs_of(graph: GraphProto) -> list[GraphProto]:
    found = []
    for attribute in (a for node in graph.node for a in node.attribute if a.HasField("g")):
        found += [attribute.g, *_graphs_of(attribute.g)]
    return found


@pytest.mark.parametrize("name", sorted(MODELS.keys() - {"branches"}))  # of one node each
@pytest.mark.parametrize("seed", range(3))
def test_random_rewrites_inside(name: str, seed: int) -> None:
    model = MODELS[name]()
    change, fired = at_random(seed)
    after = rewritten(model, change)
    assert fired
    conditions = [value.name for value in model.graph.input if value.type.tensor_type.elem_type == TensorProto.BOOL]
    for truth in (False, True):
        assert_equal(model, after, **{condition: np.array(truth) for condition in conditions})


@pytest.mark.slow
@given(graphs(max_nodes=8), st.integers(0, 2**32 - 1))
def test_random_rewrites_of_drawn_branches(graph: Graph, seed: int) -> None:
    """Both branches hold the drawn graph and capture its inputs and weights."""
    alone = standalone_model(graph)
    sides = [helper.make_graph(alone.graph.node, side, [], alone.graph.output) for side in ("then", "else")]
    results = [floats(f"y{place}", None) for place, _ in enumerate(alone.graph.output)]
    node = helper.make_node("If", ["c"], [v.name for v in results], then_branch=sides[0], else_branch=sides[1])
    model = _around(alone, [node], [FLAG, *alone.graph.input], results)
    change, fired = at_random(seed)
    after = rewritten(model, change)
    assume(fired)
    for truth in (False, True):
        _assert_close(model, after, c=np.array(truth))


@pytest.mark.slow
@given(graphs(max_nodes=8), st.integers(0, 2**32 - 1))
def test_random_rewrites_of_drawn_iterations(graph: Graph, seed: int) -> None:
    """The body holds the drawn graph; one input is carried, the other and the weights are captured."""
    alone = standalone_model(graph)
    carried = alone.graph.input[0]
    ends = [helper.make_node("Identity", ["go"], ["go_on"]), helper.make_node("Neg", [carried.name], ["carried_on"])]
    next_one = onnx.ValueInfoProto(name="carried_on", type=carried.type)
    body = helper.make_graph(
        [*ends, *alone.graph.node], "body", [*COUNTERS, carried], [GO_ON, next_one, *alone.graph.output]
    )
    results = [floats("end", None), *(floats(f"y{place}", None) for place, _ in enumerate(alone.graph.output))]
    node = helper.make_node("Loop", ["trips", "", "start"], [v.name for v in results], body=body)
    start = onnx.ValueInfoProto(name="start", type=carried.type)
    trips = numpy_helper.from_array(np.array(2), "trips")
    model = _around(alone, [node], [start, *alone.graph.input[1:]], results, trips)
    change, fired = at_random(seed)
    after = rewritten(model, change)
    assume(fired)
    _assert_close(model, after)


def _around(
    alone: ModelProto,
    nodes: list[NodeProto],
    inputs: list[onnx.ValueInfoProto],
    outputs: list[onnx.ValueInfoProto],
    *weights: TensorProto,
) -> ModelProto:
    """The weights of a model outside, nodes that use them inside; ONNX infers the outputs' shapes."""
    graph = helper.make_graph(nodes, "around", inputs, outputs, initializer=[*alone.graph.initializer, *weights])
    model = helper.make_model(graph, opset_imports=list(alone.opset_import), ir_version=10)
    return onnx.shape_inference.infer_shapes(model)


def _assert_close(before: ModelProto, after: ModelProto, **fed: np.ndarray) -> None:
    onnx.checker.check_model(after)
    report = compare(before, after, inputs=[draw_inputs(before, np.random.default_rng(0)) | fed])
    assert report.equivalent, report.summary


def test_rules_fire_inside_where_none_did() -> None:
    """Both products are in the branches: the graph itself has nothing to match."""
    model = perceptrons()
    assert not any(REWRITER.matches(from_onnx(model)).counts)
    assert [sum(REWRITER.matches(from_onnx(body.model)).counts) > 0 for body in subgraphs(model)] == [True, True]


def test_types_of_what_bodies_are_given() -> None:
    (body,) = subgraphs(recurrence())
    assert (body.node, body.attribute) == ("repeat", "body")
    assert types_of(body) == {"i": "int64[]", "go": "bool[]", "s": "float32[3, 4]", "x": "float32[3, 4]"}
    assert {tensor.name for tensor in body.model.graph.initializer} == {"w"}
    (body,) = subgraphs(scan())
    assert types_of(body) == {"s": "float32[4]", "z": "float32[4]"}
    (body,) = subgraphs(sequence_map())
    assert types_of(body) == {"z": "float32[3, 4]", "a": "float32[4, 4]"}
    (outer,) = subgraphs(nested())
    otherwise, then = subgraphs(outer.model)
    assert types_of(then) == {"x": "float32[3, 4]", "u": "float32[3, 4]"}
    assert types_of(otherwise) == {"s": "float32[3, 4]"}
    assert {tensor.name for tensor in then.model.graph.initializer} == set(W)


def test_sizes_that_the_model_names_keep_their_names(model: Build) -> None:
    """Those that inference makes up do not: another model would take them for something they are not."""
    nodes = [
        helper.make_node("NonZero", ["x"], ["where"]),
        helper.make_node("Cast", ["where"], ["n"], to=TensorProto.FLOAT),
        conditional([helper.make_node("ReduceSum", ["x"], ["t"])], [helper.make_node("ReduceMax", ["n"], ["e"])], 1, 1),
    ]
    before = model(nodes, [FLAG, floats("x", "batch", 4)], [floats("y", 1, 1)])
    otherwise, then = subgraphs(before)
    assert types_of(then) == {"x": "float32[batch, 4]"}
    assert then.model.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"
    assert otherwise.model.graph.input[0].type.tensor_type.shape.dim[0].dim_value == 2
    assert otherwise.model.graph.input[0].type.tensor_type.shape.dim[1].WhichOneof("value") is None


def test_a_weight_that_a_caller_may_override_is_an_input(model: Build) -> None:
    inputs = [FLAG, floats("x", 3, 4), floats("w", 4, 4)]
    before = model([conditional(two_layers("t"), two_layers("e"), 3, 4)], inputs, [floats("y", 3, 4)], weights=W)
    for body in subgraphs(before):
        assert {value.name for value in body.model.graph.input} == {"x", "w"}
        assert {tensor.name for tensor in body.model.graph.initializer} == {"v"}


def test_what_a_constant_node_holds_is_a_constant_inside(model: Build) -> None:
    held = helper.make_node("Constant", [], ["w"], value=numpy_helper.from_array(W["w"]))
    nodes = [held, conditional(two_layers("t"), two_layers("e"), 3, 4)]
    before = model(nodes, [FLAG, floats("x", 3, 4)], [floats("y", 3, 4)], weights={"v": W["v"]})
    for body in subgraphs(before):
        assert {tensor.name for tensor in body.model.graph.initializer} == {"w", "v"}
    after = rewritten(before, as_it_is)
    assert after.graph.node[0] == held
    assert_equal(before, after)


def test_a_second_name_of_a_weight_is_a_constant_inside(model: Build) -> None:
    """As torch writes weights that are used twice."""
    names = [helper.make_node("Identity", [a], [b]) for a, b in (("w_0", "w_1"), ("w_1", "w"))]
    nodes = [*names, conditional(two_layers("t"), two_layers("e"), 3, 4)]
    before = model(nodes, [FLAG, floats("x", 3, 4)], [floats("y", 3, 4)], weights={"w_0": W["w"], "v": W["v"]})
    for body in subgraphs(before):
        assert {tensor.name for tensor in body.model.graph.initializer} == {"w", "v"}
    same = with_subgraphs(before, {body.place: body.model for body in subgraphs(before)})
    assert same == before
    after = rewritten(before, _merged)
    assert len(_new(before, after)) == 1
    for truth in (False, True):
        assert_equal(before, after, c=np.array(truth))


def _merged(graph: Graph) -> Graph:
    """x w v as x (w v)."""
    matches = [match for of_rule in REWRITER.matches(graph) for match in of_rule]
    return next(after for m in matches if len((after := REWRITER.apply(graph, m)).order) < len(graph.order))


def test_the_value_of_a_constant_expression_becomes_a_constant_of_the_model() -> None:
    """One for both branches, which compute the same."""
    before = perceptrons()
    after = rewritten(before, _merged)
    otherwise, then = _graphs_of(after.graph)
    (new,) = _new(before, after)
    assert [node.op_type for node in then.node] == ["MatMul"]
    assert [node.op_type for node in otherwise.node] == ["MatMul", "Relu"]
    assert then.node[0].input[1] == otherwise.node[0].input[1] == new.name
    assert np.allclose(numpy_helper.to_array(new), W["w"] @ W["v"], atol=1e-5)
    for truth in (False, True):
        assert_equal(before, after, c=np.array(truth))


def test_constants_of_a_body_stay_inside(model: Build) -> None:
    """An initializer, and what a Constant node held."""
    held = helper.make_node("Constant", [], ["v"], value=numpy_helper.from_array(W["v"]))
    then = branch("then", [held, *two_layers("t")], "t", 3, 4)
    then.initializer.append(numpy_helper.from_array(W["w"], "w"))
    otherwise = branch("else", [helper.make_node("Neg", ["x"], ["e"])], "e", 3, 4)
    node = helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=otherwise)
    before = model([node], [FLAG, floats("x", 3, 4)], [floats("y", 3, 4)])
    after = rewritten(before, as_it_is)
    assert {tensor.name for tensor in _graphs_of(after.graph)[1].initializer} == {"w", "v"}
    assert not after.graph.initializer
    assert_equal(before, after, c=np.array(True))


@pytest.mark.parametrize("is_weight", [False, True])
def test_names_that_are_taken_outside(is_weight: bool) -> None:
    """The new weight is called as export likes to call it, and so is something outside."""
    taken = "rlflow/weight_0"
    (node,) = perceptrons().graph.node
    node.output[0] = "z"
    nodes = [node, helper.make_node("Add", ["z", taken], ["y"])]
    inputs = [FLAG, floats("x", 3, 4), *([] if is_weight else [floats(taken, 3, 4)])]
    before = build_model(nodes, inputs, [floats("y", 3, 4)], weights=W | ({taken: X} if is_weight else {}))
    for body in subgraphs(before):
        assert taken in {tensor.name for tensor in to_onnx(_merged(from_onnx(body.model))).graph.initializer}
    after = rewritten(before, _merged)
    (new,) = _new(before, after)
    assert new.name != taken
    for truth in (False, True):
        assert_equal(before, after, c=np.array(truth))


def test_the_name_of_a_captured_weight_that_is_read_no_more() -> None:
    """Another weight of this name is not taken for it, and does not hide it."""
    before = perceptrons()
    body, _ = subgraphs(before)
    (w,) = (tensor for tensor in body.model.graph.initializer if tensor.name == "w")
    w.CopyFrom(numpy_helper.from_array(2 * W["w"], "w"))
    after = with_subgraphs(before, {body.place: body.model})
    check_model(after)
    feeds = {"x": X, "c": np.array(False)}
    expected, actual = (run(open_session(m, "as_written"), feeds)["y"] for m in (before, after))
    assert np.allclose(actual, 2 * expected, rtol=1e-5)
    assert expected.any()


def test_names_two_levels_down() -> None:
    """What is new in a body of a body differs from all names of the main graph, which the body does not see."""
    before = nested()
    before.graph.output.append(floats("rlflow/weight_0", 3, 4))
    before.graph.node.append(helper.make_node("Neg", ["x_0"], ["rlflow/weight_0"]))
    check_model(before)

    def change(graph: Graph) -> Graph:
        products = [node for node in graph.nodes.values() if node.op == "MatMul"]
        return _merged(graph) if len(products) > 1 else graph

    (outer,) = subgraphs(before)
    assert [tensor.name for tensor in _new(outer.model, rewritten(outer.model, change))] == ["rlflow/weight_0"]
    after = rewritten(before, change)
    (new,) = _new(before, after)
    assert new.name != "rlflow/weight_0"
    assert_equal(before, after)


@pytest.mark.parametrize("source", ["x", "w", "i"])
def test_a_result_that_becomes_what_the_body_was_given(model: Build, source: str) -> None:
    """ONNX Runtime takes no captured value for a result, nor one of the body's inputs: an Identity remains."""
    shape = {"x": (4, 4), "w": (4, 4), "i": ()}[source]
    inner = [helper.make_node("Identity", [source], ["a"]), helper.make_node("Identity", ["a"], ["t"])]
    if source == "i":
        nodes = [
            loop(
                inner,
                [floats("s", 4, 4)],
                [floats("s_out", 4, 4), helper.make_tensor_value_info("t", TensorProto.INT64, [])],
            )
        ]
        nodes[0].attribute[0].g.node.append(helper.make_node("Neg", ["s"], ["s_out"]))
        results = [floats("y", 4, 4), helper.make_tensor_value_info("t_trace", TensorProto.INT64, [3])]
        before = model(nodes, [floats("x", 4, 4)], results, weights={"trips": np.int64(3)})
    else:
        node = conditional(inner, [helper.make_node("Neg", ["x"], ["e"])], *shape)
        before = model([node], [FLAG, floats("x", 4, 4)], [floats("y", 4, 4)], weights=W)
    after = rewritten(before, without_identities)
    changed = _graphs_of(after.graph)[-1]
    assert [list(n.input) for n in changed.node if n.op_type == "Identity" and n.output[0] == "t"] == [[source]]
    assert not changed.initializer
    fed = {} if source == "i" else {"c": np.array(True)}
    assert_equal(before, after, **fed)


def _growing(model: Build) -> ModelProto:
    node = loop([helper.make_node("Concat", ["s", "x"], ["r"], axis=0)], [floats("s", "n", 4)], [floats("r", "m", 4)])
    return model([node], [floats("x", 3, 4)], [floats("y", "k", 4)], weights={"trips": np.int64(3)})


def _of_unknown_rank(model: Build) -> ModelProto:
    nodes = [
        helper.make_node("Reshape", ["x", "shape"], ["r"]),
        conditional([helper.make_node("Neg", ["r"], ["t"])], [helper.make_node("Relu", ["r"], ["e"])], None),
    ]
    shape = helper.make_tensor_value_info("shape", TensorProto.INT64, ["rank"])
    return model(nodes, [FLAG, shape, floats("x", 3, 4)], [floats("y", None)])


def _through_batches(model: Build) -> ModelProto:
    body = helper.make_graph(
        [helper.make_node("Add", ["s", "z"], ["r"]), helper.make_node("Neg", ["r"], ["o"])],
        "body",
        [floats("s"), floats("z")],
        [floats("r"), floats("o")],
    )
    node = helper.make_node("Scan", ["", "start", "x"], ["last", "y"], body=body, num_scan_inputs=1)
    inputs = [floats("start", 2), floats("x", 2, 3)]
    return model([node], inputs, [floats("last", 2), floats("y", 2, 3)], opset=8)


@pytest.mark.parametrize(
    ("build", "reason"),
    [
        (_growing, "the shape of 's' may change from iteration to iteration"),
        (_of_unknown_rank, "the type of 'r' is not known"),
        (_through_batches, "Scan of opset 8 has a batch axis"),
    ],
)
def test_what_has_no_known_type_stays_as_it_is(
    model: Build, caplog: pytest.LogCaptureFixture, build: Callable[[Build], ModelProto], reason: str
) -> None:
    with caplog.at_level(logging.DEBUG, "rlflow.onnx_io.subgraphs"):
        assert not list(subgraphs(build(model)))
    assert reason in caplog.text


def test_bodies_of_old_files_stay_as_they_are() -> None:
    """Before version 4 they could hold no weight."""
    model = perceptrons()
    model.graph.input.extend(floats(name, 4, 4) for name in W)
    model.ir_version = 3
    onnx.checker.check_model(model)
    assert not list(subgraphs(model))


def test_a_model_without_bodies_has_none() -> None:
    assert not list(subgraphs(zoo.build("tiny_chain")))


def test_nodes_are_counted_with_those_inside() -> None:
    """Exp, Loop; Identity, Cast, MatMul, If; three in one branch, two in the other."""
    assert size(nested().graph) == 2 + 4 + 3 + 2
