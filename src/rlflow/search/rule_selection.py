"""Choosing the rules that an agent acts with: those that searches over the whole library really used.

Hundreds of rules of which most never help would drown an agent; which ones help is measured, not guessed.
"""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rlflow.cost.base import CostModel
from rlflow.errors import InputError
from rlflow.ir.graph import Graph
from rlflow.optimiser import Budget, OnProgress, OptimisationResult, Optimiser
from rlflow.rules.library import Library
from rlflow.rules.rewriter import Rewriter
from rlflow.search.backtracking import Backtracking
from rlflow.search.greedy import Greedy
from rlflow.search.random import RandomSearch

FORMAT_VERSION = 1


@dataclass(frozen=True)
class SelectionConfig:
    """`size` rules at most; the budgets of the searches that vote."""

    size: int = 16
    backtracking_expansions: int = 30
    random_rewrites: int = 300
    random_searches: int = 3
    time_limit_s: float = 60.0
    seed: int = 0


@dataclass(frozen=True)
class Choice:
    """Why a rule is in the set. `uses` on the ways to the searches' best graphs; `gain_percent` what these uses saved
    together, in percent of the start; `matches` on the original graph.
    """

    id: str
    name: str
    uses: int
    gain_percent: float
    matches: int


@dataclass(frozen=True)
class RuleSet:
    """The versioned artefact: rules in the order in which an agent numbers them."""

    library: str
    choices: tuple[Choice, ...]

    def rules(self, library: Library) -> Library:
        """`InputError` if the set was chosen from another library."""
        if library.hash != self.library:
            raise InputError("the rule set was chosen from another library: run the generate_rules stage again")
        return library.select([c.id for c in self.choices])

    def save(self, path: Path) -> None:
        content = {"version": FORMAT_VERSION, "library": self.library, "rules": [asdict(c) for c in self.choices]}
        draft = path.with_suffix(".draft")
        draft.write_text(json.dumps(content, indent=1) + "\n")
        os.replace(draft, path)

    @classmethod
    def load(cls, path: Path) -> RuleSet:
        """`InputError` if there is no rule set of this version."""
        try:
            content = json.loads(path.read_text())
            if content["version"] != FORMAT_VERSION:
                raise ValueError(f"version {content['version']}")
            return cls(content["library"], tuple(Choice(**c) for c in content["rules"]))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(f"{path} is no rule set ({error}): run the generate_rules stage") from None


def select_rules(
    library: Library,
    graph: Graph,
    cost_model: CostModel,
    config: SelectionConfig,
    on_progress: OnProgress | None = None,
) -> RuleSet:
    """Rules that match the graph or were used, by uses, then by gain, then by matches; inverses have no privilege."""
    rewriter = Rewriter(library.rules)
    uses: Counter[str] = Counter()
    gains: dict[str, float] = defaultdict(float)
    searches = _searches(library, rewriter, cost_model, config)
    for number, (search, budget) in enumerate(searches):
        if on_progress:
            on_progress(number / len(searches), f"choosing rules by {search.name} search")
        result: OptimisationResult = search.optimise(graph, budget)
        for step in result.trajectory.steps:
            uses[step.rule] += 1
            gains[step.rule] += step.reward
    matches = {r.id: len(found) for r, found in zip(library.rules, rewriter.matches(graph), strict=True)}
    choices = [
        Choice(r.id, r.name, uses[r.id], round(gains[r.id], 4), matches[r.id])
        for r in library.rules
        if uses[r.id] or matches[r.id]
    ]
    choices.sort(key=lambda c: (-c.uses, -c.gain_percent, -c.matches, c.id))
    return RuleSet(library.hash, tuple(choices[: config.size]))


def _searches(
    library: Library, rewriter: Rewriter, cost_model: CostModel, config: SelectionConfig
) -> Sequence[tuple[Optimiser, Budget]]:
    share_s = config.time_limit_s / (2 + config.random_searches)
    rewrites = Budget(time_s=share_s, expansions=config.random_rewrites)
    return [
        (Greedy(library, rewriter, cost_model), Budget(time_s=share_s)),
        (
            Backtracking(library, rewriter, cost_model),
            Budget(time_s=share_s, expansions=config.backtracking_expansions),
        ),
        *(
            (RandomSearch(library, rewriter, cost_model, seed=config.seed + i), rewrites)
            for i in range(config.random_searches)
        ),
    ]
