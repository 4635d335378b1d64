"""Small graphs for e-graphs, and e-graphs of models explored by random walks, on which every match is a use."""

import numpy as np

from rlflow.egraph.egraph import ENodeId, Target
from rlflow.egraph.model_egraph import ModelEGraph
from rlflow.ir import Graph, Header, Node, Ref, make_graph
from rlflow.ops import registry
from rlflow.rules.matching.match import Match
from rlflow.rules.matching.rewriter import Rewriter
from support.strategies import source, weight


def built(*steps: tuple[str, tuple[int, ...]], outputs: int = 1) -> Graph:
    """A graph over the inputs x (0) and y (1) and the weights of 2 (2) and 3 (3), all 2 x 2; the last are outputs."""
    nodes = [source((2, 2), "x"), source((2, 2), "y")]
    nodes += [weight(np.full((2, 2), value, np.float32), f"w{value}") for value in (2, 3)]
    for op, operands in steps:
        typed = [(Ref(i), nodes[i].types[0], nodes[i].constant) for i in operands]
        nodes.append(registry.apply(op, {}, typed))
    refs = [Ref(i) for i in range(len(nodes) - outputs, len(nodes))]
    return make_graph(dict(enumerate(nodes)), [0, 1], refs, [f"z{i}" for i in range(outputs)], Header(17))


def target_of(match: Match) -> Target:
    names = list(match.bindings)

    def operand(of: str | Ref) -> Ref:
        return Ref(names.index(of)) if isinstance(of, str) else Ref(len(names) + of.node, of.index)

    nodes = tuple(
        Node(n.op, tuple(map(operand, n.inputs)), n.attributes, n.types, ("",) * len(n.types), n.constant)
        for n in match.replacement.nodes
    )
    return Target(nodes, tuple(map(operand, match.replacement.outputs)))


def explored_by_walks(
    graph: Graph, rewriter: Rewriter, rng: np.random.Generator, walks: int, steps: int
) -> ModelEGraph:
    """The e-graph of a graph and of what is one rewrite away from any graph on so many random walks."""
    egraph = ModelEGraph.from_graph(graph)
    for _ in range(walks):
        here = graph
        numbers: dict[int, ENodeId] = {ref.node: number for ref, number in egraph.class_of.items()}
        for _ in range(steps):
            matches = [match for found in rewriter.matches(here) for match in found]
            if not matches:
                break
            for match in matches:
                _use(egraph, here, numbers, match)
            egraph.rebuild()
            here = rewriter.apply(here, matches[int(rng.integers(len(matches)))])
            for identifier in here.edit.change.added:
                node = here.nodes[identifier]
                operands = [egraph.find(numbers[r.node] + r.index) for r in node.inputs]
                number = egraph.known(node, operands)
                assert number is not None
                numbers[identifier] = number
    return egraph


def _use(egraph: ModelEGraph, graph: Graph, numbers: dict[int, ENodeId], match: Match) -> None:
    def number(ref: Ref) -> ENodeId:
        return egraph.application(numbers[ref.node]) + ref.index

    source = [egraph.application(numbers[i]) for i in match.nodes]
    variables = {name: egraph.find(number(ref)) for name, ref in match.bindings.items()}
    egraph.use(match.rule, source, [number(r) for r in match.roots], variables, target_of(match))
