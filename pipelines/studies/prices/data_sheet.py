"""The figures and the data sheet of the measured graphs.

document = figures(regions, graphs, rows)       for data/results/prices/metrics.json
data_sheet(document)                            the same for people, as Markdown
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from experiment.formatting import rendered

from rlflow.cost.region_record import Faster, GraphRecord, RegionRecord
from studies.prices.variants import WALK

_QUANTILES = (10, 50, 90, 99)
_SLOWER = 0.98

Document = dict[str, Any]


def figures(
    regions: Sequence[RegionRecord], graphs: Sequence[GraphRecord], rows: Iterable[Mapping[str, Any]]
) -> Document:
    """Return what can be told: how many there are of each kind, how long they take, how noisy that is."""
    operators = Counter(op for record in regions for op in {record.graph.nodes[i].op for i in record.graph.order})
    ms = np.array([time.ms for graph in graphs for time in graph.regions.values()])
    noise = [100 * graph.sigma_ms / graph.ms for graph in graphs]
    rows = list(rows)
    return {
        "regions": len(regions),
        "graphs": len(graphs),
        "times": len(ms),
        "processors": dict(sorted(Counter(graph.processor for graph in graphs).items())),
        "families": {
            family: {
                "regions": sum(record.family == family for record in regions),
                "graphs": sum(graph.family == family for graph in graphs),
            }
            for family in sorted({graph.family for graph in graphs})
        },
        "operators": dict(sorted(operators.items(), key=lambda item: (-item[1], item[0]))),
        "ms_quantiles": {str(q): float(np.percentile(ms, q)) for q in _QUANTILES},
        "sigma_percent_median": float(np.median(noise)),
        "sigma_percent_p90": float(np.percentile(noise, 90)),
        "differs_percent": _differs_percent(rows),
        "claims": _claims(graphs),
        "left_out": dict(sum((Counter(row["left_out"]) for row in rows), Counter[str]())),
    }


def _differs_percent(rows: Sequence[Mapping[str, Any]]) -> float:
    """Return the share of the time in kernels that compute nodes of several regions."""
    whole_ms = sum(graph["ms"] for row in rows for graph in row["graphs"])
    return 100 * sum(row["shared_ms"] for row in rows) / whole_ms if whole_ms else 0.0


def _claims(graphs: Iterable[GraphRecord]) -> dict[str, Any]:
    """Return what came of variants that were told to be faster, by processor and by how they were found."""
    ratios: defaultdict[str, defaultdict[str, list[tuple[float, Faster]]]] = defaultdict(lambda: defaultdict(list))
    for graph in graphs:
        if graph.faster and graph.told:
            found_by = WALK if graph.variant.startswith(WALK) else graph.variant
            ratios[graph.processor][found_by].append((graph.told, graph.faster))
    return {
        processor: {found_by: _claim(found) for found_by, found in sorted(ways.items())}
        for processor, ways in sorted(ratios.items())
    }


def _claim(found: Sequence[tuple[float, Faster]]) -> dict[str, Any]:
    return {
        "claimed": len(found),
        "faster": float(np.mean([real.value > 1 for _, real in found])),
        "surely_faster": sum(real.low > 1 for _, real in found if real.low < real.high),
        "surely_slower": sum(real.high < 1 for _, real in found if real.low < real.high),
        "slower_by_2_percent": sum(real.value < _SLOWER for _, real in found),
        "told": float(np.median([told for told, _ in found])),
        "real": float(np.median([real.value for _, real in found])),
        "worst": min(real.value for _, real in found),
    }


def data_sheet(document: Mapping[str, Any]) -> str:
    """Return the sheet of a published document, in Markdown."""
    return rendered(Path(__file__).with_suffix(".md.j2"), document)
