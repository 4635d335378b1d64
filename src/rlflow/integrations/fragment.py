"""A part of a model of onnx-ir as a graph of ours, and a graph that was rewritten as nodes of onnx-ir again.

    part = fragment([matmul, add], [add.outputs[0]], model.opset_imports)     # of MatMul(x, w) and Add(., b)
    child = rewriter.apply(part.graph, match)                                 # Gemm(x, w, b)
    (y,) = written(child, part, tape, taken=())                               # a Gemm that reads the model's x, w and b

Beside the nodes asked for, a fragment has those that compute whole numbers for them, as the shape of a Reshape is, and
so many operators further up as `sight` says. Its values have names of their own, since a model that is being rewritten
need not have any.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, filterfalse
from math import inf
from typing import TypeGuard

import onnx_ir as ir
from onnxscript.rewriter import RewriterContext

from rlflow.ir.graph import Graph
from rlflow.ir.node import Ref
from rlflow.ir.tensor_type import TensorType
from rlflow.onnx_io import graph_of, to_onnx
from rlflow.onnx_io.element_type import to_value_info
from rlflow.onnx_io.shapes.inference import infer_types

_IR_VERSION = 10
_FILLED_SINCE = 9
"""The first opset with ConstantOfShape."""


@dataclass(frozen=True)
class Fragment:
    """`values` are those of the model by their names in `graph`: `outputs` those asked for, `inner` what goes if these
    are replaced.
    """

    graph: Graph
    values: Mapping[str, ir.Value]
    outputs: tuple[str, ...]
    inner: frozenset[str]

    def refs(self) -> dict[ir.Value, Ref]:
        """Find the model's values in the graph, those that it has."""
        nodes = self.graph.nodes.items()
        found = {name: Ref(i, index) for i, node in nodes for index, name in enumerate(node.names)}
        return {value: found[name] for name, value in self.values.items() if name in found}


def stored(value: ir.Value) -> ir.TensorProtocol | None:
    """Return the numbers of a weight; None for what is computed, or what a caller may feed another value for."""
    tensor = None if value.is_graph_input() else ir.convenience.get_const_tensor(value)
    return None if tensor is None or tensor.dtype == ir.DataType.STRING else tensor


def fragment(
    nodes: Sequence[ir.Node],
    outputs: Sequence[ir.Value],
    opsets: Mapping[str, int],
    *,
    sight: int = 0,
    largest: float = inf,
) -> Fragment:
    """Make a graph of these nodes with these outputs. Of a weight with more elements than `largest`, the type is right.

    Raises `ValueError` if a value that it reads has no known type.
    """
    copying = _Copying(_in_sight(nodes, sight), largest if opsets.get("", 0) >= _FILLED_SINCE else inf)
    asked = [copying.copied(value) for value in outputs]
    replaced = [value for node in nodes for value in node.outputs]
    beside = [
        copy for value, copy in copying.copies.items() if value not in replaced and copying.is_read_outside(value)
    ]
    graph = ir.Graph(
        copying.inputs,
        [*asked, *beside],
        nodes=copying.nodes,
        initializers=copying.weights,
        opset_imports=dict(opsets),
        name="fragment",
    )
    return Fragment(
        graph_of(ir.to_proto(ir.Model(graph, ir_version=_IR_VERSION))),
        {str(copy.name): value for value, copy in copying.copies.items()},
        tuple(str(copy.name) for copy in asked),
        frozenset(str(copying.copies[value].name) for value in replaced),
    )


def written(graph: Graph, origin: Fragment, tape: RewriterContext, taken: Collection[str]) -> list[ir.Value]:
    """Record what the graph has and the fragment that it came from has not; return what replaces its outputs.

    New weights get names that are not among those `taken`.
    """
    proto = to_onnx(graph)
    model = ir.from_proto(proto)
    types = _types_of(origin, infer_types(proto))
    fresh = filterfalse(taken.__contains__, (f"rlflow/weight_{number}" for number in count()))
    values = {name: value for name, value in origin.values.items() if name not in origin.inner}
    for name, weight in model.graph.initializers.items():
        if name not in values and weight.const_value is not None:
            values[name] = tape.initializer(weight.const_value, next(fresh))

    for node in model.graph:
        names = [str(output.name) for output in node.outputs]
        if not values.keys().isdisjoint(names):
            continue
        operands = [None if operand is None else values[str(operand.name)] for operand in node.inputs]
        if node.op_type == "Identity" and _stands_for(operands[0], origin, names[0]):
            values[names[0]] = operands[0]
            continue
        made = tape.call_op(node.op_type, operands, dict(node.attributes), node.domain, outputs=len(names))
        for name, value in zip(names, [made] if isinstance(made, ir.Value) else made, strict=True):
            values[name] = value
            if name in types:
                ir.serde.deserialize_value_info_proto(to_value_info(name, types[name]), value)
    return [values[name] for name in origin.outputs]


def _stands_for(value: ir.Value | None, origin: Fragment, output: str) -> TypeGuard[ir.Value]:
    """Return True if the value may take this output's name, as onnxscript wants it to; a graph's inputs keep theirs."""
    if value is None or output not in origin.outputs or value.is_initializer() or value.is_graph_input():
        return False
    replaced = origin.values[output]
    return value.graph is replaced.graph and not value.is_graph_output() and not replaced.is_graph_output()


def _types_of(origin: Fragment, inferred: Mapping[str, TensorType | None]) -> dict[str, TensorType]:
    """Return what was inferred, without symbols that inference made up: in the model they may mean something else."""
    shapes = [value.shape for value in origin.values.values() if value.shape is not None]
    own = {d.value for shape in shapes for d in shape if isinstance(d, ir.SymbolicDim)}
    return {
        name: tensor_type
        if tensor_type.shape is None
        else tensor_type._replace(shape=tuple(d if isinstance(d, int) or d in own else None for d in tensor_type.shape))
        for name, tensor_type in inferred.items()
        if tensor_type is not None
    }


def _in_sight(nodes: Sequence[ir.Node], sight: int) -> frozenset[ir.Node]:
    """Return the nodes with those that are at most `sight` operators above them."""
    inside, frontier = set(nodes), list(nodes)
    for _ in range(sight):
        above = dict.fromkeys(node for below in frontier for node in below.predecessors())
        frontier = [node for node in above if node not in inside and not _has_subgraph(node)]
        inside.update(frontier)
    return frozenset(inside)


def _has_subgraph(node: ir.Node) -> bool:
    return any(a.type in (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS) for a in node.attributes.values())


class _Copying:
    """The state of one copy: what was copied so far, operands first."""

    def __init__(self, inside: frozenset[ir.Node], largest: float) -> None:
        self.inside, self.largest = inside, largest
        self.copies: dict[ir.Value, ir.Value] = {}
        self.copied_nodes: set[ir.Node] = set()
        self.nodes: list[ir.Node] = []
        self.inputs: list[ir.Value] = []
        self.weights: list[ir.Value] = []

    def copied(self, value: ir.Value) -> ir.Value:
        if value not in self.copies:
            node, tensor = value.producer(), stored(value)
            if tensor is not None:
                self._store(value, tensor)
            elif node is not None and (node in self.inside or _counts(node, value)):
                self._copy(node)
            elif value.type is None:
                raise ValueError(f"the type of the value {value.name!r} is not known")
            else:
                self.inputs.append(self._named(value))
        return self.copies[value]

    def is_read_outside(self, value: ir.Value) -> bool:
        """Return True for a value of a node that was copied, which others read as well."""
        readers = value.consumers()
        is_wanted = value.is_graph_output() or any(reader not in self.copied_nodes for reader in readers)
        return value.producer() in self.copied_nodes and is_wanted

    def _named(self, value: ir.Value) -> ir.Value:
        self.copies[value] = copy = ir.Value(name=f"v{len(self.copies)}", type=value.type, shape=value.shape)
        return copy

    def _copy(self, node: ir.Node) -> None:
        operands = [None if operand is None else self.copied(operand) for operand in node.inputs]
        outputs = [self._named(output) for output in node.outputs]
        self.copied_nodes.add(node)
        self.nodes.append(ir.Node(node.domain, node.op_type, operands, node.attributes.values(), outputs=outputs))

    def _store(self, value: ir.Value, tensor: ir.TensorProtocol) -> None:
        copy = self._named(value)
        if tensor.size <= self.largest:
            copy.const_value = ir.Tensor(tensor.numpy(), dtype=tensor.dtype, name=copy.name)
            self.weights.append(copy)
        else:
            sizes = ir.tensor(list(tensor.shape.numpy()), dtype=ir.DataType.INT64, name=f"{copy.name}/shape")
            shape = ir.Value(name=sizes.name, const_value=sizes)
            zero = ir.AttrTensor("value", ir.tensor([0], dtype=tensor.dtype))
            self.weights.append(shape)
            self.nodes.append(ir.Node("", "ConstantOfShape", [shape], [zero], outputs=[copy]))


def _counts(node: ir.Node, value: ir.Value) -> bool:
    """Return True for whole numbers that a node computes: they may be sizes."""
    return value.dtype == ir.DataType.INT64 and not _has_subgraph(node)
