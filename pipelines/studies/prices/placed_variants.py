"""The variants of one model, each run as a whole, with the time that each of its regions takes in it.

    measured = placed_variants(Configuration("bert", "bert", {"layers": 2}), config)
    measured.regions, measured.graphs           # what was met, and what it took where

Invariant: nothing is kept of a graph that ran while the machine was slow.
"""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from statistics import fmean
from typing import Any

from rlflow.cost.fragment import describe, extract
from rlflow.cost.in_place import Placed, profiled
from rlflow.cost.models import HERE
from rlflow.cost.predicted.cost import PredictedConfig, PredictedCost
from rlflow.cost.predicted.price_model import load
from rlflow.cost.region_record import Faster, GraphRecord, RegionTime, graph_to_json
from rlflow.cost.regions import VIEWS, as_run, partition
from rlflow.errors import RLFlowError
from rlflow.ir.graph import Graph
from rlflow.onnx_io import to_onnx
from rlflow.runtime.hardware import machine_name
from rlflow.runtime.profile import ProfileConfig
from rlflow.runtime.timing.latency import compare_latency, countdown
from rlflow.runtime.timing.pace import pace_ms
from rlflow.runtime.timing.statistics import ratio
from studies.prices.variants import CLAIMED, Configuration, VariantsConfig, variants

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class MeasuringConfig:
    """The ways in which graphs are made and run.

    Each graph runs with sessions of so many `threads`, one number after the other. A machine is slow while its probe
    takes `slow_pace` times as long as at best. Then a graph is run again, after a wait, up to `attempts` times. If the
    price model predicts it to be faster by a hundredth, it runs beside the original as well, in up to `rounds` rounds,
    as many as fit into `rounds_s`.
    """

    variants: VariantsConfig
    profile: ProfileConfig
    threads: tuple[int, ...] = (1,)
    slow_pace: float = 1.1
    attempts: int = 5
    wait_s: float = 3.0
    rounds: int = 8
    rounds_s: float = 10.0
    seed: int = 0


@dataclass
class PlacedVariants:
    """The regions by signature, each as a graph in JSON, and the graphs that consist of them.

    `left_out` counts, by reason, graphs that were not run. `shared_ms` are those of kernels that computed nodes of
    several regions.
    """

    regions: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    graphs: list[Mapping[str, Any]] = field(default_factory=list)
    left_out: dict[str, int] = field(default_factory=dict)
    shared_ms: float = 0.0


def placed_variants(configuration: Configuration, config: MeasuringConfig) -> dict[str, Any]:
    """Run the variants of a model. A graph that cannot be written or run is left out, and counted by the reason."""
    found = PlacedVariants()
    cost_model = PredictedCost(load(), PredictedConfig(HERE))
    best_ms = {threads: min(pace_ms(threads) for _ in range(config.attempts)) for threads in config.threads}
    original = configuration.graph()
    for name, graph in variants(original, config.variants, config.seed):
        told = cost_model.runtime_ms(original) / cost_model.runtime_ms(graph)
        for threads in config.threads:
            try:
                placed = _placed_while_quiet(graph, config, threads, best_ms[threads])
                faster = _faster(original, graph, config, threads) if told >= CLAIMED else None
            except RLFlowError as error:
                reason = str(error).split(":")[0][:100]
                found.left_out[reason] = found.left_out.get(reason, 0) + 1
                continue
            found.shared_ms += placed.shared_us / 1e3
            record = _recorded(found.regions, graph, placed, name, configuration, threads)
            found.graphs.append(replace(record, faster=faster, told=round(told, 4)).to_json())
    return asdict(found)


def _placed_while_quiet(graph: Graph, config: MeasuringConfig, threads: int, best_ms: float) -> Placed:
    for _ in range(config.attempts):
        profile = replace(config.profile, threads=threads)
        placed = profiled(graph, profile, seed=config.seed).placed(graph, partition(graph))
        if pace_ms(threads) <= config.slow_pace * best_ms:
            return placed
        time.sleep(config.wait_s)
    raise RLFlowError("the machine was slow")


def _faster(original: Graph, graph: Graph, config: MeasuringConfig, threads: int) -> Faster:
    """Return how many times as fast as the original a graph is, by rounds that alternate."""
    models = {"original": to_onnx(original), "variant": to_onnx(graph)}
    times = compare_latency(
        models,
        setting="deployed",
        rounds=config.rounds,
        threads=threads,
        seed=config.seed,
        left_s=countdown(config.rounds_s),
    )
    found = ratio(times["original"], times["variant"])
    return Faster(round(found.value, 4), round(found.ci95_low, 4), round(found.ci95_high, 4))


def _recorded(
    known: dict[str, Mapping[str, Any]],
    graph: Graph,
    placed: Placed,
    variant: str,
    configuration: Configuration,
    threads: int,
) -> GraphRecord:
    """Return the record of a graph, and add its regions to the `known` ones, but those that no text can hold: their
    time is taken off the graph's.
    """
    working_set_mb = graph.header.working_set_mb
    assert working_set_mb is not None, "a graph that was imported has one"
    times: defaultdict[str, list[float]] = defaultdict(list)
    views, verbatim_us = 0, 0.0
    for each, told in placed.regions.items():
        region = as_run(graph, each)
        if any(graph.nodes[i].is_opaque for i in region):
            verbatim_us += told.us
            continue
        if all(graph.nodes[i].op in VIEWS for i in region):
            views += 1
            continue
        fragment = describe(graph, region)
        times[fragment.signature].append(told.us)
        if fragment.signature not in known:
            known[fragment.signature] = graph_to_json(extract(graph, fragment))
    return GraphRecord(
        variant,
        configuration.family,
        configuration.name,
        machine_name(threads),
        working_set_mb,
        {signature: RegionTime(len(us), round(fmean(us) / 1e3, 5)) for signature, us in times.items()},
        round((placed.model_us - verbatim_us) / 1e3, 5),
        round(placed.sigma_us / 1e3, 5),
        round(placed.reorders_us / 1e3, 5),
        views,
    )
