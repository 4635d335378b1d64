"""Policies without a lesson of one family of models, to which the graphs of that family are new.

    place = policy_without("gpt2", "analytic", Path("lessons"), config, Path("policies"), seed=0)
    Guide.load(place), RuleMeans.load(place)
    rank_correlation(place, "gpt2", "analytic", Path("lessons"))           on the lessons that were left out

A family is an entry of the zoo: gpt2 at any width, of any number of layers and with any head. `trained_on` of such a
policy says which lessons it had and what they and the fit took.

The invariant: a folder bears a digest of all that its policy depends on, the code aside, and is complete or not there.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from rlflow.agents.match_level.chain import births_in
from rlflow.agents.match_level.guided_chains import ChainConfig
from rlflow.agents.match_level.lesson_files import LessonRecord, read, read_records
from rlflow.agents.match_level.rule_means import RuleMeans
from rlflow.agents.match_level.taught_guide import TaughtGuide
from rlflow.errors import InputError
from rlflow.kept import Kept, fingerprint
from rlflow.world_model.match_level.delta_bank import DeltaBank
from rlflow.world_model.match_level.diagnostics import by_rule, saving_report, savings
from rlflow.world_model.match_level.match_level_config import MatchLevelModelConfig
from rlflow.world_model.match_level.trainer import fit_token_model


class RankCorrelation(NamedTuple):
    """Spearman's coefficient of V's savings and the true ones, that of the means of rules, and in how many states."""

    value: float
    rule_mean: float
    states: int


def family_of(record: LessonRecord) -> str:
    """Return the family of the model that a lesson is about."""
    return str(record.subject.graph["entry"])


def lessons_without(family: str | None, cost: str, lessons: Path) -> list[LessonRecord]:
    """Return the lessons of all other families at this kind of prices, all of them for None.

    `InputError` if there are none.
    """
    others = [record for record in _at_prices(cost, lessons) if family_of(record) != family]
    if not others:
        raise InputError(
            f"{lessons} holds no lesson at {cost} prices but of {family}: "
            "hold some of others with `make study NAME=policy`"
        )
    return others


def policy_without(
    family: str | None, cost: str, lessons: Path, config: MatchLevelModelConfig, folder: Path, *, seed: int
) -> Path:
    """Fit V on those lessons, and M if it has epochs, unless that was done before; return the folder of the policy."""
    records = lessons_without(family, cost, lessons)
    digest = fingerprint(sorted(record.folder for record in records), config, ChainConfig(), seed)

    def fitted() -> _Fitted:
        started = time.perf_counter()
        rollouts = read(records, lessons)
        model = fit_token_model(rollouts, config, seed=seed)
        means = RuleMeans.of(rollouts)
        births = births_in(rollouts.episodes, rollouts, model) if config.epochs else None
        trained_on = _trained_on(records, seed, time.perf_counter() - started)
        return _Fitted(TaughtGuide(model, ChainConfig(), trained_on, means.taken), means, births)

    kept, key = Kept(folder, _Fitted.save, _Fitted.load), f"{family or 'none'}-{seed}-{digest}"
    kept.get_or(key, fitted)
    return kept.place(key)


@dataclass(frozen=True, eq=False)
class _Fitted:
    """All that a policy's folder holds; births: None where M has no epochs."""

    policy: TaughtGuide
    means: RuleMeans
    births: DeltaBank | None

    def save(self, place: Path) -> None:
        self.means.save(place)
        if self.births is not None:
            self.births.save(place)
        self.policy.save(place)

    @classmethod
    def load(cls, place: Path) -> _Fitted:
        policy = TaughtGuide.load(place)
        births = DeltaBank.load(place) if policy.model.arguments.config.epochs else None
        return cls(policy, RuleMeans.load(place), births)


def rank_correlation(place: Path, family: str, cost: str, lessons: Path) -> RankCorrelation:
    """Return how well the policy in a folder ranks what matches save, on the lessons of a family at a kind of prices.

    `InputError` if there are none.
    """
    records = [record for record in _at_prices(cost, lessons) if family_of(record) == family]
    if not records:
        raise InputError(
            f"{lessons} holds no lesson of {family} at {cost} prices: hold some with `make study NAME=policy`"
        )
    rollouts = read(records, lessons)
    told = savings(TaughtGuide.load(place).model.read(rollouts))
    means = by_rule(rollouts.rule_of, RuleMeans.load(place).saving)
    report = saving_report(rollouts.episodes, rollouts.rule_of, told, means)
    return RankCorrelation(report["spearman"], report["spearman_rule_mean"], int(report["spearman_cases"]))


def _at_prices(cost: str, lessons: Path) -> list[LessonRecord]:
    return [record for record in read_records(lessons) if record.subject.cost["kind"] == cost]


def _trained_on(records: Sequence[LessonRecord], seed: int, fit_s: float) -> dict[str, Any]:
    lessons_s = sum(record.seconds for record in records)
    return {
        "lessons": [record.folder for record in records],
        "seed": seed,
        "lessons_s": lessons_s,
        "seconds": lessons_s + fit_s,
        "evaluations": sum(record.rewrites for record in records),
    }
