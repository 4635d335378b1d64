from pathlib import Path

from experiment.curves import Curves
from experiment.documents.curves import TrainingCurves

from rlflow import schemas

UNITS = {"loss": "nats", "return_percent": "%", "never": "s"}


def test_points_of_earlier_processes_are_kept_and_steps_done_again_replaced(tmp_path: Path):
    """The first process is killed after step 2 was recorded and before its checkpoint was."""
    first = Curves(tmp_path / "curves.json", "update", UNITS)
    for step in (0, 1, 2):
        first.add(step, {"loss": float(step), "unwanted": 9.0})
    second = Curves(tmp_path / "curves.json", "update", UNITS)
    second.add(2, {"loss": 20.0, "return_percent": 5.0})
    second.add(3, {"loss": 3.0})
    curves = second.to_json()
    assert curves["loss"] == {"unit": "nats", "step_name": "update", "step": [0, 1, 2, 3], "value": [0, 1, 20, 3]}
    assert curves["return_percent"]["step"] == [2]
    assert set(curves) == {"loss", "return_percent"}
    schemas.validate(TrainingCurves, {"bert": curves})
