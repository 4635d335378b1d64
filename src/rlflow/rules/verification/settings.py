"""Both sides of a rule as ONNX Runtime computes them at given values, as written and as deployed.

A side is a model of its own: in one model with the other side, ONNX Runtime would share between them what it fuses when
it finds it alone. What a rule wants to be constant is stored in the model, as a weight is.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from rlflow.errors import RLFlowError
from rlflow.onnx_io.standalone import standalone_model
from rlflow.rules.expression import Expression
from rlflow.rules.rule import Rule
from rlflow.rules.verification.sides import Side, Sides, as_graph
from rlflow.runtime.session import SETTINGS, Setting, open_session, run

Values = tuple[np.ndarray, ...]
Outputs = list[np.ndarray]


class Trial(NamedTuple):
    """Values of the variables of a case, in their order. `drawn` says for people what is special about them, `remedies`
    are conditions of which each excludes them.
    """

    case: Sides
    values: Values
    drawn: str
    remedies: tuple[Expression, ...] = ()


def is_stored(rule: Rule, name: str) -> bool:
    """Return True if the value is known when the model is loaded."""
    spec = rule.spec(name)
    return spec.constant or spec.literal


def computed(rule: Rule, trials: Sequence[Trial], side: Side) -> list[dict[Setting, Outputs]]:
    """The outputs of this side in each trial, in the settings up to the first in which ONNX Runtime refuses it."""
    if not trials:
        return []
    together = _together(rule, trials, side)
    if len(trials) == 1 or len(together) == len(SETTINGS):
        return [{setting: outputs[n] for setting, outputs in together.items()} for n in range(len(trials))]
    middle = len(trials) // 2
    return [outputs for part in (trials[:middle], trials[middle:]) for outputs in computed(rule, part, side)]


def _together(rule: Rule, trials: Sequence[Trial], side: Side) -> dict[Setting, list[Outputs]]:
    values = [dict(zip(t.case.instance.types, t.values, strict=True)) for t in trials]
    stored = [{name: value for name, value in v.items() if is_stored(rule, name)} for v in values]
    fed = {f"{name}_{number}": value for number, v in enumerate(values) for name, value in v.items()}
    found: dict[Setting, list[Outputs]] = {}
    with suppress(RLFlowError):
        model = standalone_model(as_graph([trial.case for trial in trials], (side,), stored))
        for setting in SETTINGS:
            session = open_session(model, setting)
            outputs = iter(run(session, {i.name: fed[i.name] for i in session.get_inputs()}).values())
            found[setting] = [[next(outputs) for _ in trial.case.source.outputs] for trial in trials]
    return found
