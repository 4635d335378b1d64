"""Both sides of a rule at an instance, and many such cases as one graph that ONNX Runtime runs at once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from rlflow.ir.graph import Graph, Header, make_graph
from rlflow.ir.node import INPUT, Node, Ref
from rlflow.ops import registry
from rlflow.rules.plan import Instance, Plan

_OPSET = 21
"""The opset in which both sides are written, unless their operators need a later one."""


class Sides(NamedTuple):
    """A rule at an instance at which both of its sides are well typed, and of one type."""

    instance: Instance
    source: Plan
    target: Plan


def as_graph(cases: Sequence[Sides]) -> Graph:
    """Put all cases beside each other into one graph.

    The variable x of the second case is the input x_1. The outputs are those of the first case's source, then of its
    target, then of the second case's source, and so on.
    """
    nodes: dict[int, Node] = {}
    inputs, outputs = list[int](), list[Ref]()
    for number, case in enumerate(cases):
        variables = list(range(len(nodes), len(nodes) + len(case.instance.types)))
        inputs += variables
        for identifier, (name, tensor_type) in zip(variables, case.instance.types.items(), strict=True):
            nodes[identifier] = Node(INPUT, (), {}, (tensor_type,), (f"{name}_{number}",))

        for side in (case.source, case.target):
            places = [*variables, *range(len(nodes), len(nodes) + len(side.steps))]
            moved = partial(_moved, places)
            for step in side.steps:
                blank = ("",) * len(step.types)
                nodes[len(nodes)] = Node(step.op, tuple(map(moved, step.inputs)), step.attributes, step.types, blank)
            outputs += map(moved, side.outputs)

    names = [f"output_{i}" for i in range(len(outputs))]
    needed = registry.versions(node.op for node in nodes.values() if node.op != INPUT)
    opset = max(_OPSET, needed.pop("", _OPSET))
    return make_graph(nodes, inputs, outputs, names, Header(opset, domains=needed))


def _moved(places: Sequence[int], ref: Ref) -> Ref:
    return Ref(places[ref.node], ref.index)
