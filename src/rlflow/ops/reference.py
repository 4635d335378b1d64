"""The reference interpreter: a graph evaluated operator by operator, in any domain."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rlflow.errors import GraphError
from rlflow.ir.graph import Graph
from rlflow.ir.node import WEIGHT, Node, Ref
from rlflow.ops.domain import Array, Domain, FloatDomain
from rlflow.ops.registry import OPERATORS


def evaluate(graph: Graph, feeds: Mapping[str, Array], domain: Domain | None = None) -> dict[str, Array]:
    """The outputs by name, given the inputs by name. `GraphError` on an operator that is not understood."""
    domain = domain or FloatDomain()
    values: dict[Ref, Array] = {Ref(i): feeds[graph.nodes[i].names[0]] for i in graph.inputs}
    return {
        name: evaluate_value(graph.nodes, ref, values, domain)
        for name, ref in zip(graph.output_names, graph.outputs, strict=True)
    }


def evaluate_value(nodes: Mapping[int, Node], ref: Ref, values: dict[Ref, Array], domain: Domain) -> Array:
    """One value of a graph with these nodes, given some; `values` gathers what is computed on the way.

    `GraphError` on an operator that is not understood, and where there is no value (an index out of range).
    """
    stack = [ref]
    while stack:
        current = stack[-1]
        if current in values:
            stack.pop()
            continue
        node = nodes[current.node]
        if node.op == WEIGHT:
            values[current] = node.payload.array()  # type: ignore[union-attr]
            continue
        if node.is_opaque or node.op not in OPERATORS:
            raise GraphError(f"{node.op} {node.names[:1]} is not understood and cannot be evaluated")
        waiting = [r for r in node.inputs if r is not None and r not in values]
        if waiting:
            stack.extend(waiting)
            continue
        operands = [values[r] for r in node.inputs if r is not None]
        try:
            with np.errstate(all="ignore"):  # infinities and NaN are values here as in ONNX
                results = OPERATORS[node.op].evaluate(domain, node.attributes, operands)
        except (IndexError, TypeError) as error:
            raise GraphError(f"{node.op} {node.names[:1]} cannot be evaluated: {error}") from None
        values.update({Ref(current.node, index): value for index, value in enumerate(results)})
    return values[ref]
