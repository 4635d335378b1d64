"""The price model and its baselines, each judged on families of models that it has not learned from.

    left_out(gathered, learned, noise, far=1.0)["models"]["predicted"]["all"]["rewrites"]["sign"]

Beside the prediction stand three ways to have a price without a clock: the roofline that ships as the cost model
"analytic", the fitted physics without trees, and the time of the most similar measured region. Two more rows tell what
measuring a little is worth: the regions of the graph that a user begins with, and those far from what was learned. What
is measured there is the truth that it is compared with, so that these rows tell the errors of the rest: beside a
measured original only what became of it is judged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from rlflow.cost.analytic import AnalyticConfig
from rlflow.cost.predicted import physics
from rlflow.cost.predicted.noise import Noise
from rlflow.cost.predicted.price_model import Description, PriceModel, log_ratio, row
from rlflow.cost.predicted.training import Example, Learned
from rlflow.cost.region_record import GraphRecord, RewriteRecord
from rlflow.method import OnProgress
from studies.price_model.accuracy import (
    Errors,
    Prices,
    errors,
    figures,
    met_in,
    occurring_in,
    pooled,
    taken,
    with_measured,
)

ORIGINAL = "original"
_SIGMAS = (0.0, 0.5, 1.0, 2.0)


@dataclass(frozen=True)
class Gathered:
    """Everything measured: regions, the rewrites and graphs that they occur in, and the price of a region of views."""

    examples: Sequence[Example]
    rewrites: Sequence[RewriteRecord]
    graphs: Sequence[GraphRecord]
    view_ms: float


def left_out(
    gathered: Gathered,
    learned: Callable[[Sequence[Example]], Learned],
    noise: Noise,
    far: float,
    on_progress: OnProgress | None = None,
) -> dict[str, Any]:
    """Return the accuracy of every model, over all families and by family, as the schema `price_model` has it."""
    ms = {e.signature: e.ms for e in gathered.examples}
    first_met = {e.signature: e.family for e in gathered.examples}
    families = sorted(set(first_met.values()))
    found: dict[str, dict[str, Errors]] = {}
    far_regions = 0
    for number, family in enumerate(families):
        if on_progress:
            on_progress(number / len(families), family)
        signatures = met_in(family, first_met, gathered.rewrites, gathered.graphs)
        held = [e for e in gathered.examples if e.signature in signatures]
        known = [e for e in gathered.examples if e.signature not in signatures]
        measured = {e.signature: ms[e.signature] for e in held}
        rewrites = [r for r in gathered.rewrites if r.family == family]
        graphs = [g for g in gathered.graphs if g.family == family]

        model = learned(known).model()
        strange = {e.signature for e in held if model.strangeness(e.features) >= far}
        far_regions += len(strange)
        prices = _predictions(model, known, held)
        prices["far_measured"] = with_measured(prices["predicted"], measured, strange)
        judged = {
            name: errors(measured, told, rewrites, graphs, gathered.view_ms, noise) for name, told in prices.items()
        }
        judged["initial_measured"] = pooled(
            _beside_the_original(
                measured, prices["predicted"], rewrites, graphs, configuration, gathered.view_ms, noise
            )
            for configuration in sorted({graph.configuration for graph in graphs})
        )
        for name, of_family in judged.items():
            found.setdefault(name, {})[family] = of_family
    return {
        "regions": len(ms),
        "rewrites": len(gathered.rewrites),
        "graphs": len(gathered.graphs),
        "far_share": far_regions / sum(len(met_in(f, first_met, gathered.rewrites, gathered.graphs)) for f in families),
        "taken_beyond_sigmas": {
            f"{sigmas:g}": taken(pooled(found["predicted"].values()).changes, sigmas) for sigmas in _SIGMAS
        },
        "models": {
            name: {
                "all": figures(pooled(by_family.values())),
                "families": {family: figures(judged) for family, judged in by_family.items()},
            }
            for name, by_family in found.items()
        },
    }


def _beside_the_original(
    measured: Prices,
    predicted: Prices,
    rewrites: Sequence[RewriteRecord],
    graphs: Sequence[GraphRecord],
    configuration: str,
    view_ms: float,
    noise: Noise,
) -> Errors:
    """Judge what became of one configuration of a model by predictions, the regions of its own original measured."""
    own_rewrites = [rewrite for rewrite in rewrites if rewrite.configuration == configuration]
    own_graphs = [graph for graph in graphs if graph.configuration == configuration]
    rewritten = [graph for graph in own_graphs if graph.variant != ORIGINAL]
    initial = occurring_in([], (graph for graph in own_graphs if graph.variant == ORIGINAL))
    occurring = occurring_in(own_rewrites, own_graphs)
    truth = {signature: ms for signature, ms in measured.items() if signature in occurring}
    return errors(truth, with_measured(predicted, measured, initial), own_rewrites, rewritten, view_ms, noise)


def _predictions(model: PriceModel, known: Sequence[Example], held: Sequence[Example]) -> dict[str, Prices]:
    """Return the prices of some regions by every model, none of which has seen them."""
    coefficients = model.description.physics
    physics_ms = [physics.milliseconds(coefficients, physics.terms(e.features)) for e in held]
    told = {
        "predicted": model.ms([e.features for e in held]),
        "nearest": _nearest_ms(model.description, known, held),
        "physics": physics_ms,
        "analytic": [_roofline_ms(e) for e in held],
    }
    return {name: dict(zip((e.signature for e in held), ms, strict=True)) for name, ms in told.items()}


def _nearest_ms(description: Description, known: Sequence[Example], held: Sequence[Example]) -> list[float]:
    """Return the time of the most similar region, by the factor by which physics expects another one."""
    rows = [np.log1p(np.stack([row(e.features, description) for e in group])) for group in (known, held)]
    scale = rows[0].std(axis=0)
    scale[scale == 0] = 1.0
    _, places = cKDTree(rows[0] / scale).query(rows[1] / scale)
    ratios = [log_ratio(e.ms, _physics_ms(description, e)) for e in known]
    return [float(_physics_ms(description, e) * np.exp(ratios[place])) for e, place in zip(held, places, strict=True)]


def _physics_ms(description: Description, example: Example) -> float:
    return physics.milliseconds(description.physics, physics.terms(example.features))


def _roofline_ms(example: Example) -> float:
    """Return what the cost model "analytic" says with its default settings."""
    machine = AnalyticConfig()
    times = [
        max(f.flops / machine.gflops_per_s, f.moved_bytes / machine.gbytes_per_s) / 1e6 for f in example.features.nodes
    ]
    return sum(times) + machine.launch_us / 1e3 * len(times)
