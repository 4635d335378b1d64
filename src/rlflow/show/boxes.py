"""The content of a picture of a graph: boxes that read from each other, and what changed between two graphs.

A picture has one panel, or two side by side, each a list of boxes. `to_dot` writes it in Graphviz's language, with no
library; `rlflow.show.box_picture` draws it.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from rlflow.ir.graph import Graph
from rlflow.ir.node import Node

Kind = Literal["operator", "value", "removed", "added"]
COLOURS: Mapping[Kind, str] = {"operator": "#cfe3f7", "value": "#f2f2f2", "removed": "#f6c9bd", "added": "#c6e6c3"}
LINE_COLOUR = "#888888"


@dataclass(frozen=True)
class Box:
    """An operator, or an input or output; `operands` are the places in the panel of the boxes that it reads."""

    label: str
    kind: Kind
    operands: tuple[int, ...] = ()


Panel = Sequence[Box]


def model_panels(graph: Graph, after: Graph | None = None) -> dict[str, Panel]:
    """Return the panels of a model: itself, or before and after, with the operators marked that the other has not.

    An operator is the same in both if it and its operands have the same names, and it the same attributes: rewriting
    keeps the names of what it leaves alone.
    """
    if after is None:
        return {"": _boxes(graph)}
    before_keys, after_keys = set(operator_keys(graph).values()), set(operator_keys(after).values())
    return {
        "before": _marked(graph, after_keys, "removed"),
        "after": _marked(after, before_keys, "added"),
    }


def to_dot(panels: Mapping[str, Panel]) -> str:
    """Return the picture in Graphviz's language, as `dot -Tsvg` reads it."""
    lines = ["digraph {", '  node [shape=box, style="rounded,filled", fontname="sans-serif"];']
    lines.append(f'  node [color="{LINE_COLOUR}"]; edge [color="{LINE_COLOUR}"];')
    for number, (title, panel) in enumerate(panels.items()):
        lines.append(f"  subgraph cluster_{number} {{")
        lines.append(f"    label={_quoted(title)}; color=white;")
        for place, box in enumerate(panel):
            lines.append(f'    n{number}_{place} [label={_quoted(box.label)}, fillcolor="{COLOURS[box.kind]}"];')
            lines += [f"    n{number}_{operand} -> n{number}_{place};" for operand in box.operands]
        lines.append("  }")
    return "\n".join([*lines, "}"]) + "\n"


def _boxes(graph: Graph) -> list[Box]:
    """Inputs, what runs, and outputs, operands first; constants are not drawn."""
    shown = [*graph.inputs, *graph.order]
    place_of = {identifier: place for place, identifier in enumerate(shown)}
    boxes = []
    for identifier in shown:
        node = graph.nodes[identifier]
        is_input = identifier in graph.inputs
        label = f"{node.names[0] if is_input else node.op}\n{_type(node)}"
        operands = tuple(place_of[source] for source in node.sources if source in place_of)
        boxes.append(Box(label, "value" if is_input else "operator", operands))

    for name, ref in zip(graph.output_names, graph.outputs, strict=True):
        operands = (place_of[ref.node],) if ref.node in place_of else ()
        boxes.append(Box(name, "value", operands))
    return boxes


def _marked(graph: Graph, unchanged: set[Hashable], mark: Kind) -> list[Box]:
    """The boxes of the graph, those of operators marked whose key is not among the `unchanged`."""
    keys = operator_keys(graph)
    changed = {place for place, i in enumerate(graph.order, len(graph.inputs)) if keys[i] not in unchanged}
    return [replace(box, kind=mark) if place in changed else box for place, box in enumerate(_boxes(graph))]


def operator_keys(graph: Graph) -> dict[int, Hashable]:
    """Return for each operator that runs the key by which it is known in another version of its model."""
    return {
        i: (
            graph.nodes[i].op,
            graph.nodes[i].names,
            tuple(sorted(graph.nodes[i].attributes.items())),
            tuple(_operand_names(graph, graph.nodes[i])),
        )
        for i in graph.order
    }


def _operand_names(graph: Graph, node: Node) -> Iterator[str | None]:
    for ref in node.inputs:
        yield None if ref is None else graph.nodes[ref.node].names[ref.index]


def _type(node: Node) -> str:
    tensor_type = node.types[0]
    return "" if tensor_type is None else str(tensor_type)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
