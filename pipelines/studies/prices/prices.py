"""Gather regions from the models of the zoo, time them in batches, and publish both: what the price model learns from.

    python pipelines/study.py prices   conf/study/prices.yaml as it is
    python pipelines/study.py prices measuring.regions=200 'models=[{family: conv, entry: conv}]'  a part of it

The regions go to data/regions with a data sheet, figures to data/results/prices/metrics.json. The machine should be
quiet: while it is slow, nothing is timed. What has been timed is kept until all is, so that a run that was killed, or
whose time was over, goes on where it was; what was gathered is kept as well, unless the code changes.
"""

import logging
import shutil
from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from experiment.results import write_results
from omegaconf import DictConfig, OmegaConf
from tracking.run import numbers

from rlflow.atomic_file import written_whole
from rlflow.cli.progress import progress_bar
from rlflow.cost.region_record import RegionRecord, graph_from_json, write_records
from rlflow.errors import RLFlowError
from rlflow.kept import Kept
from rlflow.runtime.hardware import HardwareFingerprint, fingerprint
from rlflow.runtime.isolation import Limits, call_isolated
from rlflow.runtime.timing.batches import BatchConfig, FragmentTiming
from studies.prices.documents import Prices
from studies.prices.region_gathering import Candidate, Configuration, Gathered, GatheringConfig, gather, merged
from studies.prices.region_grams import novel_first
from studies.prices.region_sheet import Control, data_sheet, figures
from studies.prices.region_timings import KeptTimings, MeasuringConfig, Wanted, measure
from studies.program import checkpoint_of, study_program, study_run

REGIONS = Path("data/regions")
RESULTS = Path("data/results/prices/metrics.json")
GATHERING_S = 3600.0
"""Seconds after which the gathering of a family has failed."""

log = logging.getLogger(__name__)


@study_program("prices")
def main(config: DictConfig) -> None:
    settings: Any = OmegaConf.to_container(config, resolve=True)
    folder = checkpoint_of("prices", {name: settings[name] for name in ("seed", "gathering", "models")})
    measuring = _measuring(settings)
    machine = fingerprint(measuring.batch.threads)
    kept = KeptTimings(folder.parent / f"timings-{machine.key}.jsonl", measuring.slow_pace)

    parameters = {name: settings[name] for name in ("seed", "gathering", "measuring")}
    with study_run("prices", parameters) as run:
        gathered = merged(_families(settings, folder))
        wanted = _wanted(gathered, measuring, settings["seed"])
        with progress_bar("timed") as on_progress:
            complete = measure(wanted, kept, measuring, on_progress)
        document = _publish(gathered, wanted, kept, machine)
        run.log(0, numbers(document))
        run.artifact(RESULTS)
    if not complete:
        left = len(wanted) - document["regions"] - document["refused"]
        raise RLFlowError(f"the time was over with {left} regions left: run it again, and it goes on")
    shutil.rmtree(folder)
    kept.path.unlink()


def _measuring(settings: Any) -> MeasuringConfig:
    measuring = dict(settings["measuring"])
    batch = BatchConfig(**measuring.pop("batch"), seed=settings["seed"])
    return MeasuringConfig(**measuring, batch=batch)


def _families(settings: Any, folder: Path) -> Iterable[Gathered]:
    """The regions of each family, in order, each gathered in a process of its own unless the folder has it."""
    config = GatheringConfig(**settings["gathering"], seed=settings["seed"])
    families: dict[str, list[Configuration]] = {}
    for model in settings["models"]:
        families.setdefault(model["family"], []).append(Configuration(**model))

    kept = Kept.as_json(folder, Gathered.to_json, Gathered.from_json)

    def one(family: str) -> Gathered:
        limits = Limits(longest_s=GATHERING_S)
        return kept.get_or(family, partial(call_isolated, limits, gather, families[family], config))

    with ThreadPoolExecutor(settings["processes"]) as pool, progress_bar("gathered") as on_progress:
        for number, gathered in enumerate(pool.map(one, families), start=1):
            on_progress(number / len(families), f"{number} families")
            yield gathered


def _wanted(gathered: Gathered, config: MeasuringConfig, seed: int) -> list[Wanted]:
    """The regions to be timed, in order: those of whole graphs, and of others those with something new before others;
    a drawn part of them twice.
    """
    companions: defaultdict[str, list[str]] = defaultdict(list)
    for rewrite in gathered.rewrites:
        for signature in (*rewrite.before, *rewrite.after):
            companions[signature] = companions[signature] or [*rewrite.before, *rewrite.after]
    whole = {signature for graph in gathered.graphs for signature in graph.regions}
    grams = {signature: region.grams for signature, region in gathered.regions.items()}
    ordered = sorted(novel_first(grams, companions), key=lambda signature: signature not in whole)[: config.regions]
    again = {ordered[place] for place in np.random.default_rng(seed).permutation(len(ordered))[: config.again]}
    return [Wanted(gathered.regions[signature], 1 + (signature in again)) for signature in ordered]


def _publish(
    gathered: Gathered, wanted: Sequence[Wanted], kept: KeptTimings, machine: HardwareFingerprint
) -> dict[str, Any]:
    """Write the records, the figures and the data sheet of what has been timed so far; returns the figures."""
    pace_ms = kept.pace_ms
    if pace_ms is None:
        raise RLFlowError("no region was timed, for want of time or for a slow machine: run it again, and it goes on")
    records, controls = [], []
    for region, _ in wanted:
        good = kept.good(region.signature, pace_ms)
        if good:
            records.append(_record(region, good[0], pace_ms))
            controls += [Control(good[0], other) for other in good[1:2]]
    records.sort(key=lambda record: (record.family, record.configuration, record.signature))
    timed = {record.signature for record in records}
    rewrites = [rewrite for rewrite in gathered.rewrites if timed.issuperset((*rewrite.before, *rewrite.after))]
    graphs = [graph for graph in gathered.graphs if timed.issuperset(graph.regions)]
    write_records(REGIONS / "regions.jsonl.xz", records)
    write_records(REGIONS / "rewrites.jsonl.xz", rewrites)
    write_records(REGIONS / "graphs.jsonl.xz", graphs)

    document = figures(records, rewrites, graphs, controls) | {
        "gathered": len(gathered.regions),
        "left_out": gathered.left_out,
        "refused": sum(region.signature in kept.refused for region, _ in wanted),
        "pace_ms": pace_ms,
        "seconds_per_price": float(np.mean(kept.seconds)),
        "file_bytes": sum(path.stat().st_size for path in REGIONS.glob("*.xz")),
        "hardware": machine.cpu_model,
        "runtime_version": machine.runtime_version,
        "protocol": machine.pricing_protocol,
    }
    write_results(RESULTS, Prices, document)
    with written_whole(REGIONS / "README.md") as draft:
        draft.write_text(data_sheet(document))
    return document


def _record(region: Candidate, timing: FragmentTiming, pace_ms: float) -> RegionRecord:
    """The record of a region that was timed; to the nanosecond, since a clock tells no more."""
    at_pace = timing.at_pace(pace_ms)
    return RegionRecord(
        graph_from_json(region.content),
        region.signature,
        round(at_pace.ms, 6),
        round(at_pace.sigma_ms, 6),
        round(timing.probe_ms, 6),
        region.family,
        region.configuration,
    )
