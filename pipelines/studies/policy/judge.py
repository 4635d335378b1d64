"""Judge V: what it tells of lessons that are held out, and what chains that go by it find on every lesson's graph.

Writes data/results/policy/metrics.json. A lesson that was judged is kept until all are, so that a run that was killed
goes on where it was.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from tracking.factories import cost_model_of, graph_of
from tracking.run import numbers

from rlflow.agents.match_level.guide import FILE
from rlflow.agents.match_level.lesson_files import LessonRecord, read, read_records
from rlflow.agents.match_level.lessons import Start, started
from rlflow.agents.match_level.taught_guide import TaughtGuide
from rlflow.cli.progress import progress_bar
from rlflow.kept import Kept
from rlflow.method import Budget
from rlflow.rules import library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.schemas.figures import Figure
from rlflow.search.greedy import Greedy
from rlflow.world_model.match_level.diagnostics import by_rule, rule_means, saving_report, savings
from rlflow.world_model.match_level.expert_metrics import auc, rule_shares
from studies.policy.curriculum import Unit, units
from studies.policy.data_sheet import figures
from studies.policy.documents import Policy
from studies.program import open_study, options_of, study_program
from studies.published import publish

LESSONS = Path("data/policy/lessons")
POLICY = Path("data/policy/policy")
RESULTS = Path("data/results/policy/metrics.json")
SECTIONS = ("seed", "judging", "lesson", "lessons")


@study_program("policy")
def main(config: DictConfig) -> None:
    settings: Any = OmegaConf.to_container(config, resolve=True)
    course = units(settings, options_of("policy"))
    policy, rewrites = TaughtGuide.load(POLICY), settings["judging"]["rewrites"]
    judging = Judging.of(policy, course, rewrites)
    settled = {"policy": (POLICY / FILE).read_text(), **{name: settings[name] for name in SECTIONS}}
    with (
        open_study("policy_judge", settings, settled) as study,
        progress_bar("lessons") as on_progress,
    ):
        judged, judgements = {}, Kept[dict[str, Any]].as_json(study.folder)
        for number, unit in enumerate(course):
            judged[unit.lesson.name] = judgements.get_or(unit.lesson.name, partial(judging, unit))
            on_progress((number + 1) / len(course), unit.lesson.name)

        document = figures(judged, rewrites)
        publish(RESULTS, Policy, document, __file__)
        study.run.log(0, numbers(document))
        study.run.artifact(RESULTS)


@dataclass(frozen=True)
class Judging:
    """A policy, what its lessons tell of rules, and how many rewrites its chains may take."""

    policy: TaughtGuide
    records: Mapping[str, LessonRecord]
    means: Mapping[str, float]
    shares: Mapping[str, float]
    rewrites: int

    @classmethod
    def of(cls, policy: TaughtGuide, course: Sequence[Unit], rewrites: int) -> "Judging":
        records = {record.name: record for record in read_records(LESSONS)}
        known = read([records[unit.lesson.name] for unit in course if not unit.held_out], LESSONS)
        return cls(policy, records, rule_means(known, known.episodes), rule_shares(known), rewrites)

    def __call__(self, unit: Unit) -> dict[str, Any]:
        """All that is published of a lesson, but its share."""
        record = self.records[unit.lesson.name]
        told = {"expert": record.expert, "steps": record.steps, "tokens": record.tokens}
        return {
            "family": unit.family,
            "model": ", ".join(f"{key} {value}" for key, value in unit.subject.graph["settings"].items()),
            "cost": unit.subject.cost["kind"],
            "start": _described(unit.lesson.start),
            "held_out": unit.held_out,
            **told,
            "evaluations": record.rewrites,
            "seconds": record.seconds,
            "expert_percent": record.improvement_percent,
            **self._found(unit),
            **({"reading": self._reading(record)} if unit.held_out else {}),
        }

    def _found(self, unit: Unit) -> dict[str, float]:
        """The savings of greedy search and of the policy's chains, in percent of the price of the lesson's start."""
        rules, cost_model = library.load(), cost_model_of(unit.subject.cost)
        start = started(graph_of(unit.subject.graph), unit.lesson.start, rules)
        greedy = Greedy(rules, Rewriter(rules.rules), cost_model)
        chains = self.policy.guide.search(rules, Rewriter(rules.rules), cost_model, rewrites=self.rewrites)
        return {
            "greedy_percent": greedy.optimise(start, Budget()).improvement_percent,
            "policy_percent": chains.optimise(start, Budget()).improvement_percent,
        }

    def _reading(self, record: LessonRecord) -> dict[str, Any]:
        """Return how well V reads a lesson, beside the means of rules, without figures that are not defined on it."""
        rollouts = read([record], LESSONS)
        reading, shown = self.policy.model.read(rollouts), rollouts.episodes[0]
        rule_mean, rule_share = (by_rule(rollouts.rule_of, known) for known in (self.means, self.shares))
        savings_text = saving_report(rollouts.episodes, rollouts.rule_of, savings(reading), rule_mean)
        found = {
            "taken_auc": (auc(shown, reading.taken.numpy()), auc(shown, rule_share), len(shown.states)),
            "saving_rank_correlation": tuple(
                savings_text[name] for name in ("spearman", "spearman_rule_mean", "spearman_cases")
            ),
        }
        return {
            name: Figure(value, baseline, "rule_mean", int(cases)).to_json()
            for name, (value, baseline, cases) in found.items()
            if math.isfinite(value) and math.isfinite(baseline)
        }


def _described(start: Start) -> str:
    """Say how a lesson's start was made of the model that the zoo builds."""
    if start.merged_by:
        return "merged"
    return f"{start.walked} random rewrites" if start.walked else "as built"
