"""Learn a core set of pass sequences on some families, and run it once on the others: no search, 45 passes at most.

    python pipelines/study.py pass_ordering.one_shot backend=onnx   `core_set` of conf/study/pass_ordering.yaml

The families are those of the study of agents (study.py), and so is what is known of the graphs. Publishes
data/results/pass_ordering/one_shot/BACKEND.json, and the core set as the one that comes with RLFlow.
"""

import json
from collections.abc import Sequence
from contextlib import closing
from operator import methodcaller
from pathlib import Path

import psutil
from omegaconf import DictConfig
from tracking.run import Run

from rlflow.atomic_file import written_whole
from rlflow.passes import core_set
from rlflow.passes.core_set import CoreSet
from rlflow.passes.transitions import Transitions
from rlflow.passes.worker import WorkerBackend
from rlflow.settings import read_config
from studies.pass_ordering.cells import Cell, Compiler, CoreSetCell, CoreSetConfig, Effort
from studies.pass_ordering.rows import Row
from studies.pass_ordering.study import RESULTS, CellKey, by_entrant, publish_found, settings_and_split
from studies.program import open_study, study_program

SHIPPED = Path("src/rlflow/passes/core_sets")
"""Core sets that come with RLFlow, in the tree that the program runs in."""


@study_program("pass_ordering")
def main(config: DictConfig) -> None:
    settings, split = settings_and_split(config)
    backend, effort = settings["backend"], read_config(Effort, settings["effort"])
    how = read_config(CoreSetConfig, settings["core_set"][backend])
    with open_study(f"pass ordering one shot {backend}", settings) as study:
        compiler = Compiler(backend, study.folder / "transitions.sqlite")
        cells: dict[CellKey, Cell] = {
            ("core_set", 0): CoreSetCell(compiler, split.training, split.all_held_out, how, effort)
        }
        found = by_entrant(study.rows(cells, methodcaller("run"), _logged, dict[str, Row]))
        study.check_complete()
        if study.publishes:
            core = found["core_set"][0].core_set
            spent_s = compiler_s(backend, split.all_held_out, core)
            place = RESULTS / f"one_shot/{backend}.json"
            publish_found(study.run, place, __file__, backend, split, found, {}, compiler_s=spent_s)
            with written_whole(SHIPPED / f"{backend}.json") as draft:
                draft.write_text(json.dumps(core, indent=1) + "\n")


def compiler_s(backend: str, sources: Sequence[str], core: CoreSet) -> dict[str, float]:
    """Seconds of a processor that the compiler takes for the core set on each program, when no answer is known.

    Its libraries are loaded by then: the first program is run twice, and the second time counts.
    """
    spent_s = dict[str, float]()
    with WorkerBackend(backend) as reached:
        for source in (sources[0], *sources):
            with closing(Transitions(reached)) as transitions:
                start = transitions.start(source)
                before_s = _processor_s(reached)
                core_set.run(transitions, start, core)
                spent_s[source] = _processor_s(reached) - before_s
    return spent_s


def _processor_s(reached: WorkerBackend) -> float:
    """Seconds of a processor that the compiler's process has taken so far."""
    taken = psutil.Process(reached.process_id).cpu_times()
    return taken.user + taken.system


def _logged(_: Run, __: CellKey, rows: dict[str, Row]) -> str:
    left = {name: sum(outcome.operations for outcome in row.outcomes.values()) for name, row in rows.items()}
    return ", ".join(f"{name}: {operations} operations left" for name, operations in left.items())
