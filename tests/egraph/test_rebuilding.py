"""An e-graph becomes a problem of extraction, whose solutions become graphs that cost as much and compute the same."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.rewrites import assert_same_outputs
from support.square_graphs import Values
from support.strategies import graphs, source, weight
from support.walks import REWRITER

from rlflow import zoo
from rlflow.cost.analytic import AnalyticCost
from rlflow.egraph import greedy_extraction, ilp
from rlflow.egraph.model_egraph import ModelEGraph
from rlflow.egraph.prices import NodePrices
from rlflow.egraph.rebuilding import ModelProblem
from rlflow.egraph.seeding import replay_into
from rlflow.ir import Graph, Header, Node, Ref, TensorType, make_graph, structural_hash, validate
from rlflow.onnx_io import from_onnx
from rlflow.trajectory.record import Step, Trajectory

COST = AnalyticCost()


def _problem(egraph: ModelEGraph) -> ModelProblem:
    return ModelProblem.of(egraph, NodePrices(COST, Header(17)))


@pytest.mark.parametrize("name", ["tiny_merge", "tiny_chain", "tiny_transpose", "nasrnn", "squeezenet1_1"])
def test_a_model_comes_out_as_it_went_in(name):
    """Without rewrites there is one solution, and it is the model, to the price and the hash."""
    original = from_onnx(zoo.build(name))
    egraph = ModelEGraph.from_graph(original)
    extraction = _problem(egraph)
    as_given = extraction.solution(original, egraph.class_of, "as given")
    best = ilp.extract(extraction.problem)
    assert as_given is not None
    assert best is not None
    assert best.objective_ms == as_given.objective_ms == pytest.approx(COST.runtime_ms(original), rel=1e-9)

    rebuilt = extraction.graph(best, original)
    validate(rebuilt)
    assert structural_hash(rebuilt) == structural_hash(original)
    assert rebuilt.output_names == original.output_names
    assert rebuilt.header is original.header
    assert [rebuilt.nodes[i].names for i in rebuilt.inputs] == [original.nodes[i].names for i in original.inputs]


@given(original=graphs(), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=60)
def test_any_solution_of_many_graphs_at_once_is_a_graph(original, seed):
    """Random walks by the shipped rules from one graph, all in one e-graph: pieces of each may be combined."""
    rng = np.random.default_rng(seed)
    egraph = ModelEGraph.from_graph(original)
    for _ in range(4):
        replay_into(egraph, original, _walk(original, rng), REWRITER)

    extraction = _problem(egraph)
    greedy, best = greedy_extraction.extract(extraction.problem), ilp.extract(extraction.problem)
    assert greedy is not None
    assert best is not None
    assert best.objective_ms <= greedy.objective_ms
    for solution in (greedy, best):
        rebuilt = extraction.graph(solution, original)
        assert COST.runtime_ms(rebuilt) == pytest.approx(solution.objective_ms, rel=1e-9)
        assert_same_outputs(original, rebuilt, rng)


def _walk(start: Graph, rng: np.random.Generator) -> Trajectory:
    graph, steps = start, list[Step]()
    for _ in range(3):
        matches = REWRITER.matches(graph)
        places = [(rule, place) for rule, count in enumerate(matches.counts) for place in range(count)]
        if places:
            rule, place = places[int(rng.integers(len(places)))]
            graph = REWRITER.apply(graph, matches[rule][place])
            steps.append(Step(REWRITER.rules[rule].id, place, structural_hash(graph), 0.0, 0.0))
    return Trajectory(structural_hash(start), 0.0, "analytic", "", tuple(steps))


SQUARE = TensorType("float32", (2, 2))


def _graph(nodes: list[Node], *outputs: Ref) -> Graph:
    inputs = [i for i, node in enumerate(nodes) if node.op == "Input"]
    return make_graph(dict(enumerate(nodes)), inputs, outputs, [f"y{i}" for i in range(len(outputs))], Header(17))


def _node(op: str, *operands: Ref | None, outputs: int = 1) -> Node:
    return Node(op, operands, {}, (SQUARE,) * outputs, tuple(f"{op}{i}" for i in range(outputs)))


def test_outputs_that_nobody_reads_operands_left_out_and_unknown_operators_stay():
    """A node of an unknown operator has three outputs, of which one is read, and an operand that is left out."""
    strange = replace(_node("Strange", Ref(0), None, Ref(0), outputs=3), payload=Values("verbatim"))
    nodes = [source((2, 2), "x"), source((2, 2), "unread"), strange, _node("Relu", Ref(2, 1))]
    original = _graph(nodes, Ref(3), Ref(0))
    egraph = ModelEGraph.from_graph(original)
    extraction = ModelProblem.of(egraph, lambda node, operands: 1.0)
    solution = ilp.extract(extraction.problem)
    assert solution is not None
    assert solution.objective_ms == 2.0
    assert structural_hash(extraction.graph(solution, original)) == structural_hash(original)
    assert [choice.outputs.count(None) for choice in extraction.problem.choices] == [2, 0]


def test_equal_nodes_become_one_and_constants_stay_expressions():
    """Relu(x) is there twice, and so is the sum of two weights, which is a constant: it costs nothing and is read."""
    weights = [weight(np.full((2, 2), value, np.float32), f"w{value}") for value in (1, 2)]
    total = Node("Add", (Ref(1), Ref(2)), {}, (SQUARE,), ("sum",), True)
    nodes = [source((2, 2), "x"), *weights, total, total, _node("Relu", Ref(0)), _node("Relu", Ref(0))]
    nodes += [_node("Mul", Ref(5), Ref(3)), _node("Mul", Ref(6), Ref(4)), _node("Sub", Ref(7), Ref(8))]
    original = _graph(nodes, Ref(9), Ref(3))
    extraction = ModelProblem.of(ModelEGraph.from_graph(original), lambda node, operands: 1.0)
    solution = ilp.extract(extraction.problem)
    assert solution is not None
    assert solution.objective_ms == 3.0
    rebuilt = extraction.graph(solution, original)
    assert_same_outputs(original, rebuilt, np.random.default_rng(0))
    assert sorted(node.op for node in rebuilt.nodes.values()) == sorted(
        ["Input", "Weight", "Weight", "Add", "Relu", "Mul", "Sub"]
    )


def test_a_graph_that_was_filtered_out_is_no_solution():
    original = _graph([source((2, 2), "x"), _node("Relu", Ref(0))], Ref(1))
    egraph = ModelEGraph.from_graph(original)
    assert _problem(egraph).solution(original, egraph.class_of, "as given") is not None
    egraph.filter(egraph.class_of[Ref(1)])
    assert _problem(egraph).solution(original, egraph.class_of, "as given") is None


def test_ranks_count_the_uses_that_led_to_an_application():
    """Applications of the model have rank 0; each rewrite of what another made has one more."""
    original = from_onnx(zoo.build("tiny_chain"))
    egraph = ModelEGraph.from_graph(original)
    for seed in range(8):
        replay_into(egraph, original, _walk(original, np.random.default_rng(seed)), REWRITER)
    extraction = _problem(egraph)
    ranks = dict(zip(extraction.applications, (c.rank for c in extraction.problem.choices), strict=True))
    of_the_model = set(map(egraph.application, egraph.class_of.values()))
    assert {application for application, rank in ranks.items() if rank == 0} <= of_the_model
    assert {0, 1, 2} <= set(ranks.values())


def test_an_application_may_be_left_out():
    """Of two ways to the output the second remains; without both there is no solution."""
    egraph = ModelEGraph.from_graph(
        _graph([source((2, 2), "x"), _node("Relu", Ref(0)), _node("Tanh", Ref(0))], Ref(1), Ref(2))
    )
    one, other = (egraph.class_of[Ref(i)] for i in (1, 2))
    egraph.unite(one, other)
    egraph.rebuild()
    extraction = _problem(egraph)
    assert ilp.extract(extraction.without([one]).problem) is not None
    assert extraction.without([one]).applications == (other,)
    assert ilp.extract(extraction.without([one, other]).problem) is None
