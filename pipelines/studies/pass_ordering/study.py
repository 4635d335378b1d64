"""Compare agents and baselines that order the passes of one compiler, on graphs of families that no agent has seen.

    python pipelines/study.py pass_ordering.study backend=xla   conf/study/pass_ordering.yaml
    python pipelines/study.py pass_ordering.study --multirun backend=xla workers=2 worker=0,1 hydra/launcher=joblib

A cell that is done is kept until all are, so that a study which was killed goes on where it was. What has been asked of
the compiler is kept as well, for all cells. Publishes data/results/pass_ordering/BACKEND.json with what everybody has
found on each graph; metrics.py makes the figures of these.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from experiment.results import write_results
from omegaconf import DictConfig, OmegaConf
from tracking.run import Run, numbers
from tracking.share import Share

from rlflow.cli.progress import progress_bar
from rlflow.errors import InputError
from rlflow.method import OnProgress
from rlflow.passes.agents.pass_agent_config import config_of
from rlflow.passes.environment.pass_ordering_env import PassOrderingConfig
from rlflow.passes.environment.rewards import TimingConfig
from rlflow.passes.worker import WorkerBackend
from rlflow.world_model.settings import read_config
from studies.pass_ordering.cells import (
    AgentCell,
    BaselineCell,
    Cell,
    ChanceCell,
    Compiler,
    Effort,
    TimedCell,
    run_cell,
    run_timed,
)
from studies.pass_ordering.documents import Graphs
from studies.pass_ordering.rows import Row
from studies.pass_ordering.split import Split, split_of
from studies.program import OptionOf, checkpoint_of, options_of, study_program, study_run
from studies.runner import check_complete, gathered, kept_rows

RESULTS = Path("data/results/pass_ordering")
RUNNING = {"worker", "workers", "processes", "longest_s"}  # settings that no row depends on

CellKey = tuple[str, int | str]
"""An entrant and its seed; of baselines, the family of the graphs."""
Found = dict[str, dict[int, Row]]
"""Entrant -> seed -> row."""


@study_program("pass_ordering")
def main(config: DictConfig) -> None:
    backend = config.backend
    if backend not in config.of_backend:
        raise InputError(f"the study knows no backend {backend!r}: choose one of {', '.join(config.of_backend)}")
    settings: Any = OmegaConf.to_container(config, resolve=True)
    share = Share(settings["worker"], settings["workers"])
    settings |= settings.pop("of_backend")[backend]
    lasting = {name: settings[name] for name in settings.keys() - RUNNING}
    folder = checkpoint_of(f"pass_ordering_{backend}", lasting)
    compiler = Compiler(backend, folder / "transitions.sqlite")
    with WorkerBackend(backend) as reached:
        split = split_of(
            reached.sources(),
            settings["held_out"],
            training_graphs=settings["training_graphs"],
            held_out_graphs=settings["held_out_graphs"],
        )
    todo = list(_cells(settings, compiler, split, options_of("pass_ordering")))
    mine = dict(todo[number] for number in share.of(len(todo)))

    with study_run(f"pass ordering {backend}", lasting) as run, progress_bar(f"passes of {backend}") as on_progress:
        kept = _kept(mine, folder, settings, run, on_progress)
        if share.workers == 1 and len(kept) == len(mine):
            found = _by_entrant(kept)
            _publish(backend, split, found, _times(settings, compiler, split, found, folder))
            run.artifact(RESULTS / f"{backend}.json")
    check_complete(mine, kept)
    if share.workers == 1:
        shutil.rmtree(folder)


def _cells(settings: Any, compiler: Compiler, split: Split, option_of: OptionOf) -> Iterator[tuple[CellKey, Cell]]:
    """Baselines by family, chance, and every agent; all agents of one seed before those of the next."""
    effort = read_config(Effort, settings["effort"])
    episode = read_config(PassOrderingConfig, settings["episode"])
    for family, sources in split.held_out.items():
        yield ("baselines", family), BaselineCell(compiler, sources, effort)
    for seed in settings["seeds"]:
        yield ("random", seed), ChanceCell(compiler, split.all_held_out, episode, effort, seed)
        for agent in settings["agents"]:
            config = config_of(option_of("pass_agent", agent))
            yield (
                (agent, seed),
                AgentCell(compiler, agent, split.training, split.all_held_out, config, episode, effort, seed),
            )


def _kept(
    cells: dict[CellKey, Cell], folder: Path, settings: Any, run: Run, on_progress: OnProgress
) -> dict[CellKey, dict[str, Row]]:
    """The rows of all cells that have any, by entrant."""

    def on_row(key: CellKey, rows: dict[str, Row]) -> str:
        entrant, seed = key
        if isinstance(seed, int):
            row = rows[entrant]
            left = {source: outcome.operations for source, outcome in row.outcomes.items()}
            run.log(seed, numbers({entrant: {"training_s": row.training_s, "operations": sum(left.values())}}))
        return ", ".join(rows)

    written = kept_rows(cells, run_cell, lambda _: settings["longest_s"], settings["processes"], folder)
    kept = ((key, {entrant: Row.from_json(row) for entrant, row in rows.items()}) for key, rows in written)
    return gathered(cells, kept, on_row, on_progress)


def _by_entrant(kept: dict[CellKey, dict[str, Row]]) -> Found:
    """The rows by entrant and seed; those of a baseline are put together over families, as seed 0."""
    found: Found = {}
    for (_, seed), rows in kept.items():
        for entrant, row in rows.items():
            place = found.setdefault(entrant, {})
            if isinstance(seed, int):
                place[seed] = row
            else:
                place[0] = Row({**(place[0].outcomes if place else {}), **row.outcomes})
    return {entrant: dict(sorted(rows.items())) for entrant, rows in found.items()}


def _times(settings: Any, compiler: Compiler, split: Split, found: Found, folder: Path) -> dict[str, dict[str, float]]:
    """Milliseconds by graph and entrant, one graph after another, since a second one would disturb them."""
    timing = read_config(TimingConfig, settings["timing"])
    timed = [*settings["timed"], *settings["agents"]]
    cells = {
        ("times", source): TimedCell(
            compiler,
            source,
            {name: next(iter(found[name].values())).outcomes[source].passes for name in timed},
            timing,
        )
        for source in split.all_held_out
    }
    with progress_bar("run times") as on_progress:
        times = {}
        for (_, source), written in kept_rows(cells, run_timed, lambda _: settings["longest_s"], 1, folder):
            times[source] = {entrant: one["ms"] for entrant, one in written.items()}
            on_progress(len(times) / len(cells), source)
    return times


def _publish(backend: str, split: Split, found: Found, times: dict[str, dict[str, float]]) -> None:
    document = {
        "backend": backend,
        "training": list(split.training),
        "held_out": {family: list(sources) for family, sources in split.held_out.items()},
        "entrants": {
            entrant: {str(seed): row.to_json() for seed, row in rows.items()} for entrant, rows in found.items()
        },
        "times_ms": times,
    }
    RESULTS.mkdir(parents=True, exist_ok=True)
    write_results(RESULTS / f"{backend}.json", Graphs, document)
