"""The model that an experiment leaves of a graph, called what it is: the policy's if that is faster, else the original.

    delivery = delivered(timing.ratio("deployed", "rlflow"), "deployed")
    delivery.to_json()                  # {"delivered": "original", "delivered_because": "deployed, ..."}
    write_models(delivery, result, source, folder)

    folder/optimised.onnx, optimised.jsonl                       where the policy's model is delivered
    folder/original.onnx, candidate.onnx, candidate.jsonl        where it is not

The invariant: no file named optimised.onnx is the original, and a trajectory has the name of the model it leads to.
"""

from dataclasses import dataclass
from pathlib import Path

from experiment.formatting import with_interval
from rlflow.method import OptimisationResult
from rlflow.onnx_io import save_model, to_onnx
from rlflow.optimise.source import Source
from rlflow.runtime.session import Setting
from rlflow.runtime.timing.statistics import Estimate, beyond_noise
from rlflow.trajectory import record

OPTIMISED, ORIGINAL, CANDIDATE = "optimised", "original", "candidate"


@dataclass(frozen=True)
class Delivery:
    """The model that is delivered, "optimised" or "original", with the measurement that decided it."""

    model: str
    reason: str

    def to_json(self) -> dict[str, str]:
        """The two as figures of the policy (schema `evaluate`) and as tags of a registered model."""
        return {"delivered": self.model, "delivered_because": self.reason}


def delivered(speed: Estimate, setting: Setting) -> Delivery:
    """Choose the policy's model if it runs faster than the original in that setting, beyond noise."""
    told = (
        f"{setting.replace('_', ' ')}, the policy's model runs {with_interval(speed.value, speed.ci95)} times as fast"
    )
    if not beyond_noise(speed):
        return Delivery(ORIGINAL, f"{told}, which is within noise")
    return Delivery(OPTIMISED if speed.value > 1.0 else ORIGINAL, told)


def write_models(delivery: Delivery, result: OptimisationResult, source: Source, folder: Path) -> Path:
    """Write the policy's model with the trajectory to it and, if that is delivered instead, the original.

    Returns the file of the model that is delivered.
    """
    is_optimised = delivery.model == OPTIMISED
    found = folder / f"{OPTIMISED if is_optimised else CANDIDATE}.onnx"
    save_model(to_onnx(result.best), found)
    record.save([result.trajectory], found.with_suffix(".jsonl"))
    if is_optimised:
        return found
    original = folder / f"{ORIGINAL}.onnx"
    source.save(original)
    return original
