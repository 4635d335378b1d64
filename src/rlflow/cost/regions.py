"""Cutting a graph into regions across whose borders ONNX Runtime fuses nothing.

A region is a maximal set of nodes that ONNX Runtime *might* fuse with each other; what it really makes of a region is
left to ONNX Runtime itself, when the region is timed. So the cut must only never separate what would be fused. After a
rewrite only regions that contain a changed node are new, and identical layers share their regions' prices.

Nodes that compute the same from the same operands are in one region, since ONNX Runtime runs one of them.

What is quantised runs on whole numbers across all of an operator's neighbours (`cost/integer_kernels.py`). Each reader
of a DequantizeLinear has one of its own, whose price is in that of the reader's region (`as_run`).

A softmax is a kernel of its own, but numbers that a mask puts far below the others are slow to exponentiate: it is in
one region with the pointwise operators before it.

Three things are not regions' business, because ONNX Runtime decides them by looking at the whole model: which of
several views in a row it merges, of which slices of one tensor it makes a Split (microseconds both), and between which
convolutions it keeps its blocked layout (`cost/border_reorders.py`).

The borders follow the CPU optimisers at ORT_ENABLE_ALL: MatMul + Add -> Gemm, scale and transpose into FusedMatMul,
Gelu and BiasGelu, LayerNormalization and SkipLayerNormalization, Conv + BatchNormalization + activation,
Pad into a window (docs/measurements.md, 3).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from immutables import Map

from rlflow.cost.integer_kernels import CONVERTING, DEQUANTISING, dequantisers, in_one_chain, kernels_of, may_be_one
from rlflow.ir.graph import Change, Graph
from rlflow.ir.node import Node, Ref
from rlflow.ir.preview import Preview
from rlflow.ops import registry
from rlflow.ops.traits import Fusion


def _playing(parts: Fusion) -> frozenset[str]:
    """The operators that play one of these parts."""
    return registry.having(lambda traits: traits.fusion & parts)


VIEWS = registry.having(lambda traits: traits.view)
"""Operators that only relabel memory."""

SUMS = _playing(Fusion.SUM)
"""Operators that join each other only where nobody else reads the first."""

TRANSPOSES = _playing(Fusion.TRANSPOSE)
_PADS, _PADDED = _playing(Fusion.PAD), _playing(Fusion.PADDED)
_PRODUCTS = _playing(Fusion.PRODUCT)
POINTWISE = _playing(Fusion.POINTWISE)
_SCALES = _playing(Fusion.SCALE)
_GATES, _GATED = _playing(Fusion.GATE), _playing(Fusion.GATED)
_AFTER_POINTWISE = _playing(Fusion.REDUCTION | Fusion.MASKED)
_NORMALISATIONS, _NORMALISED = _playing(Fusion.NORMALISATION), _playing(Fusion.NORMALISED)
_BEFORE_POINTWISE = _playing(Fusion.POINTWISE | Fusion.PRODUCT | Fusion.REDUCTION | Fusion.ACTIVATED)

_COMMUTATIVE = frozenset(name for name, operator in registry.OPERATORS.items() if operator.commutative)
DRAWING = registry.having(lambda traits: traits.draws_numbers)
"""Operators that draw random numbers."""

Region = tuple[int, ...]


@dataclass(frozen=True)
class Partition:
    """`region_of` names for each running node its region, whose nodes are in the graph's order. `made` are the regions
    that the partition before this one had not, all of them where there was none, and `gone` those that it had instead.
    """

    region_of: Map[int, Region]
    made: Collection[Region]
    gone: Collection[Region] = ()

    @property
    def regions(self) -> set[Region]:
        return set(self.region_of.values())


def partition(graph: Graph) -> Partition:
    """Put every node that runs in exactly one region."""
    region_of = _grouped(graph, graph.order)
    return Partition(Map(region_of), tuple(dict.fromkeys(region_of.values())))


def updated(parent: Partition, graph: Graph, change: Change) -> Partition:
    """Return the partition of a graph from its parent's: only regions next to the change are cut again."""
    near = set(change.touched)
    for identifier in change.touched:
        near.update(graph.nodes[identifier].sources, graph.consumers[identifier], twins(graph, identifier))
    near.update(in_one_chain(graph, _in_order(graph, change.touched.union(change.added))))
    near.update(change.removed)
    affected = {parent.region_of[i] for i in near if i in parent.region_of}
    affected |= {
        parent.region_of[c] for region in affected for c in _products_after(graph, region) if c in parent.region_of
    }
    again = {i for region in affected for i in region} | near
    return _with(parent, affected, _grouped(graph, _in_order(graph, again)))


def concerned(partition: Partition, graph: Graph, edit: Preview) -> set[int]:
    """Return the nodes of all regions whose extent or whose price an edit may change."""
    near = edit.removed | edit.readers | in_one_chain(graph, edit.removed | edit.touched, edit.added.values())
    for identifier in edit.touched - near:
        if not _is_read_as_before(partition, graph, edit, identifier):
            near.update((identifier, *_sums_after(graph, identifier)))
    near.update(_rescaled(graph, edit.readers))
    near.update(_twins_after(graph, edit))
    found = {i for identifier in near for i in partition.region_of.get(identifier, ())}
    return found | dequantisers(graph, found)


def _is_read_as_before(partition: Partition, graph: Graph, edit: Preview, identifier: int) -> bool:
    """Return True if an edit changes a node's readers and yet neither the extent nor the price of its region.

    Its value leaves the region before and after, as many read it as fusing depends on, and none of the new ones may be
    fused with it.
    """
    node, before = graph.nodes[identifier], graph.consumers[identifier]
    if len(node.types) > 1 or Ref(identifier) in edit.substitution:
        return False
    new = edit.gained.get(identifier, set())
    kept = [c for c in before if c not in edit.removed]
    region, is_output = partition.region_of[identifier], identifier in graph.output_nodes
    left_before = is_output or any(c not in region for c in before)
    leaves_after = is_output or bool(new) or any(c not in region for c in kept)
    if not (left_before and leaves_after) or (len(before) > 1) != (len(new.union(kept)) > 1):
        return False
    return not any(_may_fuse(graph, identifier, edit.added.get(c) or graph.nodes[c]) for c in new)


def disturbed(graph: Graph, change: Change) -> Iterator[int]:
    """List the nodes that may be fused differently after a change although it did not touch them."""
    yield from in_one_chain(graph, _in_order(graph, change.touched.union(change.added)))
    yield from _rescaled(graph, change.touched)
    for identifier in change.touched:
        yield from _sums_after(graph, identifier)
        yield from twins(graph, identifier)


def as_run(graph: Graph, region: Region) -> Region:
    """Return the nodes that a region's price is of: with it the DequantizeLinears that it reads. None of a region that
    only converts what is converted back, nor of a DequantizeLinear by itself, unless the model returns its floats.
    """
    nodes = tuple(_in_order(graph, {*region, *read})) if (read := dequantisers(graph, region)) else region
    if any(graph.nodes[i].op not in CONVERTING or i in graph.output_nodes for i in region):
        return nodes
    is_alone = len(nodes) == 1 and graph.nodes[nodes[0]].op in DEQUANTISING
    return () if is_alone or kernels_of(graph, nodes).idle.issuperset(nodes) else nodes


def twins(graph: Graph, identifier: int) -> list[int]:
    """Return the other nodes that compute the same from the same operands; none of an output of the model, nor of a
    DequantizeLinear.

    The order of a commutative operator's operands does not count, as it never does for a price, although ONNX Runtime
    runs both of two sums whose operands are exchanged.
    """
    return _twins(graph, identifier, graph.nodes[identifier].inputs)


def first_twin(graph: Graph, identifier: int) -> int:
    """Return the node that stands for all that compute the same."""
    return min((identifier, *twins(graph, identifier)))


def stand_ins(graph: Graph, nodes: Iterable[int]) -> dict[int, int]:
    """Return for each node the first of these, in their order, that computes the same: nothing reads it before."""
    found: dict[int, int] = {}
    for identifier in nodes:
        found[identifier] = next((found[twin] for twin in twins(graph, identifier) if twin in found), identifier)
    return found


def first_value(graph: Graph, ref: Ref | None) -> Ref | None:
    """Return the value that stands for all that are computed the same."""
    return None if ref is None else Ref(first_twin(graph, ref.node), ref.index)


def readers(graph: Graph, ref: Ref) -> set[int]:
    """Return the nodes that read a value, from whichever of the nodes that compute it, each by its first twin."""
    found: set[int] = set()
    for identifier in (ref.node, *twins(graph, ref.node)):
        value = Ref(identifier, ref.index)
        found.update(first_twin(graph, c) for c in graph.consumers[identifier] if value in graph.nodes[c].inputs)
    return found


def _twins(graph: Graph, identifier: int, operands: tuple[Ref | None, ...]) -> list[int]:
    """Do the same for a node that reads these operands."""
    node = graph.nodes[identifier]
    if identifier in graph.output_nodes or node.op in DRAWING or node.op in DEQUANTISING:
        return []
    readers = min((graph.consumers[ref.node] for ref in operands if ref is not None), key=len, default=())
    return [
        i
        for i in readers
        if i != identifier
        and graph.nodes[i].signature == node.signature
        and _same(node.op, graph.nodes[i].inputs, operands)
        and i not in graph.output_nodes
    ]


def _same(op: str, first: tuple[Ref | None, ...], second: tuple[Ref | None, ...]) -> bool:
    return first == second or (op in _COMMUTATIVE and Counter(first) == Counter(second))


def _twins_after(graph: Graph, edit: Preview) -> Iterator[int]:
    """List the nodes that compute the same as a reader, once it reads other operands."""
    for identifier in edit.readers:
        node = edit.added.get(identifier) or graph.nodes[identifier]
        operands = tuple(None if ref is None else edit.substitution.get(ref, ref) for ref in node.inputs)
        if all(ref is None or ref.node in graph.nodes for ref in operands):
            yield from _twins(graph, identifier, operands)


def _sums_after(graph: Graph, identifier: int) -> list[int]:
    """Return the sums that may join a node, if it is a sum: the number of its readers decides whether they do."""
    if graph.nodes[identifier].op not in SUMS:
        return []
    return [c for c in graph.consumers[identifier] if graph.nodes[c].op in SUMS]


def _rescaled(graph: Graph, changed: Iterable[int]) -> Iterator[int]:
    """List the nodes that `_scales_a_tensor` may answer differently for, now that these have other operands, and those
    that ask it."""
    nodes, consumers = graph.nodes, graph.consumers
    for identifier in changed:
        op = nodes[identifier].op
        if op not in SUMS and op not in _GATED and op not in _SCALES:
            continue
        near = (identifier, *(consumers[identifier] if op in SUMS else ()))
        gated = [i for i in near if nodes[i].op in _GATED]
        behind = (identifier, *(c for i in gated for c in consumers[i]))
        scales = [i for i in behind if nodes[i].op in _SCALES]
        yield from gated
        yield from scales
        yield from (c for i in scales for c in consumers[i] if nodes[c].op in _PRODUCTS)


def traits_from_afar(graph: Graph, reader: Node, operand: Node) -> int:
    """Return what `_may_fuse` sees in an operand of a node beside its type, as bits: 0 for most."""
    if reader.op not in SUMS and reader.op not in _GATED and reader.op not in _SCALES:
        return 0
    is_gate = operand.op in _GATES
    has_gate = operand.op in SUMS and any(graph.nodes[s].op in _GATES for s in operand.sources)
    return is_gate + 2 * has_gate + 4 * _comes_from_gelu(graph, operand)


def node_by_node(graph: Graph) -> Partition:
    """Return the partition in which nothing is fused."""
    region_of = {i: (i,) for i in graph.order}
    return Partition(Map(region_of), tuple(region_of.values()))


def updated_node_by_node(parent: Partition, graph: Graph, change: Change) -> Partition:
    """Return the partition in which nothing is fused, from the parent's."""
    affected = {parent.region_of[i] for i in (*change.touched, *change.removed) if i in parent.region_of}
    return _with(parent, affected, {i: (i,) for i in _in_order(graph, change.touched)})


def _in_order(graph: Graph, identifiers: Iterable[int]) -> list[int]:
    """Return the nodes among these that run, in the graph's order."""
    position = graph.positions()
    return sorted((i for i in identifiers if position[i] >= 0), key=position.__getitem__)


def _with(parent: Partition, gone: Collection[Region], made: Mapping[int, Region]) -> Partition:
    """Return the parent's partition with other regions in the place of some."""
    region_of = parent.region_of.mutate()
    for region in gone:
        for identifier in region:
            del region_of[identifier]
    region_of.update(made)
    return Partition(region_of.finish(), tuple(dict.fromkeys(made.values())), gone)


def _products_after(graph: Graph, region: Region) -> Iterator[int]:
    """List the products that read from a region and may join it for what is deep inside: see `_scales_a_tensor`."""
    for identifier in region:
        for consumer in graph.consumers.get(identifier, ()):
            if graph.nodes[consumer].op in _PRODUCTS and not graph.nodes[consumer].constant:
                yield consumer


def _grouped(graph: Graph, ordered: Sequence[int]) -> dict[int, Region]:
    """Group these nodes, which are in the graph's order, into regions."""
    rank = {identifier: place for place, identifier in enumerate(ordered)}
    parent = {i: i for i in ordered}

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    for identifier in ordered:
        node = graph.nodes[identifier]
        fused = [s for s in node.sources if s in rank and _may_fuse(graph, s, node)]
        for source in (*fused, *(twin for twin in twins(graph, identifier) if twin in rank)):
            first, second = sorted((root(source), root(identifier)), key=rank.__getitem__)
            parent[second] = first
    members: dict[int, list[int]] = {}
    for identifier in ordered:
        members.setdefault(root(identifier), []).append(identifier)
    return {i: region for region in map(tuple, members.values()) for i in region}


def _may_fuse(graph: Graph, producer: int, second: Node) -> bool:
    first = graph.nodes[producer]
    if may_be_one(graph, producer, second):
        return True
    if second.op in VIEWS or second.op in TRANSPOSES:
        return first.op == second.op or (first.op in VIEWS and second.op in VIEWS)
    if first.op in _PADS and second.op in _PADDED:
        return True
    if second.op in _PRODUCTS:
        return first.op in TRANSPOSES or (first.op in _SCALES and _scales_a_tensor(graph, first))
    if second.op in _NORMALISATIONS:
        return first.op in _NORMALISED
    if second.op in _AFTER_POINTWISE:
        return first.op in POINTWISE
    if second.op not in POINTWISE or not _stays_local(graph, producer, second):
        return False
    if (first.op in SUMS or first.op in _PRODUCTS) and _scales_columns(graph, second):
        return False
    return first.op in _BEFORE_POINTWISE


def _scales_columns(graph: Graph, node: Node) -> bool:
    """Return True if the node multiplies each column by a constant of its own, as a layer scale does.

    ONNX Runtime has no kernel that takes this up after a product and its bias, and in one region with them such a
    factor is hidden by the error of the product's price. Other factors stay: those of a convolution's channels do not
    vary along the last axis, and layer norms multiply behind a quotient.
    """
    if node.op not in _SCALES:
        return False
    operands = (ref for ref in node.inputs if ref is not None and ref.node in graph.nodes)
    factors = (graph.type_of(ref) for ref in operands if graph.nodes[ref.node].constant)
    return any(factor is not None and (factor.shape or (1,))[-1:] != (1,) for factor in factors)


def _stays_local(graph: Graph, producer: int, second: Node) -> bool:
    """Return False for what runs through the whole model: a residual stream, or a mask that every layer adds."""
    first = graph.nodes[producer]
    if first.op in SUMS and second.op in SUMS and len(graph.consumers[producer]) > 1:
        return False
    given, made = first.types[0], second.types[0]
    if given is None or made is None or given.shape is None or made.shape is None:
        return False
    return given.shape == made.shape or given.shape[-1:] == (1,)  # statistics of a row are broadcast and fused


def _scales_a_tensor(graph: Graph, node: Node) -> bool:
    """Return True if the node multiplies by a constant scalar and is not the end of a Gelu, which keeps its factor."""
    scalar = False
    for ref in node.inputs:
        tensor_type = None if ref is None else graph.type_of(ref)
        if ref is None or tensor_type is None:
            return False
        operand = graph.nodes[ref.node]
        if operand.constant and tensor_type.is_static and tensor_type.elements == 1:
            scalar = True
        elif _comes_from_gelu(graph, operand):
            return False
    return scalar


def _comes_from_gelu(graph: Graph, node: Node) -> bool:
    """Return True for x (1 + erf(x / sqrt(2))), in whichever order it is multiplied.

    A Gelu in a form that ONNX Runtime does not recognise loses its factor to the product after it. It is still cut off
    here: that form costs much more than its factor, and regions of two products would multiply the prices to take.
    """
    if node.op not in _GATED:
        return False
    near = [graph.nodes[s] for s in node.sources]
    far = [graph.nodes[s] for operand in near if operand.op in SUMS for s in operand.sources]
    return any(operand.op in _GATES for operand in far)
