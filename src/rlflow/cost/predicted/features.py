"""A region of a graph as numbers and as counts of patterns, from which its time is predicted.

    reader = FeatureReader()
    features = reader.features(graph, region)
    features.numbers["product n"]                 # 768: of the largest product
    features.grams["Add(MatMul =, weight row)"]   # how often a bias is added to a product

*Numbers* are sizes, operations and shapes. *Grams* are small patterns of operators: a node with the kinds of its
operands, an edge, a chain of three. They tell what ONNX Runtime may fuse, which no size does.

Invariant: regions of one signature (`cost/fragment.py`) have equal features, whatever the order of the operands of
commutative operators, names and ids. Numbers are whole, or quotients of whole numbers: no logarithm, whose last bit
is another one in every library; trees do not see the difference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from rlflow.cost.blocked_layout import PADS, takes_up_pad
from rlflow.cost.fragment import is_literal, is_result, literal
from rlflow.cost.integer_kernels import CONVERTING, DEQUANTISING, kernels_of
from rlflow.cost.predicted.facts import BLOCK_CHANNELS, Convolution, FactReader, Kind, NodeFacts, Product, Shape
from rlflow.cost.regions import Region, first_twin, first_value, readers
from rlflow.ir.graph import Graph
from rlflow.ir.node import Node, Ref
from rlflow.ops.blocking import BLOCKING, Blocking

_MAX_REMEMBERED = 200_000
_KINDS = tuple(Kind)
_RELATIONS = ("=", "one", "row", "column", "part")
_SHORT_RUN = 16  # elements: a cache line of float32
_SHIFT = 2  # the operand of a normalisation that is added


@dataclass(frozen=True)
class Border:
    """The bytes that a region reads and writes: values and weights from outside, each once, and values inside."""

    bytes_in: int
    bytes_weights: int
    bytes_out: int
    bytes_inside: int
    values_in: int
    values_out: int


@dataclass(frozen=True)
class Features:
    """The facts of a region and its patterns; those among `grams` that begin with "=" tell a constant's value."""

    nodes: tuple[NodeFacts, ...]
    border: Border
    constant_second: tuple[bool, ...]
    grams: Counter[str]

    @property
    def is_quantised(self) -> bool:
        """True if whole numbers stand for floats in it."""
        return any(facts.whole for facts in self.nodes)

    @property
    def numbers(self) -> dict[str, float]:
        """The numbers by their names, which are the same for all regions."""
        return {
            **_sizes(self),
            **_by_kind(self.nodes),
            **_of_products(self),
            **_of_convolutions(self.nodes),
            **_of_movements(self.nodes),
            **_of_elements(self.nodes),
            **_of_rows(self.nodes),
        }


class _Computed:
    """A region as it is computed: a window takes up the Pad before it, a convolution the normalisation behind it, and a
    kernel of whole numbers the conversions around it.

    ONNX Runtime scales the filters when it opens a model, so that a convolution and its normalisation cost what a
    convolution with a bias costs. Nodes that compute the same are one as well.
    """

    def __init__(self, graph: Graph, region: Region) -> None:
        self.graph, self.members = graph, frozenset(region)
        self._convolutions = {i: c for i in region if (c := _takes_up(graph, i)) in self.members and c is not None}
        self._integers = kernels_of(graph, region)
        self.pads = [i for i in region if _is_taken_up(graph, i)]
        taken = {*self._convolutions.values(), *self.pads, *self._integers.idle}
        self.order = [i for i in region if i not in taken and first_twin(graph, i) == i]

    def worker(self, identifier: int) -> int:
        """Return the node that does the work."""
        return self._convolutions.get(identifier, self._integers.worker.get(identifier, identifier))

    def node(self, identifier: int) -> Node:
        """Return the same node itself."""
        return self.graph.nodes[self.worker(identifier)]

    def with_whole_numbers(self, identifier: int, facts: NodeFacts) -> NodeFacts:
        """Return a kernel's facts where whole numbers stand for floats, which a product alone may make of them."""
        if self.node(identifier).op in CONVERTING:
            return replace(facts, whole=True)
        if self.worker(identifier) not in self._integers.whole:
            return facts
        makes_floats = facts.kind == Kind.PRODUCT and identifier not in self._integers.worker
        return facts.of_bytes(facts.result_bytes if makes_floats else tuple(map(prod, facts.results)))

    def _read(self, ref: Ref | None) -> Ref | None:
        """Return the value itself, or the whole numbers that are not dequantised."""
        is_idle = ref is not None and ref.node in self._integers.idle and self.graph.nodes[ref.node].op in DEQUANTISING
        return self.graph.nodes[ref.node].inputs[0] if ref is not None and is_idle else ref

    def operands(self, identifier: int) -> tuple[Ref | None, ...]:
        """Return what is read."""
        if self.worker(identifier) in self._integers.whole:
            return tuple(first_value(self.graph, self._read(ref)) for ref in self.node(identifier).inputs)
        inputs = self.node(identifier).inputs
        if identifier not in self._convolutions or (len(inputs) > 2 and inputs[2] is not None):
            return tuple(first_value(self.graph, ref) for ref in inputs)
        shift = self.graph.nodes[identifier].inputs[_SHIFT]
        return tuple(first_value(self.graph, ref) for ref in (*inputs[:2], shift))


def _takes_up(graph: Graph, identifier: int) -> int | None:
    """Return the convolution that takes up a normalisation; None if none does, or it is something else."""
    image, *parameters = graph.nodes[identifier].inputs or (None,)
    if image is None or BLOCKING.get(graph.nodes[identifier].op) != Blocking.NORMALISATION:
        return None
    before = graph.nodes[image.node]
    if BLOCKING.get(before.op) != Blocking.CONVOLUTION or "activation" in before.attributes:
        return None
    constants = all(ref is None or graph.nodes[ref.node].constant for ref in (*before.inputs[1:], *parameters))
    alone = len(graph.consumers[image.node]) == 1 and image not in graph.outputs
    return image.node if constants and alone else None


def _is_taken_up(graph: Graph, identifier: int) -> bool:
    """Return True for a Pad that is one with the window that reads it."""
    node = graph.nodes[identifier]
    if node.op not in PADS or identifier in graph.output_nodes:
        return False
    found = readers(graph, Ref(identifier))
    return len(found) == 1 and all(takes_up_pad(graph.nodes[reader], node) for reader in found)


class FeatureReader:
    """Reads the features of regions; what it finds out of nodes and constants is remembered.

    `block` is how many channels the processor's blocked layout keeps together.
    """

    def __init__(self, dimensions: Mapping[str, int] | None = None, block: int = BLOCK_CHANNELS) -> None:
        self._facts = FactReader(dimensions, block)
        self._literals: dict[Node, str] = {}

    def features(self, graph: Graph, region: Region) -> Features:
        """Return the features of a region; `region` is all of `graph.order` for a fragment by itself."""
        computed = _Computed(graph, region)
        inside = {i: self._of_kernel(computed, i) for i in computed.order}
        return Features(
            tuple(inside.values()),
            self._border(computed, inside),
            tuple(_has_constant_second(graph, computed.operands(i)) for i in computed.order),
            Counter(self._grams(computed, inside)),
        )

    def _of_kernel(self, computed: _Computed, identifier: int) -> NodeFacts:
        """Return the facts of what is computed up to a node."""
        facts = self._facts.facts(computed.graph, computed.node(identifier), computed.operands(identifier))
        return computed.with_whole_numbers(identifier, facts)

    def _border(self, computed: _Computed, inside: Mapping[int, NodeFacts]) -> Border:
        graph, members = computed.graph, computed.members
        nodes = (*inside, *computed.pads)
        read = {r for i in nodes for r in computed.operands(i) if r is not None and r.node not in members}
        values = [self._bytes(graph, ref) for ref in read if not graph.nodes[ref.node].constant]
        weights = [self._bytes(graph, ref) for ref in read if graph.nodes[ref.node].constant]
        out: list[int] = []
        kept: list[int] = []
        for identifier, facts in inside.items():
            for index, size in enumerate(facts.result_bytes):
                (out if is_result(graph, Ref(identifier, index), members) else kept).append(size)
        return Border(sum(values), sum(weights), sum(out), sum(kept), len(values), len(out))

    def _bytes(self, graph: Graph, ref: Ref) -> int:
        return self._facts.sized(graph.type_of(ref)).nbytes

    def _grams(self, computed: _Computed, inside: Mapping[int, NodeFacts]) -> Iterator[str]:
        graph, members = computed.graph, computed.members
        for identifier, facts in inside.items():
            places = [self._place(graph, ref, inside) for ref in computed.operands(identifier) if ref is not None]
            operands = [_with_relation(place, facts, i) for i, place in enumerate(places)]
            yield f"{facts.op}({', '.join(_ordered(operands, facts))}){_permutation(computed.node(identifier))}"
            yield from (f"={facts.op} {place}" for place in places if place.startswith("literal "))
            yield from _chains(computed, identifier, inside)
            for index in range(len(facts.results)):
                within = len(readers(graph, Ref(identifier, index)) & members)
                if within > 1:
                    yield f"{facts.op} read by {min(within, 4)}"
                if within and is_result(graph, Ref(identifier, index), members):
                    yield f"{facts.op} read inside and outside"

    def _place(self, graph: Graph, ref: Ref, inside: Mapping[int, NodeFacts]) -> str:
        """Return where an operand comes from: an operator inside, a value, a weight or a small constant."""
        if ref.node in inside:
            return inside[ref.node].op
        node = graph.nodes[ref.node]
        if not node.constant:
            return "value"
        return self._literal(graph, ref) if is_literal(graph.type_of(ref)) else "weight"

    def _literal(self, graph: Graph, ref: Ref) -> str:
        node = graph.nodes[ref.node]
        known = self._literals.get(node)
        if known is None:
            if len(self._literals) >= _MAX_REMEMBERED:
                self._literals.clear()
            known = self._literals[node] = "literal " + " ".join(f"{v:.4g}" for v in literal(graph, ref)[:2])
        return known


def _chains(computed: _Computed, identifier: int, inside: Mapping[int, NodeFacts]) -> Iterator[str]:
    """List the edges that end in a node, and the chains of three."""
    last = inside[identifier]
    for place, ref in enumerate(computed.operands(identifier)):
        if ref is None or ref.node not in inside:
            continue
        edge = f"{inside[ref.node].op} > {last.op}" + ("" if last.commutative else f".{place}")
        yield edge
        for before in computed.operands(ref.node):
            if before is not None and before.node in inside:
                yield f"{inside[before.node].op} > {edge}"


def _with_relation(place: str, facts: NodeFacts, operand: int) -> str:
    """Return a place with how the operand is spread over the result of an elementwise node."""
    place = "literal" if place.startswith("literal ") else place
    if facts.kind != Kind.ELEMENTWISE:
        return place
    return f"{place} {_relation(facts.operands[operand], facts.results[0])}"


def _relation(operand: Shape, result: Shape) -> str:
    """Return how an operand is spread: not at all, one element, along rows, along columns, or in part."""
    if prod(operand) == prod(result):
        return "="
    if prod(operand) == 1:
        return "one"
    if not operand or not result:
        return "part"
    if prod(operand) == operand[-1] == result[-1]:
        return "row"
    if operand[-1] == 1 and operand[:-1] == result[len(result) - len(operand) : -1]:
        return "column"
    return "part"


def _ordered(operands: list[str], facts: NodeFacts) -> list[str]:
    return sorted(operands) if facts.commutative else operands


def _permutation(node: Node) -> str:
    permutation = node.attributes.get("perm")
    return f" {permutation}" if isinstance(permutation, tuple) else ""


def _has_constant_second(graph: Graph, operands: Sequence[Ref | None]) -> bool:
    return len(operands) > 1 and operands[1] is not None and graph.nodes[operands[1].node].constant


def _sizes(features: Features) -> dict[str, float]:
    border, nodes = features.border, features.nodes
    return {
        "nodes": len(nodes),
        "launches": sum(f.kind != Kind.VIEW for f in nodes),
        "flops": sum(f.flops for f in nodes),
        "bytes in": border.bytes_in,
        "bytes weights": border.bytes_weights,
        "bytes out": border.bytes_out,
        "bytes inside": border.bytes_inside,
        "values in": border.values_in,
        "values out": border.values_out,
        "largest result bytes": max((size for f in nodes for size in f.result_bytes), default=0),
    }


def _by_kind(nodes: tuple[NodeFacts, ...]) -> dict[str, float]:
    numbers: dict[str, float] = {}
    for kind in _KINDS:
        own = [f for f in nodes if f.kind == kind]
        numbers[f"{kind} nodes"] = len(own)
        numbers[f"{kind} bytes"] = sum(f.moved_bytes for f in own)
        numbers[f"{kind} flops"] = sum(f.flops for f in own)
    return numbers


def _of_products(features: Features) -> dict[str, float]:
    constant = features.constant_second
    products = [(f.product, c) for f, c in zip(features.nodes, constant, strict=True) if f.product]
    # ties are broken by all that is known, never by the order of the nodes
    largest, is_constant = max(products, key=_size_of_product, default=(Product(0, 0, 0, 0), False))
    numbers: dict[str, float] = {f"product {name}": getattr(largest, name) for name in ("batch", "m", "n", "k")}
    return numbers | {
        "product second is constant": is_constant,
        "product padded flops": sum(p.padded_flops for p, _ in products),
        "product largest flops": largest.padded_flops,
        "product n beyond tiles": largest.n % 16,
        "product m beyond tiles": largest.m % 6,
        "product one row": sum(p.m == 1 for p, _ in products),
        "product one column": sum(p.n == 1 for p, _ in products),
        "product second bytes": 4 * sum(p.batch * p.k * p.n for p, c in products if not c),
        "product weight bytes": 4 * sum(p.batch * p.k * p.n for p, c in products if c),
    }


def _size_of_product(entry: tuple[Product, bool]) -> tuple[int, ...]:
    product, is_constant = entry
    return (product.padded_flops, product.batch, product.m, product.n, product.k, is_constant)


def _of_convolutions(nodes: tuple[NodeFacts, ...]) -> dict[str, float]:
    convolutions = [(f.flops, f.convolution) for f in nodes if f.convolution]
    flops, largest = max(convolutions, key=_size_of_convolution, default=(0, Convolution(0, 0, 0, 0, 0, 0, 0, 0)))
    numbers: dict[str, float] = {
        f"convolution {name}": getattr(largest, name)
        for name in ("batch", "channels_in", "channels_out", "groups", "kernel", "stride", "dilation", "positions")
    }
    return numbers | {
        "convolution largest flops": flops,
        "convolution channels per group": largest.channels_in // max(largest.groups, 1),
        "convolution is depthwise": largest.is_depthwise,
        "convolution is blocked": sum(c.is_blocked for _, c in convolutions),
        "convolution columns": sum(c.columns for _, c in convolutions if not c.is_blocked),
        "convolution padded flops": sum(c.padded_flops for _, c in convolutions if not c.is_blocked),
        "convolution depthwise kernel": max((c.kernel for _, c in convolutions if c.is_depthwise), default=0),
    }


def _size_of_convolution(entry: tuple[int, Convolution]) -> tuple[int, ...]:
    flops, c = entry
    return (flops, c.batch, c.channels_in, c.channels_out, c.groups, c.kernel, c.stride, c.dilation, c.positions)


def _of_movements(nodes: tuple[NodeFacts, ...]) -> dict[str, float]:
    moved = [f for f in nodes if f.kind == Kind.MOVEMENT]
    return {
        "movement shortest run": min((f.run for f in moved), default=0),
        "movement runs": sum(f.elements // max(f.run, 1) for f in moved),
        "movement elements in short runs": sum(f.elements for f in moved if f.run < _SHORT_RUN),
        "movement parts": sum(len(f.operands) + len(f.results) for f in moved),
    }


def _of_elements(nodes: tuple[NodeFacts, ...]) -> dict[str, float]:
    elementwise = [f for f in nodes if f.kind == Kind.ELEMENTWISE]
    numbers: dict[str, float] = {f"elementwise {relation} elements": 0 for relation in _RELATIONS}
    for facts in elementwise:
        for operand in facts.operands:
            numbers[f"elementwise {_relation(operand, facts.results[0])} elements"] += facts.elements
    return numbers | {
        "inexact elements": sum(f.elements for f in nodes if f.inexact),
        "exponential elements": sum(f.elements for f in nodes if f.exponential),
        "shortest last dimension": min((f.results[0][-1] for f in elementwise if f.results[0]), default=0),
    }


def _of_rows(nodes: tuple[NodeFacts, ...]) -> dict[str, float]:
    rows = [(prod(f.operands[0]), f.row) for f in nodes if f.kind == Kind.ROWS and f.operands]
    return {
        "rows elements": sum(elements for elements, _ in rows),
        "rows longest": max((row for _, row in rows), default=0),
        "rows shortest": min((row for _, row in rows), default=0),
        "rows": sum(elements // max(row, 1) for elements, row in rows),
    }


NUMBERS = tuple(Features((), Border(0, 0, 0, 0, 0, 0), (), Counter()).numbers)
"""The names of all numbers, in their order."""
