"""The optimisers of ONNX Runtime to blame where a model computes something else as deployed than as written.

    to_blame(model, [{"x": x}], [{"y": y}], tolerance)        # ("LayerNormFusionL1", "LayerNormFusionL2")

They are switched off one by one, or rather in ever smaller groups (`rlflow.delta_debugging`): each question opens a
session.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from onnx import ModelProto

from rlflow.delta_debugging import smallest_failing
from rlflow.equivalence.difference import differences
from rlflow.equivalence.drawing import Inputs, Outputs
from rlflow.equivalence.reference import outputs_of
from rlflow.errors import RLFlowError
from rlflow.runtime.isolation import Limits, ProcessDeath, call_isolated
from rlflow.runtime.onnx_runtime import OpenSession
from rlflow.runtime.session import open_session
from rlflow.runtime.transformers import OPTIMISERS

IsRight = Callable[[ModelProto | Path, Sequence[str], Sequence[Inputs], Sequence[Outputs], float], bool]


def is_right_without(
    model: ModelProto | Path,
    switched_off: Sequence[str],
    inputs: Sequence[Inputs],
    expected: Sequence[Outputs],
    tolerance: float,
) -> bool:
    """Tell if a model, as deployed but for some optimisers, computes what is expected on these inputs."""
    try:
        actual = outputs_of(OpenSession(open_session(model, "deployed", switched_off=switched_off)), inputs)
    except RLFlowError:
        return False
    pairs = zip(expected, actual, strict=True)
    return not any(found.problem for pair in pairs for found in differences(*pair, tolerance))


def lives_and_is_right_without(limits: Limits, *question: Any) -> bool:
    """Ask `is_right_without` in another process; one that dies is not right."""
    try:
        return call_isolated(limits, is_right_without, *question)
    except ProcessDeath:
        return False


def to_blame(
    model: ModelProto | Path,
    inputs: Sequence[Inputs],
    expected: Sequence[Outputs],
    tolerance: float,
    is_right: IsRight = is_right_without,
) -> tuple[str, ...]:
    """Return the fewest optimisers found without which a model is right as deployed; none if it is so with all of them,
    or wrong without any.

    `is_right` is asked about each choice; one that runs the model in another process lives on where that dies.
    """

    def helps(switched_off: Sequence[str]) -> bool:
        return is_right(model, switched_off, inputs, expected, tolerance)

    return smallest_failing(OPTIMISERS, helps) if not helps(()) and helps(OPTIMISERS) else ()
