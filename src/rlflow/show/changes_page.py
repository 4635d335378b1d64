"""The page of a model, or of two of which the second was made of the first: `rlflow show A --after B -o X.html`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from rlflow.cost.base import CostModel
from rlflow.ir.graph import Graph
from rlflow.show.page_graphs import PageGraph, operators_table, page_graph, price_words

MAIN = "main graph"
"""The title of the graph that the others are bodies in."""

_MOST_LISTED = 12


def changes_content(
    before: Mapping[str, Graph], after: Mapping[str, Graph] | None, cost_model: CostModel, names: Sequence[str]
) -> dict[str, Any]:
    """Return what the page of one model or of two shows.

    `before` and `after` are a model's graphs by their titles: `MAIN`, and its bodies. `names` are those of the files.
    """
    graphs = page_graphs(before, after, cost_model)
    counts = [sum(len(graph.order) for graph in model.values()) for model in (before, after) if model is not None]
    main = graphs[0]
    ms = [sum(costs.values()) for costs in main.node_ms]
    figures = [["Operators", " → ".join(map(str, counts)), "with those of bodies" if len(before) > 1 else ""]]
    if ms[0]:
        priced = ms[:1] if after is None else ms
        figures.append(["Predicted cost", f"{' → '.join(f'{value:.3f}' for value in priced)} ms", ""])
    if after is not None:
        changed = sum(len(graph.layout.stretches) for graph in graphs)
        figures.append(["Places that differ", str(changed), "connected layers that only one model has"])
    return {
        "verdict": {"text": " and ".join(names), "tone": "plain"},
        "figures": figures,
        "saved": [] if after is None else saved_by_place(graphs),
        "whole": ms[0],
        "prices": price_words(cost_model),
        "graphs": [graph.content for graph in graphs],
        "operators": operators_table(graphs),
    }


def page_graphs(
    before: Mapping[str, Graph],
    after: Mapping[str, Graph] | None,
    cost_model: CostModel,
    priced: tuple[Graph, Graph] | None = None,
) -> list[PageGraph]:
    """Pair the graphs of two models by their titles; a body that only the first has stands alone.

    Rewriting makes no bodies: of two models that are not related, those that only the second has are left out. `priced`
    are the graphs that give the prices of the main graph before and after.
    """
    return [
        page_graph(title, graph, (after or {}).get(title), cost_model, priced if title == MAIN else None)
        for title, graph in before.items()
    ]


def saved_by_place(graphs: Sequence[PageGraph]) -> list[dict[str, Any]]:
    """List what took the place of what, with the milliseconds that this saved by their prices, the most first.

    Places that look alike are one entry, as the layers of a transformer do.
    """
    alike: dict[str, list[tuple[int, Any, float]]] = defaultdict(list)
    for number, graph in enumerate(graphs):
        one, other = graph.layout.before, graph.layout.after or ()
        for stretch in graph.layout.stretches:
            was, became = ([side[i] for i in part] for side, part in ((one, stretch.before), (other, stretch.after)))
            title = " → ".join("; ".join(block.title for block in part) or "nothing" for part in (was, became))
            saved = sum(block.ms or 0.0 for block in was) - sum(block.ms or 0.0 for block in became)
            alike[title].append((number, stretch, saved))
    entries: list[dict[str, Any]] = [
        {
            "title": title,
            "saved": round(sum(saved for _, _, saved in found), 6),
            "places": [{"graph": g, "before": list(s.before), "after": list(s.after)} for g, s, _ in found],
        }
        for title, found in alike.items()
    ]
    return sorted(entries, key=lambda entry: -entry["saved"])[:_MOST_LISTED]
