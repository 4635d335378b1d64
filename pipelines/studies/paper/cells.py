"""Run the cells of one part of the papers' evaluations, and publish what came of them.

    python pipelines/study.py paper.cells part=agents                                          conf/study/paper.yaml
    python pipelines/study.py paper.cells --multirun part=agents workers=2 worker=0,1 hydra/launcher=joblib
    python pipelines/study.py paper.cells -cn paper_full part=agents                           the papers' size

A cell that is done is kept until all are, so that a part which was killed goes on where it was. Workers play some of
the cells each and leave the rows; a run with one worker plays what is missing, and publishes the figures
in data/results/paper/PART.json. What agents have found lies in data/paper/PART, for the part `latency`.
"""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from experiment.results import write_results
from omegaconf import DictConfig, OmegaConf
from tracking.run import Run, numbers
from tracking.share import Share

from rlflow.atomic_file import written_whole
from rlflow.cli.progress import progress_bar
from rlflow.errors import InputError
from rlflow.method import OnProgress
from studies.paper.documents import Paper
from studies.paper.parts import PARTS, CellKey, Study
from studies.paper.rows import Cell, Key, Row, rows_of, run_cell, summary
from studies.program import checkpoint_of, options_of, study_program, study_run
from studies.runner import check_complete, gathered, kept_rows

RESULTS = Path("data/results/paper")
FOUND = Path("data/paper")
RUNNING = {"worker", "workers", "processes", "longest_s"}  # settings that no row depends on
TIMED = ("latency", "frameworks")  # cells of these run alone on the machine


@study_program("paper")
def main(config: DictConfig) -> None:
    settings: Any = OmegaConf.to_container(config, resolve=True)
    part, share = settings["part"], Share(settings["worker"], settings["workers"])
    if part not in PARTS:
        raise InputError(f"there is no part {part!r}: choose one of {', '.join(PARTS)}")
    study = {name: settings[name] for name in settings.keys() - PARTS.keys() - RUNNING} | {part: settings[part]}
    folder = checkpoint_of(f"paper_{part}", study)
    made = Study(settings, settings[part]["cost"], options_of("paper"), folder, FOUND / "agents")
    todo = list(PARTS[part](made, settings[part]))
    mine = dict(todo[number] for number in share.of(len(todo)))

    with study_run(f"paper {part}", study) as run, progress_bar(f"paper, {part}") as on_progress:
        kept = _kept(mine, folder, settings, run, on_progress)
        if share.workers == 1 and kept:
            _publish(part, {(key[0], name, key[2]): row for key, rows in kept.items() for name, row in rows.items()})
            run.artifact(RESULTS / f"{part}.json")
    check_complete(mine, kept)
    if share.workers == 1:
        shutil.rmtree(folder)


def _kept(
    cells: Mapping[CellKey, Cell], folder: Path, settings: Any, run: Run, on_progress: OnProgress
) -> dict[CellKey, dict[str, Row]]:
    """The rows of all cells that have any, by variant, in the order of the cells."""

    def on_row(key: CellKey, rows: dict[str, Row]) -> str:
        graph, _, seed = key
        run.log(seed, numbers({graph: {name: dict(one.figures) for name, one in rows.items()}}))
        return ", ".join(rows)

    processes = 1 if settings["part"] in TIMED else settings["processes"]
    kept = kept_rows(cells, run_cell, lambda _: settings["longest_s"], processes, folder)
    return gathered(cells, ((key, rows_of(row)) for key, row in kept), on_row, on_progress)


def _publish(part: str, found: Mapping[Key, Row]) -> None:
    """Write the figures, and the trajectories that the models are made from."""
    for folder in (RESULTS, FOUND / part):
        folder.mkdir(parents=True, exist_ok=True)
    write_results(RESULTS / f"{part}.json", Paper, summary(found))
    for (graph, variant, seed), row in found.items():
        if row.trajectory is not None:
            place = FOUND / part / graph / variant / f"{seed}.json"
            place.parent.mkdir(parents=True, exist_ok=True)
            with written_whole(place) as draft:
                draft.write_text(row.trajectory)
