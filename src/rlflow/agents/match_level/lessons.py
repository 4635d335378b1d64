"""Lessons: what an expert search does on a small graph, written down so that V can learn it.

    lesson = Lesson("bert", Start(merged_by=("merge-3-linears",)), Expert("equality_saturation", {"rounds": 3}))
    rollouts = teach(lesson, graph, library, cost_model)      one episode, with its demonstration

A policy meets graphs that exporters and other searches have been at, so a lesson need not begin at the graph as it was
built: rules may have merged what others wrote separately, or random rewrites have led away from it. All starts of a
graph compute the same, and the expert knows the way from each.

The invariant: a lesson's budget counts, and no clock has a say in it, so that a lesson teaches the same wherever and
whenever it is held.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rlflow.agents.match_level.demonstrations import GainConfig, demonstrate
from rlflow.agents.token_collection import TokenCollectionConfig, collect_tokens
from rlflow.cost.base import CostModel
from rlflow.errors import InputError
from rlflow.ir.graph import Graph
from rlflow.method import Budget, OptimisationResult
from rlflow.processes.token_process import TokenProcess
from rlflow.representation.token_rollouts import TokenRollouts
from rlflow.representation.token_shards import TokenBank, merged
from rlflow.representation.vocabulary import Vocabulary
from rlflow.rules.library import Library
from rlflow.rules.matching.match import Match
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.rules.matching.sharing import SharingRewriter
from rlflow.search.best import SEARCHES
from rlflow.search.factory import make_search

_MOST_MERGES = 100  # rules that merge come to an end by themselves; others might not


@dataclass(frozen=True)
class Start:
    """The graph that a lesson begins with: the given one after the rules of `merged_by`, as long as one of them has a
    match, and after `walked` random rewrites, drawn by `seed`.
    """

    merged_by: tuple[str, ...] = ()
    walked: int = 0
    seed: int = 0


@dataclass(frozen=True)
class Expert:
    """A search by its name and options, and the expansions after which it ends; None if it ends by itself."""

    method: str = "equality_saturation"
    options: Mapping[str, Any] = field(default_factory=dict)
    expansions: int | None = None


@dataclass(frozen=True)
class Lesson:
    """A start graph, an expert search, the settings of its gains, and random episodes from the same start.

    name: of the graph in the rollouts. play: episodes of random play from the same start, from which M learns what
    becomes of rewrites that no expert takes; they are drawn by `seed`.
    """

    name: str
    start: Start = field(default_factory=Start)
    expert: Expert = field(default_factory=Expert)
    gain: GainConfig = field(default_factory=GainConfig)
    play: TokenCollectionConfig = field(default_factory=lambda: TokenCollectionConfig(episodes=0))
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Taught:
    """The episodes of a lesson, the expert's first, what the expert found, and the rewrites carried out for both."""

    rollouts: TokenRollouts
    found: OptimisationResult
    rewrites: int


def teach(
    lesson: Lesson, graph: Graph, library: Library, cost_model: CostModel, vocabulary: Vocabulary | None = None
) -> Taught:
    """Let the expert optimise the lesson's start, and write down what his steps teach.

    vocabulary: of the tokens; None: today's. `InputError` for an expert, an option or a rule that there is not.
    """
    sharing = SharingRewriter(library.rules)
    start = started(graph, lesson.start, library)
    found = _expert(lesson.expert, library, sharing, cost_model).optimise(
        start, Budget(expansions=lesson.expert.expansions)
    )
    process, bank = TokenProcess(start, sharing, cost_model, vocabulary), TokenBank()
    episode = demonstrate(process, bank, found.trajectory, lesson.gain)
    shown = TokenRollouts(
        tokens=tuple(bank.tokens),
        rule_of=tuple(bank.rule_of),
        episodes=(episode,),
        graphs=(lesson.name,),
        vocabulary=process.vocabulary,
        library_hash=library.hash,
    )
    rewrites = found.effort.rewrites + process.rewrites
    if not lesson.play.episodes:
        return Taught(shown, found, rewrites)
    process = TokenProcess(start, sharing, cost_model, vocabulary)
    played = collect_tokens(process, lesson.name, lesson.play, seed=lesson.seed, library_hash=library.hash)
    return Taught(merged([shown, played.rollouts]), found, rewrites + played.rewrites)


def started(graph: Graph, start: Start, library: Library) -> Graph:
    """Return the graph that a lesson begins with; it computes what the given one does."""
    if start.merged_by:
        merging = Rewriter([library.get(name) for name in start.merged_by])
        for _ in range(_MOST_MERGES):
            matches = _matches(merging, graph)
            if not matches:
                break
            graph = merging.apply(graph, matches[0])
    rewriter, rng = SharingRewriter(library.rules), np.random.default_rng(start.seed)
    for _ in range(start.walked):
        by_rule = [group for group in rewriter.matches(graph) if group]
        if not by_rule:
            break
        group = by_rule[int(rng.integers(len(by_rule)))]
        graph = rewriter.apply(graph, group[int(rng.integers(len(group)))])
    return replace(graph, edit=None)


def _matches(rewriter: Rewriter, graph: Graph) -> list[Match]:
    return [match for group in rewriter.matches(graph) for match in group]


def _expert(expert: Expert, library: Library, sharing: SharingRewriter, cost_model: CostModel) -> Any:
    if expert.method not in SEARCHES:
        raise InputError(f"there is no expert {expert.method!r}: choose one of {', '.join(SEARCHES)}")
    subject = f"the expert {expert.method}"
    return make_search(SEARCHES[expert.method], (library, sharing, cost_model), expert.options, subject)
