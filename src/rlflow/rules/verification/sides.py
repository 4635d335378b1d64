"""Both sides of a rule at an instance, and many such cases as one graph that ONNX Runtime runs at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Literal, NamedTuple, get_args

import numpy as np

from rlflow.ir.graph import Graph, Header, make_graph
from rlflow.ir.node import INPUT, LEAVES, WEIGHT, Node, Ref
from rlflow.ir.tensor_type import TensorType
from rlflow.onnx_io.payload import InitializerPayload
from rlflow.ops import registry
from rlflow.rules.plan import Instance, Plan

_OPSET = 21
"""The opset in which both sides are written, unless their operators need a later one."""


class Sides(NamedTuple):
    """A rule at an instance at which both of its sides are well typed, and of one type."""

    instance: Instance
    source: Plan
    target: Plan


Side = Literal["source", "target"]
SIDES: tuple[Side, ...] = get_args(Side)


def as_graph(
    cases: Sequence[Sides],
    sides: Sequence[Side] = SIDES,
    stored: Sequence[Mapping[str, np.ndarray]] = (),
) -> Graph:
    """Put all cases beside each other into one graph.

    The variable x of the second case is the input x_1, and its dimension n is n_1; x is a weight where `stored` has a
    value for it, case by case. The outputs are those of the first case's source, then of its target, then of the
    second case's source, and so on.
    """
    nodes: dict[int, Node] = {}
    outputs = list[Ref]()
    for number, case in enumerate(cases):
        values = stored[number] if stored else {}
        variables = list(range(len(nodes), len(nodes) + len(case.instance.types)))
        for identifier, (name, tensor_type) in zip(variables, case.instance.types.items(), strict=True):
            nodes[identifier] = _leaf(f"{name}_{number}", _named(tensor_type, number), values.get(name))

        for side in (getattr(case, name) for name in sides):
            places = [*variables, *range(len(nodes), len(nodes) + len(side.steps))]
            moved = partial(_moved, places)
            for step in side.steps:
                blank, operands = ("",) * len(step.types), tuple(map(moved, step.inputs))
                constant = all(nodes[ref.node].constant for ref in operands)
                types = tuple(_named(tensor_type, number) for tensor_type in step.types)
                nodes[len(nodes)] = Node(step.op, operands, step.attributes, types, blank, constant)
            outputs += map(moved, side.outputs)

    names = [f"output_{i}" for i in range(len(outputs))]
    inputs = [identifier for identifier, node in nodes.items() if node.op == INPUT]
    needed = registry.versions(node.op for node in nodes.values() if node.op not in LEAVES)
    opset = max(_OPSET, needed.pop("", _OPSET))
    return make_graph(nodes, inputs, outputs, names, Header(opset, domains=needed))


def _leaf(name: str, tensor_type: TensorType, value: np.ndarray | None) -> Node:
    if value is None:
        return Node(INPUT, (), {}, (tensor_type,), (name,))
    return Node(WEIGHT, (), {}, (tensor_type,), (name,), True, InitializerPayload.of(value, name))


def _moved(places: Sequence[int], ref: Ref) -> Ref:
    return Ref(places[ref.node], ref.index)


def _named(tensor_type: TensorType, number: int) -> TensorType:
    """Name the dimensions of this case alone: another case may have another size for the same name."""
    shape = tuple(f"{d}_{number}" if isinstance(d, str) else d for d in tensor_type.shape or ())
    return tensor_type._replace(shape=shape)
