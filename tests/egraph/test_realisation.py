"""Solutions of e-graphs as rewrites: complete, right, and told where they are not complete."""

from collections.abc import Sequence

import numpy as np
import pytest
from support.egraphs import explored_by_walks
from support.rewrites import assert_same_outputs, graph_of
from support.strategies import source
from support.walks import LIBRARY, SHARING, add, leaf
from support.wrong_rule import WRONG, differs_from

from rlflow import zoo
from rlflow.cost.analytic import AnalyticCost
from rlflow.egraph import greedy_extraction
from rlflow.egraph.model_egraph import ModelEGraph
from rlflow.egraph.prices import NodePrice, NodePrices
from rlflow.egraph.realisation import Realisation, realise
from rlflow.egraph.rebuilding import ModelProblem
from rlflow.ir import Graph, Node, Ref, structural_hash
from rlflow.ir.tensor_type import TensorType
from rlflow.method import Budget, Ledger, Workspace
from rlflow.onnx_io import from_onnx
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.rules.matching.sharing import SharingRewriter
from rlflow.trajectory.bisect import first_wrong_step
from rlflow.trajectory.record import Trajectory
from rlflow.trajectory.replay import replay

SIZES = {"layers": 1, "hidden": 16, "heads": 2, "intermediate": 24, "vocabulary": 20, "positions": 16, "sequence": 6}
HEADS = {"gpt2": "last", "bert": "cls"}
ONE_WAY = SharingRewriter([LIBRARY.get("relu-before-transpose")])


def both_orders(nodes: list[Node]) -> list[Ref]:
    """Relu(Transpose(x)) and Transpose(Relu(x)), told apart by what reads them."""
    x = leaf(nodes, source((3, 4), "x"))
    first = add(nodes, "Relu", add(nodes, "Transpose", x, perm=(1, 0)))
    second = add(nodes, "Transpose", add(nodes, "Relu", x), perm=(1, 0))
    return [add(nodes, "Tanh", first), add(nodes, "Sigmoid", second)]


def small(name: str) -> Graph:
    """A layer of a transformer of which one token is read."""
    return from_onnx(zoo.build(name, **SIZES, head=HEADS[name]))


def explored(graph: Graph, rewriter: Rewriter, walks: int = 1, steps: int = 2, seed: int = 0) -> ModelEGraph:
    return explored_by_walks(graph, rewriter, np.random.default_rng(seed), walks, steps)


def trajectory_of(start: Graph, found: Realisation, rewriter: Rewriter) -> Trajectory:
    work = Workspace.begin(start, rewriter, AnalyticCost(), LIBRARY.hash, Ledger(Budget()))
    state = work.start
    for location, graph in found.steps:
        state = work.step(state, location)
        assert structural_hash(state.graph) == structural_hash(graph)
    return work.result(state).trajectory


def chosen_by_operator(egraph: ModelEGraph, start: Graph, operators: Sequence[str]) -> dict[int, int]:
    """The class of each output's operand, with its first application of the operator given for it."""
    chosen = {}
    for output, operator in zip(start.outputs, operators, strict=True):
        (operand,) = start.nodes[output.node].inputs
        value = egraph.find(egraph.class_of[operand])
        chosen[value] = next(n for n in egraph.members(value) if egraph.node(n).node.op == operator)
    return chosen


def test_a_value_becomes_what_was_chosen_and_meets_its_equal() -> None:
    """One rewrite; afterwards both readers read one and the same value, of which there were two."""
    graph = graph_of(both_orders)
    egraph = explored(graph, ONE_WAY)
    found = realise(graph, egraph, chosen_by_operator(egraph, graph, ["Transpose", "Transpose"]), ONE_WAY)
    assert found.missing == ()
    assert len(found.steps) == 1
    assert [found.last.nodes[i].op for i in found.last.order] == ["Relu", "Transpose", "Tanh", "Sigmoid"]


def test_what_lies_against_the_direction_of_the_rules_is_told_as_missing() -> None:
    """Of the two equal values, no rule turns the second into the form of the first."""
    graph = graph_of(both_orders)
    egraph = explored(graph, ONE_WAY)
    chosen = chosen_by_operator(egraph, graph, ["Relu", "Relu"])
    found = realise(graph, egraph, chosen, ONE_WAY)
    assert found.steps == ()
    assert found.last is graph
    assert found.missing == tuple(chosen.values())


def test_nothing_is_done_where_the_graph_is_what_was_chosen() -> None:
    graph = graph_of(both_orders)
    egraph = ModelEGraph.from_graph(graph)
    chosen = {egraph.find(n): egraph.application(n) for n in egraph.class_of.values()}
    assert realise(graph, egraph, chosen, ONE_WAY) == Realisation((), graph, ())


def test_steps_are_a_trajectory_that_replays() -> None:
    graph = graph_of(both_orders)
    egraph = explored(graph, ONE_WAY)
    found = realise(graph, egraph, chosen_by_operator(egraph, graph, ["Transpose", "Transpose"]), ONE_WAY)
    trajectory = trajectory_of(graph, found, ONE_WAY)
    assert trajectory.matching == "sharing"
    *_, last = replay(graph, trajectory, SHARING)
    assert structural_hash(last) == structural_hash(found.last)


@pytest.mark.parametrize(("name", "at_least"), [("gpt2", 10), ("bert", 4)])
def test_solutions_of_small_models_are_realised_and_right(name: str, at_least: int) -> None:
    """Graphs cheap at prices drawn at random, of which BERT's ask for ways back out of merged products.

    What can be reached completely is the very graph wanted; what cannot is right all the same.
    """
    start = small(name)
    egraph = explored(start, SHARING, walks=2, steps=12)
    rng, complete, steps = np.random.default_rng(1), 0, 0
    trials = 10
    for _ in range(trials):
        problem = ModelProblem.of(egraph, drawn_prices(start, rng))
        solution = greedy_extraction.extract(problem.problem)
        assert solution is not None
        found = realise(start, egraph, problem.chosen(solution), SHARING)
        steps += len(found.steps)
        complete += not found.missing
        if not found.missing:
            wanted = AnalyticCost().runtime_ms(problem.graph(solution, start))
            assert AnalyticCost().runtime_ms(found.last) == pytest.approx(wanted, rel=1e-9)
        assert_same_outputs(start, found.last, rng)
    assert complete >= at_least
    assert steps >= 5 * trials


def drawn_prices(start: Graph, rng: np.random.Generator) -> NodePrice:
    """Prices of nodes, each off by a factor of its own."""
    price = NodePrices(AnalyticCost(), start.header)
    factors: dict[object, float] = {}

    def drawn(node: Node, operands: Sequence[TensorType | None]) -> float:
        return price(node, operands) * factors.setdefault((node.signature, tuple(operands)), rng.lognormal())

    return drawn


def test_the_same_solution_is_realised_by_the_same_steps() -> None:
    start = small("gpt2")
    locations = []
    for _ in range(2):
        egraph = explored(start, SHARING, walks=1, steps=8)
        problem = ModelProblem.of(egraph, NodePrices(AnalyticCost(), start.header))
        solution = greedy_extraction.extract(problem.problem)
        assert solution is not None
        found = realise(start, egraph, problem.chosen(solution), SHARING)
        locations.append([location for location, _ in found.steps])
    assert locations[0] == locations[1]
    assert locations[0]


def test_a_wrong_rule_in_an_egraph_is_named_by_the_trajectory() -> None:
    """A rule that loses biases makes a graph without them look equal; bisection finds the first step that took it."""
    start = small("gpt2")
    rewriter = SharingRewriter([*LIBRARY.rules, WRONG])
    egraph = explored(start, rewriter, walks=1, steps=1)
    problem = ModelProblem.of(egraph, NodePrices(AnalyticCost(), start.header))
    solution = greedy_extraction.extract(problem.problem)
    assert solution is not None
    found = realise(start, egraph, problem.chosen(solution), rewriter)
    wrong = first_wrong_step(start, trajectory_of(start, found, rewriter), rewriter, differs_from(start))
    assert wrong is not None
    assert wrong.match.rule is WRONG


def test_a_value_that_an_input_is_equal_to_becomes_the_input() -> None:
    """No choice is made for what costs nothing; all the same, both transpositions go."""

    def twice_transposed(nodes: list[Node]) -> list[Ref]:
        x = leaf(nodes, source((3, 4), "x"))
        return [add(nodes, "Relu", add(nodes, "Transpose", add(nodes, "Transpose", x, perm=(1, 0)), perm=(1, 0)))]

    graph = graph_of(twice_transposed)
    egraph = explored(graph, SHARING, walks=8)
    (output,) = graph.outputs
    (relu,) = (n for n in egraph.members(egraph.class_of[output]) if egraph.node(n).node.op == "Relu")
    assert egraph.find(0) in egraph.children(egraph.application(relu))
    found = realise(graph, egraph, {egraph.find(relu): relu}, SHARING)
    assert (found.missing, found.superfluous) == ((), ())
    assert [found.last.nodes[i].op for i in found.last.order if i not in found.last.inputs] == ["Relu"]


def test_a_value_that_is_computed_twice_is_told() -> None:
    """Equal applications are one in the e-graph, and no rule makes two of a graph one."""

    def doubled(nodes: list[Node]) -> list[Ref]:
        x = leaf(nodes, source((3, 4), "x"))
        return [add(nodes, "Tanh", add(nodes, "Relu", x)), add(nodes, "Sigmoid", add(nodes, "Relu", x))]

    graph = graph_of(doubled)
    egraph = ModelEGraph.from_graph(graph)
    found = realise(graph, egraph, {egraph.find(n): n for n in egraph.class_of.values() if n}, ONE_WAY)
    assert (found.steps, found.missing) == ((), ())
    assert [graph.nodes[value.node].op for value in found.superfluous] == ["Relu"]
