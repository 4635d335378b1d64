"""Graphs as the page has them: blocks in rows, the operators inside each, what they cost, and where two graphs differ.

graphs = [page_graph("main graph", before, after, cost_model)]
graphs[0].content               # for the page, as JSON
graphs[0].blocks_of(names)      # the blocks before in which values of these names are computed
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rlflow.cost.analytic import AnalyticCost
from rlflow.cost.base import CostModel, MeasuringCostModel, local
from rlflow.ir.graph import Graph
from rlflow.ir.networkx_view import top_down_layout
from rlflow.ir.node import Node
from rlflow.show.boxes import Box, Kind, Panel, model_panels
from rlflow.show.side_by_side import Block, Prices, SideBySide, side_by_side

_DIGITS = 6  # of milliseconds
_LONGEST_VALUE = 60  # characters of an attribute


@dataclass(frozen=True)
class PageGraph:
    """A graph, or one and what it became, laid out and priced; `title` says which of a model's graphs it is."""

    title: str
    before: Graph
    after: Graph | None
    layout: SideBySide
    node_ms: tuple[Prices, Prices]

    @property
    def content(self) -> dict[str, Any]:
        """Return what the page draws."""
        panels = list(model_panels(self.before, self.after).values())
        sides = [_side(self.before, self.layout.before, panels[0], self.node_ms[0])]
        if self.after is not None and self.layout.after is not None:
            sides.append(_side(self.after, self.layout.after, panels[1], self.node_ms[1]))
        stretches = [[list(each.before), list(each.after)] for each in self.layout.stretches]
        return {"title": self.title, "sides": sides, "stretches": stretches}

    def blocks_before(self, names: Collection[str]) -> list[int]:
        """Return the places of the blocks before in which values of these names are computed."""
        return sorted({self._block_of_name[name] for name in names if name in self._block_of_name})

    def blocks_after(self, nodes: Collection[int]) -> list[int]:
        """Return the places of the blocks after that hold one of these nodes."""
        return sorted({self._block_of_node[node] for node in nodes})

    @cached_property
    def _block_of_name(self) -> dict[str, int]:
        blocks, nodes = enumerate(self.layout.before), self.before.nodes
        return {name: place for place, block in blocks for node in block.nodes for name in nodes[node].names if name}

    @cached_property
    def _block_of_node(self) -> dict[int, int]:
        return {node: place for place, block in enumerate(self.layout.after or ()) for node in block.nodes}


def page_graph(
    title: str, before: Graph, after: Graph | None, cost_model: CostModel, priced: tuple[Graph, Graph] | None = None
) -> PageGraph:
    """Lay out and price a graph, and what it became if that is given.

    `priced` are graphs with the same nodes in the same order, whatever their numbers: the page shows their prices.
    """
    one, other = priced or (before, after)
    after_ms = {} if after is None or other is None else _prices(after, other, cost_model)
    node_ms = _prices(before, one, cost_model), after_ms
    return PageGraph(title, before, after, side_by_side(before, after, *node_ms), node_ms)


def price_words(cost_model: CostModel) -> str:
    """Say where the prices come from."""
    if isinstance(cost_model, MeasuringCostModel):
        return "measured on this machine, part by part"
    return f"by the cost model {cost_model.name}, not measured"


def operators_table(graphs: Iterable[PageGraph]) -> list[dict[str, Any]]:
    """Count each operator before and after, with its milliseconds, the dearest first."""
    counts: list[Counter[str]] = [Counter(), Counter()]
    ms: list[dict[str, float]] = [defaultdict(float), defaultdict(float)]
    for each in graphs:
        for side, graph in enumerate(filter(None, (each.before, each.after))):
            for i in graph.order:
                counts[side][graph.nodes[i].op] += 1
                ms[side][graph.nodes[i].op] += each.node_ms[side].get(i, 0.0)
    names = sorted(counts[0] | counts[1], key=lambda op: (-max(m[op] for m in ms), -counts[0][op], op))
    return [{"op": op, "count": [c[op] for c in counts], "ms": [round(m[op], _DIGITS) for m in ms]} for op in names]


def panel_content(panel: Panel) -> list[list[Any]]:
    """Return boxes with their places, for the page to draw: label, kind, column, row, operands."""
    layout = top_down_layout([box.operands for box in panel])
    return [
        [box.label, box.kind, column, row, list(box.operands)] for box, (column, row) in zip(panel, layout, strict=True)
    ]


def _prices(shown: Graph, priced: Graph, cost_model: CostModel) -> Prices:
    """Price one graph, and give its prices to the nodes in the same places of another one."""
    node_ms = _node_ms(priced, cost_model)
    places = zip(shown.order, priced.order, strict=True)
    return {node: node_ms[likewise] for node, likewise in places if likewise in node_ms}


def _node_ms(graph: Graph, cost_model: CostModel) -> Prices:
    """Divide the price of each part of a graph among its nodes, by what each would cost alone on a simple machine.

    Nothing is known where a cost model has no parts, or would have to measure them.
    """
    pricer, alone = local(cost_model), AnalyticCost()
    if pricer is None:
        return {}
    if isinstance(cost_model, MeasuringCostModel) and cost_model.measure([graph], deadline=time.perf_counter()):
        return {}
    divided = {}
    for nodes, ms in pricer.parts(graph):
        weights = [alone.part_of(graph, node).ms for node in nodes]
        whole = sum(weights) or 1.0
        divided.update({node: ms * weight / whole for node, weight in zip(nodes, weights, strict=True)})
    return divided


def _side(graph: Graph, blocks: Sequence[Block], panel: Panel, node_ms: Prices) -> list[dict[str, Any]]:
    kinds = {node: box.kind for node, box in zip(graph.order, panel[len(graph.inputs) :], strict=False)}
    return [_block(graph, block, kinds, node_ms) for block in blocks]


def _block(graph: Graph, block: Block, kinds: Mapping[int, Kind], node_ms: Prices) -> dict[str, Any]:
    written: dict[str, Any] = {"title": block.title, "kind": block.kind, "row": block.row, "column": block.column}
    written |= {"reads": list(block.operands)} if block.operands else {}
    if block.ms is not None:
        written["ms"] = round(block.ms, _DIGITS)
    if block.kind == "value":
        return written | {"type": str(graph.nodes[block.nodes[0]].types[0])} if block.nodes else written
    written["nodes"] = [_operator(graph, node, node_ms.get(node)) for node in block.nodes]
    return written | {"picture": panel_content(_inside(graph, block, kinds))}


def _inside(graph: Graph, block: Block, kinds: Mapping[int, Kind]) -> list[Box]:
    """The operators of a block, and behind them the values that they read from outside."""
    place = {node: i for i, node in enumerate(block.nodes)}
    outside: dict[str, int] = {}

    def read(node: Node) -> tuple[int, ...]:
        found = []
        for ref in node.inputs:
            if ref is None or graph.nodes[ref.node].constant:
                continue
            name = graph.nodes[ref.node].names[ref.index] or graph.nodes[ref.node].op
            inside = place.get(ref.node)
            found.append(outside.setdefault(name, len(place) + len(outside)) if inside is None else inside)
        return tuple(dict.fromkeys(found))

    operators = [Box(graph.nodes[i].op, kinds[i], read(graph.nodes[i])) for i in block.nodes]
    return operators + [Box(name, "value") for name in outside]


def _operator(graph: Graph, identifier: int, ms: float | None) -> dict[str, Any]:
    node = graph.nodes[identifier]
    constants = [
        f"{graph.nodes[r.node].names[r.index] or graph.nodes[r.node].op}: {graph.type_of(r)}"
        for r in node.inputs
        if r is not None and graph.nodes[r.node].constant
    ]
    said = {
        "op": node.op,
        "name": node.label or next(filter(None, node.names), ""),
        "type": ", ".join("" if t is None else str(t) for t in node.types),
        "attributes": ", ".join(f"{name}={_short(value)}" for name, value in sorted(node.attributes.items())),
        "constants": constants,
        "ms": None if ms is None else round(ms, _DIGITS),
    }
    return {name: value for name, value in said.items() if value}


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"
