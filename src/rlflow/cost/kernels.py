"""The nodes of a graph that each kernel computes, once ONNX Runtime has fused the whole model.

    kernels, fused = kernels_of(graph)              # the second is for `runtime/profile.py`
    kernels[7].operator, kernels[7].nodes       # "FusedConv", (12, 13, 14): a Conv, its BatchNormalization and a Relu

ONNX Runtime says so nowhere, but it keeps names: of a value that a kernel computes, or, where the kernel computes it
in another layout, in the name of the kernel ("X_nchwc", "X/MatMulAddFusion"). So a graph is written with names of our
own for its values, and what a kernel computes is everything before its value that no other kernel computes.

Invariant: a node is computed by a kernel unless it was folded, or an equal node is computed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from rlflow.cost.blocked_layout import CHANNELS_FIRST, is_permutation
from rlflow.cost.integer_kernels import QUANTISING
from rlflow.cost.regions import DRAWING, POINTWISE, TRANSPOSES, VIEWS, twins
from rlflow.ir.graph import Graph, make_graph
from rlflow.ir.node import Node
from rlflow.onnx_io import to_onnx
from rlflow.onnx_io.exporter import names_in_subgraphs
from rlflow.runtime.profile import Fused, Kernel

_NAME = re.compile(r"@(\d+)\.(\d+)@")
_REORDERS = frozenset({"ReorderInput", "ReorderOutput"})
_BLOCKED, _IN_BLOCKS = "com.microsoft.nchwc", "_nchwc"


@dataclass(frozen=True)
class PlacedKernel:
    """A kernel of the fused model: the place of its node there, and the nodes of the graph that it computes.

    `nodes` are in the graph's order; a reorder of the blocked layout has a Transpose at most.
    """

    place: int
    operator: str
    nodes: tuple[int, ...]

    @property
    def is_reorder(self) -> bool:
        """True for a reorder that does nothing else: one may transpose as well."""
        return self.operator in _REORDERS and not self.nodes


def kernels_of(graph: Graph) -> tuple[list[PlacedKernel], Fused]:
    """Let ONNX Runtime fuse a graph; return its kernels in their order, and the fused model.

    Raises `RLFlowError` when ONNX Runtime refuses the model.
    """
    marked = _marked(graph)
    fused = Fused.of(to_onnx(marked))
    return _placed(marked, fused.kernels), fused


def _marked(graph: Graph) -> Graph:
    """Return the graph with a name of our own for each value that has none to the outside, or in a subgraph."""
    kept = {*names_in_subgraphs(graph), *graph.output_names}

    def marked(identifier: int, node: Node) -> Node:
        names = (own if own in kept else f"@{identifier}.{k}@" for k, own in enumerate(node.names))
        if identifier in graph.inputs:
            return node
        return replace(node.with_names(tuple(names)), label=f"@{identifier}.0@")

    nodes = {identifier: marked(identifier, node) for identifier, node in graph.nodes.items()}
    return make_graph(nodes, graph.inputs, graph.outputs, graph.output_names, graph.header)


def _placed(graph: Graph, kernels: Sequence[Kernel]) -> list[PlacedKernel]:
    ends = _ends(graph, kernels)
    computed = {end for found in ends for end in found}
    for place, kernel in enumerate(kernels):
        if len(ends[place]) == 1:
            computed.discard(ends[place][0])
            taken_in = POINTWISE if kernel.domain == _BLOCKED else QUANTISING
            ends[place] = (_taken_in(graph, ends[place][0], computed, taken_in),)
            computed.update(ends[place])
    position, folded = graph.positions(), _folded(graph)
    nodes = [tuple(sorted(_before(graph, found, computed, folded), key=position.__getitem__)) for found in ends]
    placed = zip(
        range(len(kernels)), (kernel.operator for kernel in kernels), _with_helpers(kernels, nodes), strict=True
    )
    return [PlacedKernel(*entry) for entry in placed]


def _with_helpers(kernels: Sequence[Kernel], nodes: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Return the nodes of each kernel; what ONNX Runtime adds to prepare an operand belongs to its reader."""
    readers: dict[str, int] = {}
    found = list(nodes)
    for place in reversed(range(len(kernels))):
        kernel = kernels[place]
        if not found[place] and kernel.operator not in _REORDERS:
            found[place] = next((found[readers[name]] for name in kernel.results if name in readers), ())
        readers.update(dict.fromkeys(kernel.operands, place))
    return found


def _ends(graph: Graph, kernels: Sequence[Kernel]) -> list[tuple[int, ...]]:
    """Return the last nodes that each kernel computes.

    They are known by the names of its values, else by those of a view or a reorder behind it, else by its own name.
    """
    node_of = {name: i for i in graph.order for name in graph.nodes[i].names}
    node_of |= {name: ref.node for ref, name in zip(graph.outputs, graph.output_names, strict=True)}
    runs = set(graph.order)
    told: dict[str, tuple[int, ...]] = {}  # by the name of a value, the nodes that it is told to be
    ends: list[tuple[int, ...]] = []
    for kernel in reversed(kernels):  # readers first
        if kernel.channels_last and kernel.operator in _REORDERS:
            ends.append(_transposed(graph, kernel, node_of))
            continue
        behind = [told[name] for name in kernel.results if name in told]
        known = tuple(dict.fromkeys(node_of[name] for name in kernel.results if name in node_of))
        if not known:
            known = tuple(
                i for name in kernel.results for i in _in_another_order(graph, name, node_of)[-1:] if i in runs
            )
        if not known and behind:
            known = behind[0]
        if not known and kernel.operator not in _REORDERS:
            known = _named(kernel, node_of)
        if known and (kernel.operator in VIEWS or kernel.operator in _REORDERS) and kernel.operands[0] not in node_of:
            told.setdefault(kernel.operands[0], known)
        ends.append(() if kernel.operator in _REORDERS else known)
    return ends[::-1]


def _transposed(graph: Graph, kernel: Kernel, node_of: Mapping[str, int]) -> tuple[int, ...]:
    """Return the Transpose that a reorder does: it makes the value, or, at a blocked image, reads it from before."""
    if made := tuple(node_of[name] for name in kernel.results if name in node_of):
        return made
    values = {**node_of, **{graph.nodes[i].names[0]: i for i in graph.inputs}}
    readers = (c for name in kernel.operands if name in values for c in graph.consumers[values[name]])
    behind = (i for name in kernel.operands for i in _in_another_order(graph, name, node_of))
    first = [i for i in readers if is_permutation(graph.nodes[i], CHANNELS_FIRST)]
    return (*first, *(i for i in behind if graph.nodes[i].op in TRANSPOSES))[:1]


def _in_another_order(graph: Graph, name: str, node_of: Mapping[str, int]) -> list[int]:
    """Follow a name that ONNX Runtime derived from that of a value back over views and transposes, to the node that
    computes it: return these in this order. Another name leads nowhere.
    """
    marked = _NAME.match(name)
    if marked is None or name in node_of:
        return []
    nodes = [int(marked.group(1))]
    while graph.nodes[nodes[-1]].op in VIEWS or graph.nodes[nodes[-1]].op in TRANSPOSES:
        nodes.append(graph.nodes[nodes[-1]].sources[0])
    return nodes


def _named(kernel: Kernel, node_of: Mapping[str, int]) -> tuple[int, ...]:
    if marked := _NAME.search(kernel.name):
        return (int(marked.group(1)),)
    output = kernel.name.removesuffix(_IN_BLOCKS)
    return (node_of[output],) if output in node_of else ()


def _taken_in(graph: Graph, node: int, computed: Collection[int], operators: Collection[str]) -> int:
    """Return the last of the nodes behind one that its kernel takes in: sums and activations in the blocked layout, and
    what makes bytes of its result.
    """
    while len(readers := graph.consumers[node]) == 1:
        (reader,) = readers
        if reader in computed or graph.nodes[reader].op not in operators:
            break
        node = reader
    return node


def _before(graph: Graph, ends: Iterable[int], computed: Set[int], folded: Collection[int]) -> Iterator[int]:
    """List these nodes, and those before them that no kernel ends with."""
    seen, waiting = set(ends), list(ends)
    while waiting:
        identifier = waiting.pop()
        yield identifier
        for source in graph.nodes[identifier].sources:
            if source in seen or source in computed or source in folded:
                continue
            if computed.isdisjoint(twins(graph, source)):
                seen.add(source)
                waiting.append(source)


def _folded(graph: Graph) -> set[int]:
    """Return what ONNX Runtime computes when it opens the model, and the inputs: no kernel computes them."""
    given = {i for i, node in graph.nodes.items() if node.constant}
    for identifier in graph.order:
        node = graph.nodes[identifier]
        if given.issuperset(node.sources) and node.op not in DRAWING:
            given.add(identifier)
    return given.union(graph.inputs)
