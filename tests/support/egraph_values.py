"""What the e-nodes of an e-graph compute, one by one: the members of a class must agree."""

import numpy as np

from rlflow.egraph.egraph import ClassId, ENodeId
from rlflow.egraph.model_egraph import ModelEGraph
from rlflow.ir import Graph
from rlflow.ops.domain import FloatDomain
from rlflow.ops.reference import evaluate_value
from rlflow.ops.registry import OPERATORS


def assert_members_agree(egraph: ModelEGraph, graph: Graph, rng: np.random.Generator) -> int:
    """Every e-node gives the value of its class, for drawn inputs; returns how many e-nodes were computed."""
    values = {egraph.find(egraph.class_of[ref]): value for ref, value in _evaluated(graph, rng).items()}
    waiting = [a for a in egraph.applications() if egraph.node(a).node.op not in ("Input", "Weight")]
    computed = 0
    while ready := [a for a in waiting if all(child in values for child in egraph.children(a))]:
        for application in ready:
            computed += _compute(egraph, application, values)
        waiting = [a for a in waiting if a not in ready]
    assert not waiting, "every class has a member that can be computed"
    return computed


def _evaluated(graph: Graph, rng: np.random.Generator) -> dict:
    drawn = {}
    for identifier in graph.inputs:
        kind = graph.nodes[identifier].types[0]
        drawn[identifier] = rng.standard_normal(kind.shape).astype(kind.dtype)
    values = {ref: drawn[ref.node] for ref in _refs(graph) if ref.node in drawn}
    for ref in _refs(graph):
        evaluate_value(graph.nodes, ref, values, FloatDomain())
    return values


def _refs(graph: Graph) -> list:
    reached = ModelEGraph.from_graph(graph).class_of
    return [ref for ref in reached if graph.type_of(ref) is not None]


def _compute(egraph: ModelEGraph, application: ENodeId, values: dict[ClassId, np.ndarray]) -> int:
    node = egraph.node(application).node
    operands = [values[child] for child in egraph.children(application)]
    with np.errstate(all="ignore"):
        results = OPERATORS[node.op].evaluate(FloatDomain(), node.attributes, operands)
    for number, result in zip(egraph.outputs_of(application), results, strict=True):
        known = values.setdefault(egraph.find(number), result)
        np.testing.assert_allclose(result, known, rtol=2e-3, atol=2e-3)
    return len(results)
