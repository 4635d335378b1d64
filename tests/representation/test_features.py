"""The arrays of a graph: its nodes and edges, and nothing that tells where in the model a node stands."""

import logging
import random
from dataclasses import replace

import numpy as np
import pytest
from support.zoo_names import SMALL, ZOO

from rlflow import zoo
from rlflow.errors import InputError
from rlflow.ir.graph import Graph
from rlflow.ir.node import INPUT
from rlflow.onnx_io import from_onnx
from rlflow.ops import registry
from rlflow.representation.features import FEATURES, Featuriser, todays_vocabulary
from rlflow.representation.graph_arrays import GraphArrays
from rlflow.representation.vocabulary import OPAQUE, PADDING, Vocabulary
from rlflow.rules import library as rule_library
from rlflow.rules.matching.rewriter import Rewriter

SMALL_BERT = {"hidden": 32, "heads": 2, "intermediate": 64, "sequence": 8, "vocabulary": 50, "positions": 16}


def build(name: str, **settings: object) -> Graph:
    return from_onnx(zoo.build(name, **(SMALL_BERT | settings if name == "bert" else settings)))


def column(name: str) -> int:
    return FEATURES.index(name)


def random_graphs(steps: int, seed: int) -> list[Graph]:
    rewriter, rng = Rewriter(rule_library.load().rules), random.Random(seed)
    graphs = [build("bert", layers=2)]
    for _ in range(steps):
        matches = [found for found in rewriter.matches(graphs[-1]) if found]
        graphs.append(rewriter.apply(graphs[-1], rng.choice(rng.choice(matches))))
    return graphs


@pytest.mark.parametrize("name", ZOO)
def test_edges_are_those_of_the_graph(name):
    """Between nodes that run and inputs; constants are features of their readers, not nodes."""
    graph = build(name, **SMALL.get(name, {}))
    arrays = Featuriser().arrays(graph)
    identifiers = [*graph.inputs, *graph.order]
    assert arrays.num_nodes == len(identifiers)
    given = sorted((identifiers[s], identifiers[r]) for s, r in arrays.edges)
    expected = sorted((s, i) for i in identifiers for s in graph.nodes[i].sources if not graph.nodes[s].constant)
    assert given == expected
    assert all(s < r for s, r in arrays.edges)


def test_the_operator_is_an_index_and_never_a_scalar_feature():
    """The prototype fed the operator's number to the network as if Add were half of Mul. Here two operators of equal
    work differ in the index alone.
    """
    assert "op" not in FEATURES
    rows = {}
    for op in ("Add", "Mul"):
        graph = build("tiny_scale")
        scale = next(i for i in graph.order if graph.nodes[i].op == "Mul")
        node = graph.nodes[scale]
        operands = [(r, graph.type_of(r), graph.nodes[r.node].constant) for r in node.inputs]
        nodes = dict(graph.nodes) | {scale: registry.apply(op, {}, operands)}
        changed = Graph(
            nodes, graph.inputs, graph.outputs, graph.output_names, graph.consumers, graph.header, graph.next_id
        )
        arrays = Featuriser().arrays(changed)
        place = [*changed.inputs, *changed.order].index(scale)
        rows[op] = (int(arrays.op[place]), arrays.features[place].tolist())
    assert rows["Add"][0] != rows["Mul"][0]
    assert rows["Add"][1] == rows["Mul"][1]
    assert any(rows["Add"][1])


def test_the_vocabulary_has_every_operator_that_runs_once():
    operators = todays_vocabulary().operators
    assert operators[0] == PADDING
    assert len(set(operators)) == len(operators)
    assert {*registry.OPERATORS, INPUT} - {"Constant"} < set(operators)


def test_what_is_not_understood_is_opaque_and_not_padding():
    graph = build("loop")
    arrays = Featuriser().arrays(graph)
    opaque = {graph.nodes[i].op for i in graph.order if graph.nodes[i].is_opaque}
    assert "Loop" in opaque
    names = [todays_vocabulary().operators[op] for op in arrays.op]
    assert names.count("<opaque>") == sum(graph.nodes[i].is_opaque for i in graph.order)
    assert "<padding>" not in names


def test_equal_layers_look_equal():
    """No feature tells the depth: the rows of a layer occur once more with every layer more."""

    def rows(layers: int) -> dict[tuple, int]:
        arrays = Featuriser().arrays(build("bert", layers=layers))
        found: dict[tuple, int] = {}
        for op, features in zip(arrays.op, arrays.features, strict=True):
            key = (int(op), *features.tolist())
            found[key] = found.get(key, 0) + 1
        return found

    two, three, five = rows(2), rows(3), rows(5)
    common = two.keys() & three.keys() & five.keys()
    assert len(common) == len(two) - 1 == len(five) - 1, "all but the mask, whose readers are the layers"
    assert all(five[key] - three[key] == 2 * (three[key] - two[key]) for key in common)
    assert sum(three[key] > two[key] for key in common) > 8


def test_features_in_closed_form():
    """tiny_scale's product: 32 x 64 by a constant 64 x 64."""
    graph = build("tiny_scale")
    arrays = Featuriser().arrays(graph)
    product = next(i for i in graph.order if graph.nodes[i].op == "MatMul")
    row = arrays.features[[*graph.inputs, *graph.order].index(product)]

    def log(value: int) -> float:
        return float(np.float32(np.log2(1 + value) / 32))

    expected = {
        "log2_elements": log(32 * 64),
        "rank": 2 / 4,
        "log2_last_dimension": log(64),
        "log2_flops": log(2 * 32 * 64 * 64),
        "log2_bytes": log(4 * (32 * 64 + 64 * 64 + 32 * 64)),
        "log2_constant_elements": log(64 * 64),
        "operands": 2 / 4,
        "constant_operands": 1 / 4,
        "consumers": 1 / 4,
        "is_output": 0.0,
    }
    assert dict(zip(FEATURES, row.tolist(), strict=True)) == pytest.approx(expected, rel=1e-6)
    assert arrays.features[-1, column("is_output")] == 1.0


@pytest.mark.parametrize("seed", range(2))
def test_what_is_remembered_does_not_show(seed):
    """One featuriser over a whole trajectory, against a fresh one for every graph."""
    kept = Featuriser()
    seen = set()
    for graph in random_graphs(15, seed):
        one, other = kept.arrays(graph), Featuriser().arrays(graph)
        for field in ("op", "features", "edges"):
            assert np.array_equal(getattr(one, field), getattr(other, field))
        seen.add(one.features.tobytes())
    assert len(seen) > 5


def test_dynamic_and_unknown_shapes_have_finite_features():
    for name, settings in (
        ("bert", {"layers": 1, "sequence": "s", "batch": "b"}),
        ("loop", {}),
        ("mlp", {"batch": "n"}),
    ):
        arrays = Featuriser().arrays(build(name, **settings))
        assert np.isfinite(arrays.features).all()
        assert (arrays.features >= 0).all()
        assert arrays.features.max() < 4


def test_a_graph_without_nodes_has_arrays():
    """An input that is passed on as it is."""
    graph = build("tiny_scale")
    empty = Graph(
        {graph.inputs[0]: graph.nodes[graph.inputs[0]]},
        graph.inputs,
        (next(r for r in graph.nodes[graph.order[0]].inputs if r and r.node in graph.inputs),),
        ("y",),
        {graph.inputs[0]: ()},
        graph.header,
        100,
    )
    arrays = Featuriser().arrays(empty)
    assert arrays.num_nodes == 1
    assert arrays.edges.shape == (0, 2)
    assert arrays.features.shape == (1, len(FEATURES))


def in_words(arrays: GraphArrays, vocabulary: Vocabulary) -> list[tuple[str, dict[str, float]]]:
    """Each node as its operator and its features by name."""
    rows = (dict(zip(vocabulary.features, row, strict=True)) for row in arrays.features.tolist())
    return [(vocabulary.operators[op], row) for op, row in zip(arrays.op, rows, strict=True)]


def test_a_new_operator_changes_nothing_in_an_earlier_vocabulary(monkeypatch):
    """To the bit. Not vacuous: its name comes before all others, so that today's numbers all move."""
    graph, saved = build("bert", layers=2), todays_vocabulary()
    before = Featuriser(saved).arrays(graph)
    monkeypatch.setitem(registry.OPERATORS, "Abacus", replace(registry.OPERATORS["Relu"], name="Abacus"))
    after, today = Featuriser(saved).arrays(graph), Featuriser().arrays(graph)
    for name, array in vars(before).items():
        np.testing.assert_array_equal(array, getattr(after, name), strict=True)
    assert (today.op != before.op).any()
    assert in_words(today, todays_vocabulary()) == in_words(before, saved)


def test_the_order_of_the_names_does_not_matter():
    """A vocabulary in which everything is somewhere else, and one feature is missing, says the same of a graph."""
    graph, today = build("tiny_merge"), todays_vocabulary()
    other = Vocabulary((PADDING, *reversed(today.operators[1:])), (*FEATURES[3:], *FEATURES[:2]))
    found = in_words(Featuriser(other).arrays(graph), other)
    wanted = in_words(Featuriser(today).arrays(graph), today)
    assert found == [(op, {name: row[name] for name in other.features}) for op, row in wanted]


def test_an_unseen_operator_looks_opaque_and_is_warned_of_once(caplog):
    """Nothing that only its definition tells is left: neither its work nor that it moves no memory."""
    graph, today = build("bert", layers=2), todays_vocabulary()
    unseen = ("MatMul", "Reshape")
    fewer = replace(today, operators=tuple(name for name in today.operators if name not in unseen))
    with caplog.at_level(logging.WARNING):
        arrays = Featuriser(fewer).arrays(graph)
    warnings = [record.getMessage() for record in caplog.records]
    assert sorted(warnings) == [
        f"the operator {name} is not in the vocabulary of the model: it is seen as an opaque one" for name in unseen
    ]
    names = [graph.nodes[i].op for i in (*graph.inputs, *graph.order)]
    assert set(unseen) <= set(names)
    known = in_words(Featuriser(today).arrays(graph), today)
    for name, (op, row), (_, all_that_is_known) in zip(names, in_words(arrays, fewer), known, strict=True):
        assert op == (OPAQUE if name in unseen else name)
        if name not in unseen:
            assert row == all_that_is_known
            continue
        assert row.pop("log2_flops") == 0.0 < row.pop("log2_bytes")
        assert row.items() <= all_that_is_known.items()


def test_an_operator_that_the_library_knows_no_more_is_warned_of(caplog):
    today = todays_vocabulary()
    Featuriser(today)
    assert not caplog.records
    older = replace(today, operators=(*today.operators, "Abacus"))
    assert (Featuriser(older).arrays(build("tiny_merge")).op == Featuriser().arrays(build("tiny_merge")).op).all()
    assert [record.getMessage() for record in caplog.records] == [
        "the library no longer knows Abacus, which the model does: it is opaque now"
    ]


def test_a_feature_that_is_no_longer_computed_is_refused():
    vocabulary = replace(todays_vocabulary(), features=("rank", "age", "operands"))
    with pytest.raises(InputError, match="feature age, which this version of rlflow does not compute: fit it again"):
        Featuriser(vocabulary)


def test_a_vocabulary_without_a_place_for_the_unknown_is_refused():
    with pytest.raises(InputError, match="without <opaque>"):
        Featuriser(Vocabulary((PADDING, "Add"), ("rank",)))
