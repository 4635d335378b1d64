"""The subject of an examination: a model with all that finders ask of it, and the time that one of them has."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from onnx import ModelProto

from rlflow.equivalence.drawing import Reference
from rlflow.errors import RLFlowError
from rlflow.onnx_io.external_data import write_mapped
from rlflow.optimise.clock import Deadline
from rlflow.optimise.gate import GateConfig, Judgement, Pace, check_made, judgeable
from rlflow.optimise.reported.latency import LatencyChange
from rlflow.optimise.timing import timed, timed_as_opened
from rlflow.runtime.inputs import draw_inputs
from rlflow.runtime.onnx_runtime import open_with
from rlflow.runtime.session import structure_of
from rlflow.runtime.session_options import SessionOptions
from rlflow.runtime.timing.latency import Opener, opener

_JUDGING = 0.2
"""The part of the time in which a model that was mended is run again."""
_SESSIONS_IN_ROUND = 4


class NotLookedFor(RLFlowError):
    """Raised by a finder that cannot look, with the reason."""


@dataclass(frozen=True)
class Subject:
    """A valid model and its file in a folder for others, the judgement on it, and how it is timed.

    `threads` are those of a session that nobody has told how many to use.
    """

    model: ModelProto
    file: Path
    judgement: Judgement
    config: GateConfig
    deadline: Deadline
    threads: int

    @property
    def reference(self) -> Reference:
        """The outputs that the model computes of drawn inputs. `NotLookedFor` where there are none."""
        if self.judgement.reference is None:
            raise NotLookedFor(self.judgement.unjudgeable)
        return self.judgement.reference

    @property
    def inputs(self) -> dict[str, np.ndarray]:
        """The inputs with which everything is timed."""
        self.reference  # noqa: B018 - it says why there are none
        rng = np.random.default_rng(self.config.seed)
        return draw_inputs(structure_of(self.file), rng, self.config.dimensions)

    def with_model(self, model: ModelProto) -> Subject:
        """Return the subject with a model that was made of its own and computes the same, perhaps in another time.

        Raises `Refused` if it computes something else, or there is no time to find that out. Where nothing can be
        compared with the model, it is taken as it is, and judged by itself.
        """
        file = write_mapped(model, self.file.with_name(f"{self.file.stem}_.onnx"), like=self.file)
        judgement, reference = self.judgement, self.judgement.reference
        if reference is not None:
            check_made(self.file, file, self.config, self.deadline.left_s, reference, None)
        again = judgeable(file, self.config, self.deadline.part(_JUDGING))
        if not again.unjudgeable:
            judgement = again if reference is None else replace(judgement, paces=again.paces)
        return replace(self, model=model, file=file, judgement=judgement)

    def opener(self, options: SessionOptions | None = None, *, threads: int = 1) -> Opener:
        """Return what opens the model as deployed with these options, or those that it carries, and so many threads
        where they do not say how many.
        """
        return opener(partial(open_with, options or SessionOptions.of(self.file), self.file, threads), self.inputs)

    def compared(self, before: Opener, after: Opener, *, threads: int = 1) -> LatencyChange:
        """Time two ways to open the model beside each other, within the time that is left.

        `NotLookedFor` where that is too short for a round.
        """
        return timed_as_opened(before, after, threads, self._config_in_time(), lambda: self.deadline.left_s)

    def compared_with(self, other: Path) -> LatencyChange:
        """Time the model beside another one as deployed. Raises as `compared`."""
        return timed(self.file, other, "deployed", self._config_in_time(), lambda: self.deadline.left_s)

    def _config_in_time(self) -> GateConfig:
        """The settings of timing with as many runs of a session as let rounds fit into the time that is left."""
        pace = self.judgement.paces.get("deployed", Pace())
        for runs in range(self.config.runs_per_round, 0, -1):
            if _SESSIONS_IN_ROUND * (pace.opening_s + (1 + runs) * pace.running_s) <= self.deadline.left_s:
                return replace(self.config, runs_per_round=runs)
        raise NotLookedFor("a round of timing would take longer than there is time")
