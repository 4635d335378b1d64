"""Compare agents and baselines that order the passes of one compiler, on graphs of families that no agent has seen.

    python pipelines/study.py pass_ordering.study backend=xla   conf/study/pass_ordering.yaml
    python pipelines/study.py pass_ordering.study --multirun backend=xla workers=2 worker=0,1 hydra/launcher=joblib

A cell that is done is kept until all are, so that a study which was killed goes on where it was. What has been asked of
the compiler is kept as well, for all cells. Publishes data/results/pass_ordering/BACKEND.json with what everybody has
found on each graph; metrics.py makes the figures of these.
"""

from collections.abc import Iterator
from operator import methodcaller
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from tracking.run import Run, numbers

from rlflow.errors import InputError
from rlflow.passes.agents.pass_agent_config import config_of
from rlflow.passes.environment.pass_ordering_env import PassOrderingConfig
from rlflow.passes.environment.rewards import TimingConfig
from rlflow.passes.worker import WorkerBackend
from rlflow.settings import read_config
from studies.pass_ordering.cells import (
    AgentCell,
    BaselineCell,
    Cell,
    ChanceCell,
    Compiler,
    Effort,
    TimedCell,
)
from studies.pass_ordering.documents import Graphs
from studies.pass_ordering.rows import Row
from studies.pass_ordering.split import Split, split_of
from studies.program import OpenStudy, OptionOf, open_study, options_of, study_program
from studies.published import publish
from studies.runner import kept_rows

RESULTS = Path("data/results/pass_ordering")

CellKey = tuple[str, int | str]
"""An entrant and its seed; of baselines, the family of the graphs."""
Found = dict[str, dict[int, Row]]
"""Entrant -> seed -> row."""


@study_program("pass_ordering")
def main(config: DictConfig) -> None:
    settings, split = settings_and_split(config)
    backend = settings["backend"]
    with open_study(f"pass ordering {backend}", settings) as study:
        compiler = Compiler(backend, study.folder / "transitions.sqlite")
        cells = dict(_cells(settings, compiler, split, options_of("pass_ordering")))
        found = by_entrant(study.rows(cells, methodcaller("run"), _logged, dict[str, Row]))
        study.check_complete()
        if study.publishes:
            times = _times(study, compiler, split, found)
            publish_found(study.run, RESULTS / f"{backend}.json", __file__, backend, split, found, times)


def settings_and_split(config: DictConfig) -> tuple[Any, Split]:
    """The settings with those of the backend among them, and the graphs to train on and to hold out.

    `InputError` for a backend that has none.
    """
    backend = config.backend
    if backend not in config.of_backend:
        raise InputError(f"the study knows no backend {backend!r}: choose one of {', '.join(config.of_backend)}")
    settings: Any = OmegaConf.to_container(config, resolve=True)
    settings |= settings.pop("of_backend")[backend]
    with WorkerBackend(backend) as reached:
        split = split_of(
            reached.sources(),
            settings["held_out"],
            training_graphs=settings["training_graphs"],
            held_out_graphs=settings["held_out_graphs"],
        )
    return settings, split


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


def _logged(run: Run, key: CellKey, rows: dict[str, Row]) -> str:
    """Log the row of an agent by one seed, and name all entrants of a cell."""
    entrant, seed = key
    if isinstance(seed, int):
        row = rows[entrant]
        left = sum(outcome.operations for outcome in row.outcomes.values())
        run.log(seed, numbers({entrant: {"training_s": row.training_s, "operations": left}}))
    return ", ".join(rows)


def by_entrant(kept: dict[CellKey, dict[str, Row]]) -> Found:
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


def _times(study: OpenStudy, compiler: Compiler, split: Split, found: Found) -> dict[str, dict[str, float]]:
    """Milliseconds by graph and entrant, one graph after another, since a second one would disturb them."""
    settings, longest_s = study.settings, study.settings["longest_s"]
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
    rows = kept_rows(cells, TimedCell.run, lambda _: longest_s, 1, study.folder)
    return {source: times_ms for (_, source), times_ms in study.gathered(cells, rows, lambda *_: "").items()}


def publish_found(
    run: Run,
    path: Path,
    program: str,
    backend: str,
    split: Split,
    found: Found,
    times: dict[str, dict[str, float]],
    **more: Any,
) -> None:
    """Write what everybody has found by a program, as a file of results and an artifact of the run."""
    graphs = {"backend": backend, "training": split.training, "held_out": split.held_out}
    publish(path, Graphs, {**graphs, "entrants": found, "times_ms": times, **more}, program)
    run.artifact(path)
