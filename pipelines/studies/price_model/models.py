"""The price model and its baselines, judged on families of models and on processors that they have not learned from.

    left_out(gathered, learned)["models"]["predicted"]["AMD EPYC"]["all"]["graphs"]["median"]
    left_out(gathered, learned)["unseen"]["predicted"]["AMD EPYC"]["graphs"]["median"]

Beside the prediction stand three ways to have a price without a clock: the roofline that ships as the cost model
"analytic", the fitted physics without trees, and the time of the most similar measured region.

A processor that is left out is judged by the prices of the one that stands in for it.

Invariant: no region that occurs in a graph of the family is among those that are learned from, and no time of the
processor that is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from rlflow.cost.analytic import AnalyticConfig
from rlflow.cost.predicted.features import Features
from rlflow.cost.predicted.price_model import Description, Place, PriceModel, log_ratio, physics_ms, row
from rlflow.cost.predicted.training import Example, Learned, examples_of
from rlflow.cost.region_record import GraphRecord
from rlflow.method import OnProgress
from rlflow.runtime.hardware import processor_of
from studies.price_model.accuracy import Errors, RegionPrice, errors, figures, pooled

Where = tuple[str, str, float]
"""A region by its signature, on a processor, in a model that touches so many megabytes."""


@dataclass(frozen=True)
class Gathered:
    """Everything measured: the features of each processor's regions by signature, and the graphs that they occur in.

    `stand_ins` names, for each processor, the one by whose prices it is judged where it is left out itself.
    """

    regions: Mapping[str, Mapping[str, Features]]
    graphs: Sequence[GraphRecord]
    stand_ins: Mapping[str, str] = field(default_factory=dict)


def left_out(
    gathered: Gathered, learned: Callable[[Sequence[Example]], Learned], on_progress: OnProgress | None = None
) -> dict[str, Any]:
    """Return the accuracy of every model by processor, over all families and by family, as the schema has it; and where
    the processor is left out.
    """
    return {
        "regions": len(set().union(*gathered.regions.values())),
        "graphs": len(gathered.graphs),
        "models": _families_left_out(replace(gathered, stand_ins={}), learned, on_progress),
        "stand_ins": dict(gathered.stand_ins),
        "unseen": _processors_left_out(gathered, learned),
    }


def _families_left_out(
    gathered: Gathered, learned: Callable[[Sequence[Example]], Learned], on_progress: OnProgress | None
) -> dict[str, Any]:
    families = sorted({graph.family for graph in gathered.graphs})
    found: dict[tuple[str, str], dict[str, Errors]] = {}
    for number, family in enumerate(families):
        if on_progress:
            on_progress(number / len(families), family)
        held = [graph for graph in gathered.graphs if graph.family == family]
        signatures = {signature for graph in held for signature in graph.regions}
        others = (graph for graph in gathered.graphs if graph.family != family)
        known = [e for e in examples_of(gathered.regions, others) if e.signature not in signatures]
        for (model, processor), of_family in judged(
            replace(gathered, graphs=held), learned(known).model(), known
        ).items():
            found.setdefault((model, processor), {})[family] = of_family
    models: dict[str, Any] = {}
    for (model, processor), by_family in found.items():
        models.setdefault(model, {})[processor] = {
            "all": figures(pooled(by_family.values())),
            "families": {family: figures(errors) for family, errors in by_family.items()},
        }
    return models


def _processors_left_out(gathered: Gathered, learned: Callable[[Sequence[Example]], Learned]) -> dict[str, Any]:
    """Leave out a processor whole: with one thread or several, it is the same."""
    models: dict[str, Any] = {}
    for left in sorted({processor_of(machine) for machine in gathered.stand_ins}):
        others = (graph for graph in gathered.graphs if processor_of(graph.processor) != left)
        known = list(examples_of(gathered.regions, others))
        held = replace(gathered, graphs=[g for g in gathered.graphs if processor_of(g.processor) == left])
        for (model, processor), found in judged(held, learned(known).model(), known).items():
            models.setdefault(model, {})[processor] = figures(found)
    return models


def judged(held: Gathered, model: PriceModel, known: Sequence[Example]) -> dict[tuple[str, str], Errors]:
    """Return the errors of every model on graphs that it has not learned from, by its name and the processor."""
    found: dict[tuple[str, str], Errors] = {}
    for processor in sorted({graph.processor for graph in held.graphs}):
        priced_as = held.stand_ins.get(processor, processor)
        graphs = [replace(graph, processor=priced_as) for graph in held.graphs if graph.processor == processor]
        examples = list(examples_of({priced_as: held.regions[processor]}, graphs))
        for name, prices in _predictions(model, known, examples).items():
            found[name, processor] = errors(graphs, _price(prices), _view_price(model.description))
    return found


def _price(prices: Mapping[Where, float]) -> RegionPrice:
    return lambda signature, graph: prices[signature, graph.processor, graph.working_set_mb]


def _view_price(description: Description) -> Callable[[GraphRecord], float]:
    return lambda graph: Place(description.processors[graph.processor], graph.working_set_mb).view_ms


def _predictions(
    model: PriceModel, known: Sequence[Example], held: Sequence[Example]
) -> dict[str, Mapping[Where, float]]:
    """Return the prices of some regions by every model, none of which has seen them."""
    places = [_place(model.description, e) for e in held]
    told = {
        "predicted": [model.ms([e.features], place)[0] for e, place in zip(held, places, strict=True)],
        "nearest": _nearest_ms(model.description, known, held),
        "physics": [physics_ms(e.features, place) for e, place in zip(held, places, strict=True)],
        "analytic": [_roofline_ms(e) for e in held],
    }
    keys = [(e.signature, e.processor, e.working_set_mb) for e in held]
    return {name: dict(zip(keys, ms, strict=True)) for name, ms in told.items()}


def _place(description: Description, example: Example) -> Place:
    return Place(description.processors[example.processor], example.working_set_mb)


def _nearest_ms(description: Description, known: Sequence[Example], held: Sequence[Example]) -> list[float]:
    """Return the time of the most similar region, by the factor by which physics expects another one."""
    rows = [
        np.log1p(np.stack([row(e.features, _place(description, e), description) for e in group]))
        for group in (known, held)
    ]
    scale = rows[0].std(axis=0)
    scale[scale == 0] = 1.0
    _, places = cKDTree(rows[0] / scale).query(rows[1] / scale)
    ratios = [log_ratio(e.ms, physics_ms(e.features, _place(description, e))) for e in known]
    expected = [physics_ms(e.features, _place(description, e)) for e in held]
    return [float(ms * np.exp(ratios[place])) for ms, place in zip(expected, places, strict=True)]


def _roofline_ms(example: Example) -> float:
    """Return what the cost model "analytic" says with its default settings."""
    machine = AnalyticConfig()
    times = [
        max(f.flops / machine.gflops_per_s, f.moved_bytes / machine.gbytes_per_s) / 1e6 for f in example.features.nodes
    ]
    return sum(times) + machine.launch_us / 1e3 * len(times)
