"""The options of `rlflow optimise` that determine its answer, and what follows from them.

    asked = Asked(method="best", setting="deployed", runtime="onnxruntime", ...)
    rlflow.optimise(model, **asked.arguments(), budget_s=60.0)
    Question.of(model, asked)                   another one for each other value of a field (`answers`)

Invariant: an option of the command that may change its answer is a field here, under its own name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlflow.errors import InputError
from rlflow.optimise import DEFAULT_COST_MODEL, DEFAULT_METHOD, DEFAULT_SETTING
from rlflow.optimise.gate import GateConfig
from rlflow.optimise.session_options import OptionFinder
from rlflow.plugins import unknown
from rlflow.rules.library import load as load_library
from rlflow.rules.user_rules import load_rules
from rlflow.runtime.hardware import usable_cores
from rlflow.runtime.runtimes import AUTO, ONNX_RUNTIME, PRECISIONS, installed_runtimes, setting_of, settings_of
from rlflow.runtime.sizes import Shapes
from rlflow.runtime.timing.sequential import SequentialTest

_TRAINED = "rlflow"
"""The method that is a trained policy."""


@dataclass(frozen=True)
class Asked:
    """The options of one command, as its user gave them. Files are given by their paths, and asked by their content.

    `InputError` for options that do not go together.
    """

    method: str = DEFAULT_METHOD
    setting: str = DEFAULT_SETTING
    runtime: str = ONNX_RUNTIME
    precision: str = "float32"
    tolerance: float = 1e-2
    cost_model: str = DEFAULT_COST_MODEL
    rules: Path | None = None
    disable: Sequence[str] = ()
    strict: bool = False
    shape: Shapes = field(default_factory=dict)
    read: Sequence[str] = ()
    policy: Path | None = None
    trained_on: str | None = None
    passes: str | None = None
    threads: int | None = None
    prove: bool = False
    default_options: bool = False

    def __post_init__(self) -> None:
        self._method_options()
        self._settings()

    @property
    def gate(self) -> GateConfig:
        """The settings by which a result is checked and timed: with as many threads as its user's sessions have."""
        return GateConfig(
            threads=usable_cores() if self.threads is None else self.threads,
            proof=SequentialTest() if self.prove else None,
            tolerance=None if self.precision == "float32" else self.tolerance,
        )

    def arguments(self) -> dict[str, Any]:
        """Return the keyword arguments of `rlflow.optimise`. Raises as `load_rules` does, for rules of the user's."""
        setting, *beside = self._settings()
        return {
            "method": self.method,
            "options": self._method_options(),
            "library": None if self.rules is None else load_library().extended(load_rules(self.rules)),
            "disabled": self.disable,
            "strict": self.strict,
            "cost_model": self.cost_model,
            "setting": setting,
            "beside": beside,
            "shapes": self.shape,
            "read": self.read,
            "gate": self.gate,
            "passes": self.passes,
            "session_options": None
            if self.default_options or setting != DEFAULT_SETTING
            else OptionFinder(with_threads=self.threads is None),
        }

    def _settings(self) -> list[str]:
        """Return the setting to optimise for, then those to compare it with; of auto, those that are installed."""
        if self.precision not in (*PRECISIONS, AUTO):
            raise InputError(unknown("precision", self.precision, (*PRECISIONS, AUTO)))
        if self.runtime != AUTO and self.precision != AUTO:
            found = [setting_of(self.runtime, self.precision)]  # type: ignore[arg-type]
        else:
            found = settings_of(ONNX_RUNTIME if self.runtime == AUTO else self.runtime)
            others = installed_runtimes() if self.runtime == AUTO else []
            found += [other for name in others for other in settings_of(name) if other not in found]
        if self.setting == DEFAULT_SETTING:
            return found
        if found != [DEFAULT_SETTING]:
            raise InputError(f"--setting {self.setting} is for ONNX Runtime, and float32, alone: leave it out")
        return [self.setting]

    def _method_options(self) -> dict[str, Path | str]:
        given = {"folder": self.policy, "trained_on": self.trained_on}
        options = {name: value for name, value in given.items() if value is not None}
        if options and self.method != _TRAINED:
            raise InputError(f"--policy and --trained-on are for --method {_TRAINED} alone, not for {self.method}")
        return options
