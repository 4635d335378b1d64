"""The latencies of what agents have found, against the original and a framework, in both settings of ONNX Runtime.

    rows = LatencyCell(subject, seed=0, found={"rlflow": trajectory}, timing=TimingConfig(), draws=3).run()

Every trajectory is replayed, and the model that comes of it is compared with the original before it is timed. Fresh
sessions take turns; the original is timed twice, as control. It runs alone on the machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from experiment.comparison import ORIGINAL, again
from onnx import ModelProto

from rlflow.equivalence.compare import compare
from rlflow.errors import EquivalenceError
from rlflow.onnx_io import to_onnx
from rlflow.rules import library
from rlflow.rules.matching.sharing import rewriter_of
from rlflow.runtime.session import SETTINGS
from rlflow.runtime.timing.latency import compare_latency
from rlflow.runtime.timing.statistics import ratio
from rlflow.trajectory.record import Trajectory
from rlflow.trajectory.replay import replay
from studies.paper.rows import Row, latency_figures
from studies.reward_study.cases import TimingConfig
from studies.subject import Subject


@dataclass(frozen=True)
class LatencyCell:
    """The models that the agents of one seed have found on a graph, by the names of the agents.

    found: records of trajectories. draws: inputs on which each model is compared with the original.
    """

    subject: Subject
    seed: int
    found: Mapping[str, str]
    timing: TimingConfig
    draws: int

    def run(self) -> dict[str, Row]:
        """Raises EquivalenceError if a model computes something else than the original."""
        original = to_onnx(self.subject.graph())
        models = {ORIGINAL: original, again(ORIGINAL): original} | {
            agent: self._checked(agent, trajectory) for agent, trajectory in self.found.items()
        }
        timing, figures = self.timing, dict[str, dict[str, float]]()
        for setting in SETTINGS:
            times_ms = compare_latency(
                models,
                setting=setting,
                rounds=timing.rounds,
                runs_per_round=timing.runs_per_round,
                threads=timing.threads,
                seed=self.seed,
            )
            for agent in (ORIGINAL, *self.found):
                measured = ratio(times_ms[ORIGINAL], times_ms[again(agent)])
                figures.setdefault(agent, {}).update(latency_figures(setting, measured, times_ms[agent]))
        return {agent: Row(each) for agent, each in figures.items()}

    def _checked(self, agent: str, trajectory: str) -> ModelProto:
        """The model that an agent has found, after a comparison with the original."""
        found = Trajectory.from_json(trajectory)
        *_, best = replay(self.subject.graph(), found, rewriter_of(found.matching, library.load().rules))
        model = to_onnx(best)
        report = compare(self.subject.model, model, draws=self.draws, seed=self.seed)
        if not report.equivalent:
            raise EquivalenceError(f"{self.subject.name}: what {agent} found computes something else")
        return model
