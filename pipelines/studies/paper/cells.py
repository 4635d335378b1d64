"""Run the cells of one part of the papers' evaluations, and publish what came of them.

    python pipelines/study.py paper.cells part=graphs                                          conf/study/paper.yaml
    python pipelines/study.py paper.cells --multirun part=graphs workers=2 worker=0,1 hydra/launcher=joblib
    python pipelines/study.py paper.cells -cn paper_full part=graphs                           the papers' size

A cell that is done is kept until all are, so that a part which was killed goes on where it was. Workers play some of
the cells each and leave the rows; a run with one worker plays what is missing, and publishes the figures
in data/results/paper/PART.json. The trajectories of what was found lie in data/paper/PART. What the stages of the
experiment find of the paper's own agents, `by_stages` publishes.
"""

from collections.abc import Mapping
from operator import methodcaller
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from tracking.run import Run, numbers

from rlflow.atomic_file import written_whole
from rlflow.errors import InputError
from studies.paper.documents import Paper
from studies.paper.parts import PARTS, CellKey, Study
from studies.paper.rows import Key, Row, summary
from studies.program import open_study, options_of, study_program
from studies.published import publish

RESULTS = Path("data/results/paper")
FOUND = Path("data/paper")
TIMED = ("frameworks",)  # cells of these run alone on the machine


@study_program("paper")
def main(config: DictConfig) -> None:
    everything: Any = OmegaConf.to_container(config, resolve=True)
    part = everything["part"]
    if part not in PARTS:
        raise InputError(f"there is no part {part!r}: choose one of {', '.join(PARTS)}")
    settings = {name: everything[name] for name in everything.keys() - PARTS.keys()} | {part: everything[part]}
    settings |= {"processes": 1} if part in TIMED else {}
    with open_study(f"paper {part}", settings) as study:
        materials = Study(everything, settings[part]["cost"], options_of("paper"), study.folder)
        cells = dict(PARTS[part](materials, settings[part]))
        found = study.rows(cells, methodcaller("run"), _logged, dict[str, Row])
        if study.publishes and found:
            _publish(part, {(key[0], name, key[2]): row for key, rows in found.items() for name, row in rows.items()})
            study.run.artifact(RESULTS / f"{part}.json")


def _logged(run: Run, key: CellKey, rows: Mapping[str, Row]) -> str:
    """Log the rows of a cell by their variant, and name these."""
    graph, _, seed = key
    run.log(seed, numbers({graph: {name: dict(one.figures) for name, one in rows.items()}}))
    return ", ".join(rows)


def _publish(part: str, found: Mapping[Key, Row]) -> None:
    """Write the figures, and the trajectories of what was found."""
    (FOUND / part).mkdir(parents=True, exist_ok=True)
    publish(RESULTS / f"{part}.json", Paper, summary(found), __file__)
    for (graph, variant, seed), row in found.items():
        if row.trajectory is not None:
            place = FOUND / part / graph / variant / f"{seed}.json"
            with written_whole(place) as draft:
                draft.write_text(row.trajectory)
