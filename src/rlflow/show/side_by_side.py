"""Two graphs beside each other, layer by layer: what both have stands at the same height.

A layer is a region across whose border ONNX Runtime fuses nothing, as in `rlflow.show.layers`. Both graphs have it if
its operators are the same by the keys of `rlflow.show.boxes`. Rows are those of both graphs laid on top of each other:

    before    x   MatMul+Add   Relu+Neg+Neg   MatMul   y
    after     x   MatMul+Add   Relu           MatMul   y
    row       0   1            2              3        4

Invariant: a block stands below all blocks that it reads, in both graphs.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

from rlflow.cost.regions import Region, partition
from rlflow.ir.graph import Graph
from rlflow.ir.networkx_view import connected, on_cycles, top_down_layout
from rlflow.show.boxes import Kind, operator_keys

Prices = Mapping[int, float]
"""Milliseconds of operators, by their numbers; empty where nothing is known of them."""


@dataclass(frozen=True)
class Block:
    """A layer, an input or an output; `operands` are the places among the blocks of its graph of those that it reads.

    `nodes` are its operators, or the input; an output has none. `kind` says if the other graph has it.
    """

    title: str
    kind: Kind
    nodes: tuple[int, ...]
    operands: tuple[int, ...]
    ms: float | None = None
    row: int = 0
    column: float = 0.0


class Stretch(NamedTuple):
    """Connected blocks that only one of the graphs has each, by their places in both; what took the place of what."""

    before: tuple[int, ...]
    after: tuple[int, ...]


@dataclass(frozen=True)
class SideBySide:
    """The blocks of one graph or of two, operands first, and the stretches in which they differ, from the top."""

    before: tuple[Block, ...]
    after: tuple[Block, ...] | None
    stretches: tuple[Stretch, ...]


def side_by_side(
    before: Graph, after: Graph | None = None, before_ms: Prices | None = None, after_ms: Prices | None = None
) -> SideBySide:
    """Lay out a graph, or two of which the second was made of the first by rewriting."""
    one = _blocks(before, before_ms or {})
    if after is None:
        return SideBySide(tuple(_placed(one, [block.operands for block in one], range(len(one)))), None, ())

    other = _blocks(after, after_ms or {})
    one_keys, other_keys = _keys(before, one), _keys(after, other)
    one = [_marked(block, key in other_keys, "removed") for block, key in zip(one, one_keys, strict=True)]
    other = [_marked(block, key in one_keys, "added") for block, key in zip(other, other_keys, strict=True)]
    operands, places = _merged(one, other, one_keys, other_keys)
    stretches = _stretches(before, after, one, other)
    one, other = _placed(one, operands, range(len(one))), _placed(other, operands, places)
    in_order = sorted(stretches, key=lambda s: min([one[i].row for i in s.before] + [other[i].row for i in s.after]))
    return SideBySide(tuple(one), tuple(other), tuple(in_order))


def _blocks(graph: Graph, prices: Prices) -> list[Block]:
    """Inputs, layers and outputs, operands first, without their places."""
    position = graph.positions()
    layers = sorted(partition(graph).regions, key=lambda region: position[region[0]])
    groups: list[tuple[int, ...]] = [*((i,) for i in graph.inputs), *_operands_first(graph, layers)]
    place_of = {node: place for place, group in enumerate(groups) for node in group}
    blocks = []
    for place, group in enumerate(groups):
        sources = dict.fromkeys(place_of[s] for node in group for s in graph.nodes[node].sources if s in place_of)
        operands = tuple(source for source in sources if source != place)
        is_input = place < len(graph.inputs)
        title = graph.nodes[group[0]].names[0] if is_input else ", ".join(graph.nodes[i].op for i in group)
        price_ms = None if is_input or not prices else sum(prices.get(i, 0.0) for i in group)
        blocks.append(Block(title, "value" if is_input else "operator", group, operands, price_ms))
    for name, ref in zip(graph.output_names, graph.outputs, strict=True):
        blocks.append(Block(name, "value", (), (place_of[ref.node],) if ref.node in place_of else ()))
    return blocks


def _operands_first(graph: Graph, layers: Sequence[Region]) -> list[Region]:
    """Divide layers that read each other in a ring, which no rows can hold, into runs of the graph's order.

    No ring goes through a run: all that lies on a way between two of its operators belongs to it.
    """
    place_of = {node: place for place, layer in enumerate(layers) for node in layer}
    sources = [{place_of[s] for i in layer for s in graph.nodes[i].sources if s in place_of} for layer in layers]
    rings = on_cycles([sorted(read - {place}) for place, read in enumerate(sources)])
    divided = (_runs(graph, layer) if place in rings else [layer] for place, layer in enumerate(layers))
    position = graph.positions()
    return sorted((part for parts in divided for part in parts), key=lambda part: position[part[0]])


def _runs(graph: Graph, layer: Region) -> list[Region]:
    position = graph.positions()
    runs = [list(layer[:1])]
    for before, node in pairwise(layer):
        if position[node] == position[before] + 1:
            runs[-1].append(node)
        else:
            runs.append([node])
    return list(map(tuple, runs))


def _keys(graph: Graph, blocks: Sequence[Block]) -> list[Hashable]:
    """Return for each block the key by which it is known in the other graph."""
    keys = operator_keys(graph)
    return [
        (block.title, bool(block.nodes)) if block.kind == "value" else frozenset(keys[i] for i in block.nodes)
        for block in blocks
    ]


def _marked(block: Block, is_shared: bool, mark: Kind) -> Block:
    return block if is_shared or block.kind == "value" else replace(block, kind=mark)


def _merged(
    before: Sequence[Block], after: Sequence[Block], before_keys: Sequence[Hashable], after_keys: Sequence[Hashable]
) -> tuple[list[list[int]], list[int]]:
    """Lay one graph on top of the other: what each block of both reads, and the places there of those `after`.

    Blocks that both have are one. Where that closes a ring, since one graph computes in another order than the other,
    the blocks of the ring stay apart.
    """
    known = {key: place for place, key in enumerate(before_keys)}
    apart: Collection[int] = ()
    while True:
        taken = set(apart)
        places: list[int] = []
        fresh = len(before)
        for key in after_keys:
            place = known.get(key, -1)
            if place < 0 or place in taken:
                place, fresh = fresh, fresh + 1
            taken.add(place)
            places.append(place)
        operands = [list(block.operands) for block in before] + [[] for _ in range(fresh - len(before))]
        for block, place in zip(after, places, strict=True):
            operands[place] = list(dict.fromkeys((*operands[place], *(places[i] for i in block.operands))))
        rings = on_cycles(operands)
        if not rings:
            return operands, places
        apart = {*apart, *(place for place in rings if place < len(before))}


def _placed(blocks: Sequence[Block], operands: Sequence[Sequence[int]], places: Sequence[int]) -> list[Block]:
    layout = top_down_layout(operands)
    return [
        replace(block, row=layout[place][1], column=layout[place][0])
        for block, place in zip(blocks, places, strict=True)
    ]


def _stretches(before: Graph, after: Graph, one: Sequence[Block], other: Sequence[Block]) -> Iterator[Stretch]:
    """Group the blocks that only one graph has: those that read each other, and those that compute the same value."""
    changed = [(0, place) for place, block in enumerate(one) if block.kind == "removed"]
    changed += [(1, place) for place, block in enumerate(other) if block.kind == "added"]
    number = {where: i for i, where in enumerate(changed)}
    first_of: dict[str, int] = {}
    links: list[list[int]] = []
    for i, (side, place) in enumerate(changed):
        graph, blocks = ((before, one), (after, other))[side]
        link = [number[side, source] for source in blocks[place].operands if (side, source) in number]
        for name in filter(None, (name for node in blocks[place].nodes for name in graph.nodes[node].names)):
            link.append(first_of.setdefault(name, i))
        links.append(link)
    for group in connected(links):
        sides = [tuple(changed[i][1] for i in group if changed[i][0] == side) for side in (0, 1)]
        yield Stretch(*sides)
