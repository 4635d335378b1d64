"""An order of regions in which new operators, shapes and wirings come before repetitions of known ones.

    region_grams(region)                          ("MatMul", "MatMul 7,9,9", "MatMul > Add", ...)
    novel_first({"a": grams, "b": grams}, {})     ["b", "a"]

A price model learns most from what it has not seen (the third measurement of the same product at another width adds
little), and measuring may end early. A gram that was met n times is worth 1 / (1 + n), a region the sum of its grams.

Invariant: the order contains each region once, and depends on the grams alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from math import log2

from rlflow.ir.graph import Graph
from rlflow.ir.node import LEAVES, Node
from rlflow.ir.tensor_type import TensorType


def region_grams(region: Graph) -> tuple[str, ...]:
    """Return the grams of a region: its operators by themselves, with their attributes, with their sizes and with
    their operands, and all of them together; each once, sorted.
    """
    return tuple(sorted(set(_grams(region))))


def _grams(region: Graph) -> Iterator[str]:
    running = [region.nodes[i] for i in region.order]
    yield "all " + " ".join(sorted(node.op for node in running))
    for node in running:
        yield node.op
        yield f"{node.op} {sorted(node.attributes.items())}"
        yield f"{node.op} {_sizes(region, node)}"
        for operand in (region.nodes[source] for source in node.sources if region.nodes[source].op not in LEAVES):
            yield f"{operand.op} > {node.op}"


def _sizes(region: Graph, node: Node) -> str:
    """Return the shapes of a node's operands, each dimension as a power of two."""
    return ", ".join("-" if ref is None else _size(region.type_of(ref)) for ref in node.inputs)


def _size(kind: TensorType | None) -> str:
    if kind is None or kind.shape is None:
        return "?"
    return "x".join(str(round(log2(d))) if isinstance(d, int) and d > 0 else "?" for d in kind.shape)


def novel_first(grams: Mapping[str, Sequence[str]], companions: Mapping[str, Sequence[str]]) -> list[str]:
    """Order regions by what is new in them, always the one of the greatest worth next.

    grams: of each region, by its signature. companions: regions that are worth little without each other, such as those
    that a rewrite made and removed; they follow at once.
    """
    seen: Counter[str] = Counter()
    ordered: dict[str, None] = {}
    # Worth only ever falls, so that the first one in the heap whose worth is still what it was is the best of all.
    waiting = [(-float(len(found)), name) for name, found in grams.items()]
    heapify(waiting)
    while waiting:
        worth, name = heappop(waiting)
        if name in ordered:
            continue
        now = -sum(1.0 / (1 + seen[gram]) for gram in grams[name])
        if now > worth:
            heappush(waiting, (now, name))
            continue
        for taken in (name, *companions.get(name, ())):
            if taken not in ordered:
                ordered[taken] = None
                seen.update(grams[taken])
    return list(ordered)
