"""Run models of the zoo and exported ones with their rewritten variants, and publish what each region took in them:
what prices are learned from.

    python pipelines/study.py prices   conf/study/prices.yaml as it is
    python pipelines/study.py prices 'models=[{family: mlp, entry: mlp}]' 'full_size=[]' 'exported=[]' folder=own \
        results=own/metrics.json

Regions and graphs go to data/regions with a data sheet, beside what was measured before, of which the first round
replaces that of the same models on this processor, figures to data/results/prices/metrics.json; or elsewhere, as the
second command says. The machine should be quiet. What was measured is kept until all is.

What searches reach is what is wrongly priced. So `make prices` measures, learns, and measures what searches by the new
prices find (`round=2`), for each of its `ROUNDS`: `claims` says how much of what they promised was true.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from tracking.run import Run, numbers

from rlflow.atomic_file import written_whole
from rlflow.cost.region_record import (
    GraphRecord,
    RegionRecord,
    graph_from_json,
    read_graphs,
    read_records,
    write_records,
)
from rlflow.errors import InputError
from rlflow.runtime.hardware import fingerprint
from rlflow.runtime.profile import ProfileConfig
from studies.prices.data_sheet import data_sheet, figures
from studies.prices.documents import Prices
from studies.prices.placed_variants import MeasuringConfig, placed_variants
from studies.prices.variants import Configuration, VariantsConfig
from studies.program import open_study, study_program
from studies.published import publish

REGIONS, GRAPHS = "regions.jsonl.xz", "graphs.jsonl.xz"

Row = dict[str, Any]

log = logging.getLogger(__name__)


@study_program("prices")
def main(config: DictConfig) -> None:
    settings: Any = OmegaConf.to_container(config, resolve=True)
    machine = fingerprint(max(settings["measuring"]["threads"]))
    parts = {part: [*_configurations(settings, part)] for part in ("models", "full_size", "exported")}
    with open_study("prices", settings) as study:
        rows: dict[str, Row] = {}
        for part, configurations in parts.items():
            cells = {(c.name,): c for c in configurations}
            measured = partial(placed_variants, config=_measuring(settings, part))
            rows |= {name: row for (name,), row in study.rows(cells, measured, _logged).items()}
        if study.missing:
            return
        folder, results = Path(settings["folder"]), Path(settings["results"])
        regions, graphs = merged(folder, rows, anew=settings["round"] == 1)
        write_records(folder / REGIONS, regions)
        write_records(folder / GRAPHS, graphs)
        document = figures(regions, graphs, rows.values()) | {
            "file_bytes": sum((folder / name).stat().st_size for name in (REGIONS, GRAPHS)),
            "hardware": machine.cpu_model,
            "runtime_version": machine.runtime_version,
        }
        publish(results, Prices, document, __file__)
        with written_whole(folder / "README.md") as draft:
            draft.write_text(data_sheet(document))
        study.run.log(0, numbers(document))
        study.run.artifact(results)


def _configurations(settings: Any, part: str) -> Iterator[Configuration]:
    """Raises `InputError` for an exported model that is not there."""
    for model in settings[part]:
        if part == "exported":
            file = Path(settings["exports"], model["entry"])
            if not file.exists():
                raise InputError(f"{file} is not there: make renew NAME='exports.priced {settings['exports']}'")
            model = {**model, "entry": str(file.resolve())}
        yield Configuration(**model)


def _measuring(settings: Any, part: str) -> MeasuringConfig:
    ways = settings["variants"][part] | ({"walks": 0} if settings["round"] > 1 else {})  # walks stay the same
    return MeasuringConfig(
        VariantsConfig(**{**ways, "stops": tuple(ways["stops"]), "round": settings["round"]}),
        ProfileConfig(**settings["profile"]),
        **{**settings["measuring"], "threads": tuple(settings["measuring"]["threads"])},
        seed=settings["seed"],
    )


def _logged(run: Run, key: tuple[str], row: Row) -> str:
    return f"{len(row['graphs'])} graphs, {len(row['regions'])} regions"


def merged(folder: Path, rows: Mapping[str, Row], *, anew: bool) -> tuple[list[RegionRecord], list[GraphRecord]]:
    """Return the regions and the graphs of these rows, with what the folder has and these rows have not.

    A first round begins `anew`: what the folder has of a processor and a configuration, later rounds included, was run
    with other code or another price model.
    """
    new = [GraphRecord.from_json(graph) for row in rows.values() for graph in row["graphs"]]

    def identity(graph: GraphRecord) -> tuple[str, ...]:
        return (graph.processor, graph.configuration, *(() if anew else (graph.variant,)))

    again = set(map(identity, new))
    old = (graph for graph in _read(folder / GRAPHS, read_graphs) if identity(graph) not in again)
    graphs = [_that_ran(graph) for graph in (*old, *new)]
    used = {signature for graph in graphs for signature in graph.regions}
    regions = {region.signature: region for region in _read(folder / REGIONS, read_records)}
    for row in filter(itemgetter("graphs"), rows.values()):
        family, configuration = (row["graphs"][0][name] for name in ("family", "configuration"))
        for signature, content in row["regions"].items():
            if signature not in regions:
                regions[signature] = RegionRecord(graph_from_json(content), signature, family, configuration)
    kept = [region for signature, region in regions.items() if signature in used]
    kept.sort(key=lambda region: (region.family, region.configuration, region.signature))
    graphs.sort(key=lambda graph: (graph.processor, graph.family, graph.configuration, graph.variant))
    return kept, graphs


def _that_ran(graph: GraphRecord) -> GraphRecord:
    """Return the record without regions that no kernel computed, such as a second node that computes what another does:
    by themselves they would take their time.
    """
    return replace(graph, regions={signature: time for signature, time in graph.regions.items() if time.ms > 0})


def _read(path: Path, read: Any) -> Iterable[Any]:
    return read(path) if path.exists() else ()
