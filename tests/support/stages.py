"""The settings of a stage of the small project, and work on its graphs that another process can be given."""

import os

from omegaconf import OmegaConf

from rlflow.errors import RLFlowError
from rlflow.tracking.progress import Told
from rlflow.tracking.stage import Stage

CONFIG = OmegaConf.create(
    {
        "seed": 7,
        "temperature": 1.0,
        "first": {"size": 3},
        "graph": {"kind": "zoo", "name": "small", "path": "conf/graph/small.yaml"},
    }
)


def worked_by_process(stage: Stage, shift: int) -> dict[str, int | str]:
    """Log, write and tell of progress as a stage does; returns where that was."""
    with stage.progress(stage.graph) as on_progress:
        for step in range(3):
            stage.log(step, {"loss": float(shift + step)})
            on_progress(step / 3, str(step))
    stage.output(f"data/first/{stage.graph}").write_text("done")
    return {"process": os.getpid(), "checkpoint": stage.checkpoint.name, "seed": stage.seed}


def failed_at_the_second(stage: Stage) -> None:
    """Fail at one of two graphs, and leave a checkpoint of the other one."""
    if stage.graph == "large":
        raise RLFlowError("in the middle of the second graph")
    (stage.checkpoint / "done.txt").write_text("")


def tell_of_progress(told: Told) -> None:
    told.put(("large, epochs", 0.5, "15"))
