"""The neighbourhood of an edit, written down completely and without names, so that like neighbourhoods are found again.

Twelve layers of a model are alike, weights apart. What a rewrite saves in one it saves in all others, if it changes
regions (`cost/regions.py`) that are wired alike. So the nodes of all regions concerned are written down in the graph's
order, each with its operands as places in that list, then the nodes that the edit adds, then what is read in place of
what. Of operands from outside only that is written which a price may depend on: of weights the type alone.

Two neighbourhoods are written alike only if there is a one-to-one mapping between them that keeps everything written:
no colouring is involved that could take different graphs for the same. The reverse does not always hold, since the
graph's order may differ, which costs a price that was known already, never a wrong one.

A region is written by itself in the same way (`region`), so that twelve layers ask for the price of one.

The invariant: edits that are written alike change the sum of the prices of regions by the same, and regions that are
written alike are fragments of one signature (`cost/fragment.py`).
"""

from __future__ import annotations

import marshal
from collections.abc import Collection, Hashable, Mapping
from itertools import count
from typing import Any

from rlflow.cost.fragment import from_outside, is_literal, leaves
from rlflow.cost.integer_kernels import CONVERTING, taken_as
from rlflow.cost.regions import SUMS, Region, first_twin, traits_from_afar
from rlflow.ir.graph import Graph
from rlflow.ir.node import Node, Ref
from rlflow.ir.preview import Preview

_MAX_REMEMBERED = 200_000
_PLAIN = 2  # the last version of the format that does not depend on which objects are shared


class Neighbourhoods:
    """Writes neighbourhoods down, and remembers what it wrote of values."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._next = count()
        self._of_value: dict[tuple[Node, int], int] = {}

    def written(self, graph: Graph, edit: Preview, nodes: Collection[int]) -> bytes:
        """Write down an edit and the nodes of the regions that it concerns."""
        text = _Text(self, graph, edit, nodes)
        header = graph.header.opset, graph.header.working_set_mb
        return marshal.dumps((header, text.of_nodes(), text.of_added(), text.of_substitution()), _PLAIN)

    def region(self, graph: Graph, region: Region) -> Hashable:
        """Write down a region: what its nodes are, what they read, and which results are read outside it."""
        places = {identifier: place for place, identifier in enumerate(region)}
        outside: dict[Ref, int] = {}

        def operand(ref: Ref) -> tuple[int, int]:
            place = places.get(ref.node)
            if place is not None:
                return place, ref.index
            ref = Ref(first_twin(graph, ref.node), ref.index)  # what computes the same is one value
            return -1 - outside.setdefault(ref, len(outside)), self.value(graph, ref)

        written: list[Hashable] = [graph.header.opset, graph.header.working_set_mb]
        for identifier in region:
            node = graph.nodes[identifier]
            written.append(node.signature)
            written.append(taken_as(graph, identifier))
            written.extend(None if ref is None else operand(ref) for ref in node.inputs)
            written.extend(leaves(graph, Ref(identifier, i), places) for i in range(len(node.types)))
        return tuple(written)

    def value(self, graph: Graph, ref: Ref) -> int:
        """Return a number that stands for everything that a price may depend on in a value from outside."""
        node = graph.nodes[ref.node]
        known = self._of_value.get((node, ref.index))
        if known is None:
            known = self.number(from_outside(graph, ref))
            if len(self._of_value) >= _MAX_REMEMBERED:
                self._of_value.clear()
            self._of_value[node, ref.index] = known
        return known

    def number(self, content: Hashable) -> int:
        """Return the number of some content. Numbers are never used again, even where contents are forgotten."""
        known = self._numbers.get(content)
        if known is None:
            if len(self._numbers) >= _MAX_REMEMBERED:
                self._numbers.clear()
            known = self._numbers[content] = next(self._next)
        return known


class _Text:
    """One neighbourhood while it is written."""

    def __init__(self, known: Neighbourhoods, graph: Graph, edit: Preview, nodes: Collection[int]) -> None:
        self.known, self.graph, self.edit = known, graph, edit
        position = graph.positions()
        self.places: dict[int, int] = {n: place for place, n in enumerate(sorted(nodes, key=position.__getitem__))}
        for identifier, node in edit.added.items():
            if not node.constant:
                self.places[identifier] = len(self.places)
        self.inside = len(nodes)
        self.outside: dict[Ref, int] = {}

    def of_nodes(self) -> tuple[Any, ...]:
        nodes = [(i, self.graph.nodes[i]) for i in list(self.places)[: self.inside]]
        return tuple((*self._of_node(node), *self._reading(i, node)) for i, node in nodes)

    def of_added(self) -> tuple[Any, ...]:
        added = self.edit.added
        return tuple(self._of_node(added[i]) for i in list(self.places)[self.inside :])

    def of_substitution(self) -> tuple[Any, ...]:
        return tuple(
            (self._of_operand(None, old), self._of_operand(None, new)) for old, new in self.edit.substitution.items()
        )

    def _of_node(self, node: Node) -> tuple[Any, ...]:
        return node.signature, *(None if ref is None else self._of_operand(node, ref) for ref in node.inputs)

    def _of_operand(self, reader: Node | None, ref: Ref) -> tuple[int, ...]:
        """Write a value by its place in the list, one from outside by its number among those and by its traits."""
        place = self.places.get(ref.node)
        if place is not None:
            return place, ref.index
        name = self.outside.setdefault(ref, len(self.outside))
        if ref.node in self.edit.added:
            return -1 - name, self.known.number(self._made(ref))
        value, operand = self.known.value(self.graph, ref), self.graph.nodes[ref.node]
        if reader is None or operand.constant:
            return -1 - name, value
        return -1 - name, value, traits_from_afar(self.graph, reader, operand)

    def _made(self, ref: Ref) -> Hashable:
        """Write a constant that the edit makes: a small one with all that its value follows from."""
        tensor_type = self.edit.added[ref.node].types[ref.index]
        return _history(self.graph, self.edit.added, ref) if is_literal(tensor_type) else tensor_type

    def _reading(self, identifier: int, node: Node) -> tuple[Any, ...]:
        """Write down which results of a node are read from outside, how many readers a sum or a conversion has there,
        and as what a conversion is taken."""
        nodes, places = self.graph.nodes, self.places
        outside = [c for c in self.graph.consumers[identifier] if c not in places]
        read = {ref.index for c in outside for ref in nodes[c].inputs if ref is not None and ref.node == identifier}
        if identifier in self.graph.output_nodes:
            read.update(ref.index for ref in self.graph.outputs if ref.node == identifier)
        counts = node.op in SUMS or node.op in CONVERTING
        return min(len(outside), 2) if counts else 0, taken_as(self.graph, identifier), tuple(sorted(read))


def _history(graph: Graph, added: Mapping[int, Node], ref: Ref) -> Hashable:
    """Return everything that a constant's value follows from, weights included."""
    node = added.get(ref.node) or graph.nodes[ref.node]
    operands = (None if operand is None else _history(graph, added, operand) for operand in node.inputs)
    return node.signature, ref.index, *operands
