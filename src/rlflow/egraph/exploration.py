"""The exploration of an e-graph by rules: which matches are used, in which order, and for how long.

An e-graph of a whole model is never saturated by all rules: it would outgrow every limit first. Here a price decides.
A match *pays* if its target's own nodes take less time than those of its source, or as much without being the same
operators in another order. The schedule alternates

    passes      use every match that pays, until nothing new comes of it
    wide pass   use, of those that take up to `slack_us` longer, the cheapest `per_rule` of each rule, once

which ends a *round*. So an operator may take a step that costs a little where a later one pays for it, and most of the
e-graph consists of what is at least as good as what was there. Without a guard every pass uses every match and is a
round of its own, as in Tensat (Yang et al., MLSys 2021), whose other settings are here too: rules with several roots
for the first rounds alone, and a filter of cycles (`egraph/cycles.py`).

Invariant: what happens depends on nothing but the e-graph, the rules, the prices and the configuration, unless the time
is over first; the report then says so.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import inf

from rlflow.egraph.cycles import CycleFilter, break_cycles
from rlflow.egraph.egraph import ClassId, ENodeId
from rlflow.egraph.matching import EMatch, EMatcher
from rlflow.egraph.model_egraph import ModelEGraph, Use
from rlflow.egraph.redundant import filter_redundant
from rlflow.errors import InputError

_MS_PER_US = 1e-3


@dataclass(frozen=True)
class ExplorationConfig:
    """The settings of an exploration.

    - `slack_us`: how much longer a target may take than its source in a wide pass; None admits every match at once.
    - `per_rule`: matches of one rule in one wide pass.
    - `multi_root_rounds`: rounds in which rules with several roots are used; k_multi in Tensat.
    - `max_nodes`: e-nodes after which no match is used any more.
    - `growth`: the same as a multiple of the e-nodes at the beginning; None for no such limit.
    - `max_passes`: passes, wide ones included.
    - `max_uses`: uses of rules, after which none is used any more; None for no such limit.
    - `filters_cycles`: keep the e-graph free of cycles, at the price of matches that would close one.
    - `filters_redundant`: keep one of several equal applications that differ in constants alone.

    `InputError` for a number out of range.
    """

    slack_us: float | None = 6.0
    per_rule: int = 400
    multi_root_rounds: int = 1
    max_nodes: int = 5_500
    growth: float | None = 60.0
    max_passes: int = 80
    max_uses: int | None = None
    filters_cycles: bool = False
    filters_redundant: bool = True

    def __post_init__(self) -> None:
        if self.slack_us is not None and not self.slack_us >= 0:
            raise InputError(f"slack_us cannot be negative: {self.slack_us}; null admits every match at once")
        if self.growth is not None and not self.growth >= 1:
            raise InputError(f"an e-graph cannot shrink: growth is {self.growth}; null is for no such limit")
        if self.max_uses is not None and not self.max_uses >= 0:
            raise InputError(
                f"an exploration cannot use rules {self.max_uses} times (max_uses); null is for no such limit"
            )
        for name, least in {"per_rule": 1, "multi_root_rounds": 0, "max_nodes": 1, "max_passes": 1}.items():
            if not getattr(self, name) >= least:
                raise InputError(f"an exploration needs a {name} of at least {least}, not {getattr(self, name)}")


TENSAT = ExplorationConfig(
    slack_us=None, max_nodes=50_000, growth=None, max_passes=15, filters_cycles=True, filters_redundant=False
)
"""The published settings of Tensat."""


@dataclass(frozen=True)
class Exploration:
    """The report of an exploration: what it did, and the size of the e-graph afterwards.

    `uses` counts those of each rule by its id. `limited_by` is "" if nothing was left to do, or else "nodes",
    "passes", "uses" or "time".
    """

    nodes: int
    classes: int
    passes: int
    rounds: int
    uses: Mapping[str, int]
    nodes_by_pass: tuple[int, ...]
    limited_by: str
    wall_time_s: float


def _never() -> bool:
    return False


def explore(
    egraph: ModelEGraph, matcher: EMatcher, config: ExplorationConfig, is_over: Callable[[], bool] = _never
) -> Exploration:
    """Use the matcher's rules in the e-graph until `is_over`, which is asked again and again, says that the time is."""
    started = time.perf_counter()
    run = _Run(egraph, matcher, config, is_over)
    run.complete()
    return Exploration(
        nodes=len(egraph),
        classes=len(egraph.classes()),
        passes=len(run.nodes_by_pass),
        rounds=run.rounds,
        uses=dict(sorted(run.uses.items())),
        nodes_by_pass=tuple(run.nodes_by_pass),
        limited_by=run.limited_by,
        wall_time_s=time.perf_counter() - started,
    )


_Change = tuple[tuple[ClassId, ...], ENodeId]
"""The classes that a pass has changed, and the first e-node that it has added."""


@dataclass
class _Run:
    """One exploration on its way; `waiting` has the matches that were too dear so far, by what they are."""

    egraph: ModelEGraph
    matcher: EMatcher
    config: ExplorationConfig
    is_over: Callable[[], bool]
    rounds: int = 0
    uses: Counter[str] = field(default_factory=Counter)
    nodes_by_pass: list[int] = field(default_factory=list)
    waiting: dict[object, EMatch] = field(default_factory=dict)
    joins: dict[ENodeId, int] = field(default_factory=dict)
    limited_by: str = ""

    def __post_init__(self) -> None:
        grown = inf if self.config.growth is None else self.config.growth * len(self.egraph)
        self.most_nodes = min(self.config.max_nodes, grown)

    def complete(self) -> None:
        self.egraph.rebuild()
        found = self.matcher.everywhere(self.egraph)
        while True:
            change = self._pass(self._paying(found))
            if self.config.slack_us is None:
                self.rounds += 1
            while change is None and self.waiting and not self.limited_by:
                change = self._pass(self._cheapest())
                self.rounds += 1
            if change is None or self.limited_by:
                return
            found = self.matcher.around(self.egraph, *change)

    def _paying(self, found: Iterable[EMatch]) -> list[EMatch]:
        """Return the matches that pay, those of rules with several roots included; let dearer ones wait."""
        if self.rounds < self.config.multi_root_rounds:
            found = chain(found, self.matcher.joint(self.egraph, self._joinable()))
        slack_us, paying = self.config.slack_us, []
        for match in found:
            if slack_us is None or match.pays:
                paying.append(match)
            elif match.extra_ms <= slack_us * _MS_PER_US:
                self.waiting[match.rule.id, match.roots, match.source, tuple(match.variables.values())] = match
            if self._is_late():
                break
        return paying

    def _joinable(self) -> list[ENodeId]:
        """Return the applications that rules with several roots have not led to too often already."""
        return [a for a in self.egraph.applications() if self.joins.get(a, 0) < self.config.multi_root_rounds]

    def _cheapest(self) -> list[EMatch]:
        """Take the cheapest matches of each rule out of those that wait."""
        taken: Counter[str] = Counter()
        chosen = []
        for key, match in sorted(self.waiting.items(), key=lambda item: item[1].extra_ms):
            if taken[match.rule.id] < self.config.per_rule:
                taken[match.rule.id] += 1
                chosen.append(self.waiting.pop(key))
        return chosen

    def _pass(self, matches: Sequence[EMatch]) -> _Change | None:
        """Use these matches, and return what has changed; None if nothing has."""
        egraph, first_new, used = self.egraph, self.egraph.next_number, self.uses.total()
        cycle_filter = CycleFilter(egraph) if self.config.filters_cycles else None
        for match in matches:
            if self._is_over():
                break
            fresh = egraph.next_number
            if (cycle_filter is None or cycle_filter.admits(egraph, match)) and match.applied(egraph):
                self._count(egraph.uses[-1], fresh)
        changed = egraph.rebuild()
        if self.config.filters_redundant:
            filter_redundant(egraph, changed)
        if cycle_filter is not None:
            break_cycles(egraph)
        if self.uses.total() == used:
            return None
        self.nodes_by_pass.append(len(egraph))
        if len(self.nodes_by_pass) >= self.config.max_passes:
            self.limited_by = self.limited_by or "passes"
        return changed, first_new

    def _count(self, use: Use, fresh: ENodeId) -> None:
        """Count a use; applications from `fresh` on are its own."""
        self.uses[use.rule.id] += 1
        joins = max(self.joins.get(application, 0) for application in use.source) + (len(use.roots) > 1)
        if joins:
            self.joins |= {application: joins for application in use.made if application >= fresh}

    def _is_over(self) -> bool:
        if len(self.egraph) >= self.most_nodes:
            self.limited_by = "nodes"
        elif self.config.max_uses is not None and self.uses.total() >= self.config.max_uses:
            self.limited_by = "uses"
        return bool(self.limited_by) or self._is_late()

    def _is_late(self) -> bool:
        if self.is_over():
            self.limited_by = self.limited_by or "time"
        return self.limited_by == "time"
