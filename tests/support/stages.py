"""The settings of a stage of the small project, and work on its graphs that another process can be given."""

import os
import signal
import time
from collections.abc import Callable
from multiprocessing import current_process
from pathlib import Path

from omegaconf import OmegaConf
from tracking.run import open_run
from tracking.stage import Stage
from tracking.store import open_store

from rlflow.cost.base import CostModel
from rlflow.errors import RLFlowError

CONFIG = OmegaConf.create(
    {
        "seed": 7,
        "temperature": 1.0,
        "first": {"size": 3},
        "graphs": {"small": {"kind": "zoo", "entry": "tiny_chain"}},
    }
)


def process_of(piece: int) -> int:
    """Return the number of the process that does a piece of work."""
    return os.getpid()


def worked_by_process(stage: Stage, cost_model: CostModel, keep_prices: Callable[[], None]) -> dict[str, int | str]:
    """Log, write, keep prices and tell of progress as a stage does; returns where that was, and of which prices."""
    with stage.progress(stage.graph) as on_progress:
        for step in range(3):
            stage.log(step, {"loss": float(1 + step)})
            on_progress(step / 3, str(step))
    keep_prices()
    stage.output(f"data/first/{stage.graph}").write_text("done")
    return {"process": os.getpid(), "checkpoint": stage.checkpoint.name, "cost_model": cost_model.name}


def failed_at_the_first(stage: Stage) -> None:
    """Fail at one of two graphs at once; go on telling of the other for a while, and leave a checkpoint of it."""
    if stage.graph == "small":
        raise RLFlowError("at the very beginning")
    with stage.progress(stage.graph) as on_progress:
        for step in range(30):
            on_progress(step / 30, "")
            time.sleep(0.1)
    (stage.checkpoint / "done.txt").write_text("")


def left_process(stage: Stage) -> None:
    """Write down in what kind of process this is done."""
    stage.output(f"data/first/{stage.graph}").write_text(current_process().name.split("-")[0])


def working_for_ever(stage: Stage) -> None:
    """Leave the number of this process, and tell of progress for as long as it lives."""
    (stage.checkpoint / "process.txt").write_text(str(os.getpid()))
    with stage.progress(stage.graph) as on_progress:
        while True:
            on_progress(0.5, "")
            time.sleep(0.1)


def killed_while_running(store: Path) -> None:
    """Open a run in the store, log to it and die of SIGKILL."""
    with open_run(open_store(store), "stage/graph/0", parameters={}, tags={}) as run:
        run.log(0, {"loss": 1.0})
        run.flush()
        os.kill(os.getpid(), signal.SIGKILL)
