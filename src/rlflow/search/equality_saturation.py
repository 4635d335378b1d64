"""Equality saturation: an e-graph of the whole model, explored by rules, and the cheapest graph that it holds.

Other searches go from graph to graph and see one rewrite at a time. An e-graph holds all rewritten graphs at once, so
that steps that pay only together need not be found one after another. A round of the search is

    seed        the graph so far, and what greedy search made of it, are in the e-graph from the start
    explore     rules add equal values, the shipped ones first, enumerated ones around the optimum in a later round
    extract     the cheapest graph, by an integer program, with a proof or a bound
    realise     the same graph again, rewrite by rewrite
    descend     greedy search from there

and the next round begins from what came out, until nothing is gained.

Each use of a rule counts as a rewrite, and so does each rewrite that makes the graph again.

Invariant: every state is reached by rewrites from the state before it; the e-graph only says which. A result is
therefore a trajectory like any other. It is never dearer than that of the search that went first, if a rewriter that
shares could take all of its steps again, and if the graph is not searched in short (`search.abridged`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, TypeVar, get_type_hints

from rlflow.cost.analytic import AnalyticCost
from rlflow.cost.base import CostModel, local
from rlflow.cost.effort import Effort
from rlflow.egraph import greedy_extraction, ilp
from rlflow.egraph.alternatives import alternatives
from rlflow.egraph.exploration import TENSAT, Exploration, ExplorationConfig, explore
from rlflow.egraph.matching import EMatcher
from rlflow.egraph.model_egraph import ModelEGraph
from rlflow.egraph.prices import NodePrice, NodePrices
from rlflow.egraph.problem import Solution
from rlflow.egraph.realisation import Realisation, realise
from rlflow.egraph.rebuilding import ModelProblem
from rlflow.egraph.seeding import replay_into
from rlflow.errors import InputError
from rlflow.ir.graph import Graph
from rlflow.method import OnProgress, Optimality, State, Workspace
from rlflow.rules.library import Library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.rules.matching.sharing import SharingRewriter
from rlflow.rules.rule import Rule
from rlflow.search.abridged import in_short
from rlflow.search.base import Search
from rlflow.search.chains import Chains
from rlflow.search.greedy import Greedy, enough_ms
from rlflow.search.seeding import followed, seeded, some_rules

logger = logging.getLogger(__name__)

T = TypeVar("T")

EXTRACTIONS = ("ilp", "greedy")


@dataclass(frozen=True)
class EqualitySaturation(Search):
    """At most `rounds` rounds, each with an e-graph of its own, the first from the shipped rules if `declared_first`.

    `seed` is the search that goes first, unless another has in the same workspace, whose state is the seed then, and
    `after` the one that goes on from what a round realised. Of each e-graph, the best graph and up to `solutions` - 1
    others, drawn with `random_seed`, are priced where prices do not add up over nodes, and at most `attempts` are made
    to realise one. `rewriter` must share (`rules.matching.sharing`), since graphs that come out of an e-graph do.

    A graph of more than `whole_nodes` nodes that run is searched in short (`search.abridged`) if a part of it repeats;
    None: none is. Of the whole graph nothing is proven then.
    """

    seed: Search | None = None
    after: Search | None = None
    exploration: ExplorationConfig = field(default_factory=ExplorationConfig)
    extraction: str = "ilp"
    limits: ilp.Limits = field(default_factory=ilp.Limits)
    rounds: int = 3
    declared_first: bool = True
    attempts: int = 8
    solutions: int = 4
    random_seed: int = 0
    whole_nodes: int | None = 550
    name: str = "equality_saturation"

    def __post_init__(self) -> None:
        if self.extraction not in EXTRACTIONS:
            raise InputError(f"there is no extraction {self.extraction!r}: choose among {', '.join(EXTRACTIONS)}")
        if min(self.rounds, self.attempts, self.solutions) < 1:
            raise InputError("equality saturation needs at least one round, one attempt and one solution")

    def improve(self, work: Workspace, state: State, on_progress: OnProgress | None = None) -> State:
        if work.rewriter.matching != SharingRewriter.matching:
            raise InputError(
                "equality saturation goes on in a workspace of sharing matching: give it a SharingRewriter"
            )
        carried = in_short(work, work.start, self.whole_nodes, partial(self.improve, on_progress=on_progress))
        if carried is not None:
            return min(state, carried, key=lambda s: s.runtime_ms)
        if state is work.start and self.seed is not None and not work.is_spent:
            state = seeded(work, self.seed, work.ledger.child(time_s=_share(work, _SEEDING)))
        best = state
        start = work.start
        for number in range(self.rounds):
            if work.is_spent:
                break
            is_first = number == 0 and self.declared_first
            rules = [rule for rule in self.rewriter.rules if rule.is_declared or not is_first]
            before, best = best, self._round(work, start, best, rules)
            if on_progress:
                on_progress(work.fraction, f"{best.runtime_ms:.3f} ms after {number + 1} rounds")
            outgrown = work.optimality is not None and work.optimality.limited_by
            if best.runtime_ms >= enough_ms(before) and (outgrown or not is_first):
                break  # where the first rules outgrow the limits and gain nothing, more of them would as well
            start = best
        return best

    def _round(self, work: Workspace, start: State, best: State, rules: Sequence[Rule]) -> State:
        """Return the cheapest state from an e-graph of `start`, into which the trajectory to `best` is replayed.

        That is `best` itself where nothing cheaper is found, or where the time is over before a graph is extracted.
        """
        price, egraph = self._prices(start), ModelEGraph.from_graph(start.graph)
        known = work.trajectory(start, best)
        rewriter = SharingRewriter(some_rules(work.rewriter, [step.rule for step in known.steps]))
        replayed, classes = replay_into(egraph, start.graph, known, rewriter)
        exploration = self._explored(work, egraph, EMatcher(rules, start.graph.header, price))
        if work.is_out_of_time:
            return _out_of_time(work, best)
        extraction = ModelProblem.of(egraph, price)
        solution = self._extracted(work, extraction, extraction.solution(replayed, classes, "seed"))
        if solution is None or work.is_out_of_time:
            return _out_of_time(work, best)
        chosen = self._cheapest(work, extraction, solution, start.graph)
        realised = self._realised(work, start, extraction, chosen)
        found = realised if self.after is None else self.after.improve(work, realised)
        found = min(best, found, key=lambda s: s.runtime_ms)
        work.optimality = self._optimality(exploration, solution, found)
        logger.info(
            "%d e-nodes (%s), %.4f ms extracted, %.4f ms realised, %.4f ms in the end",
            exploration.nodes,
            exploration.limited_by or "saturated",
            solution.objective_ms,
            realised.runtime_ms,
            found.runtime_ms,
        )
        return found

    def _realised(self, work: Workspace, start: State, extraction: ModelProblem, solution: Solution) -> State:
        """Return the cheapest state to which rewrites lead that make a solution.

        If no rewrites were found that make an application, the next best solution without it is tried instead. The
        realisation that lacks the least is followed first, in case the budget is spent before the others.
        """
        best, rewriter = start, SharingRewriter(some_rules(work.rewriter, _used(extraction.egraph)))
        realisations = self._realisations(work, start, extraction, solution, rewriter)
        for number, realisation in enumerate(sorted(realisations, key=lambda realisation: len(realisation.missing))):
            if number and work.is_spent:
                break
            steps = [(rewriter.rules[place.rule].id, place.location, graph) for place, graph in realisation.steps]
            state = followed(work, start, steps[: work.ledger.rewrites_left], work.arrived)
            best = min((best, *state.path()), key=lambda s: s.runtime_ms)
            logger.debug(
                "%.4f ms realised, %d missing, %d computed for nothing",
                state.runtime_ms,
                len(realisation.missing),
                len(realisation.superfluous),
            )
        return best

    def _realisations(
        self, work: Workspace, start: State, extraction: ModelProblem, solution: Solution, rewriter: SharingRewriter
    ) -> list[Realisation]:
        """Return the realisations of a solution and of those tried instead, as soon as one lacks nothing."""
        found = list[Realisation]()
        while len(found) < self.attempts:
            chosen = extraction.chosen(solution)
            found.append(realise(start.graph, extraction.egraph, chosen, rewriter, lambda: work.is_out_of_time))
            extraction = extraction.without(found[-1].missing)
            is_to_go_on = found[-1].missing and not work.is_spent
            other = self._extracted(work, extraction, None) if is_to_go_on else None
            if other is None:
                break
            solution = other
        return found

    def _prices(self, start: State) -> NodePrice:
        """Return the prices of nodes by which an e-graph is explored and solved.

        Prices that do not add up over nodes are replaced by analytic ones, in proportion: the start costs as much.
        """
        analytic, header = AnalyticCost(), start.graph.header
        if _adds_up(self.cost_model):
            return NodePrices(self.cost_model, header)
        price, scale = NodePrices(analytic, header), start.runtime_ms / (analytic.runtime_ms(start.graph) or 1.0)
        return lambda node, operands: scale * price(node, operands)

    def _explored(self, work: Workspace, egraph: ModelEGraph, matcher: EMatcher) -> Exploration:
        started, uses = time.perf_counter(), len(egraph.uses)
        share_s, config = _share(work, _EXPLORING), self.exploration
        if work.ledger.rewrites_left is not None:
            most = round(_USING * work.ledger.rewrites_left)
            config = replace(config, max_uses=most if config.max_uses is None else min(most, config.max_uses))

        def is_over() -> bool:
            return work.is_out_of_time or (share_s is not None and time.perf_counter() - started >= share_s)

        exploration = explore(egraph, matcher, config, is_over)
        rewriting_s = time.perf_counter() - started
        work.ledger.tally.count(Effort(rewrites=len(egraph.uses) - uses, rewriting_s=rewriting_s))
        return exploration

    def _extracted(self, work: Workspace, extraction: ModelProblem, incumbent: Solution | None) -> Solution | None:
        if self.extraction == "greedy":
            return greedy_extraction.extract(extraction.problem)
        return ilp.extract(extraction.problem, incumbent, self._limits(work, _SOLVING))

    def _limits(self, work: Workspace, part: float) -> ilp.Limits:
        limits_s = [seconds for seconds in (self.limits.time_s, _share(work, part)) if seconds is not None]
        return replace(self.limits, time_s=min(limits_s, default=None))

    def _optimality(self, exploration: Exploration, solution: Solution, found: State) -> Optimality:
        """Tell how much dearer what was found in the end is than the bound, and if that is as good as nothing.

        Nothing is known of the graphs' prices if these do not add up over nodes.
        """
        limited_by = exploration.limited_by or solution.limited_by
        if not _adds_up(self.cost_model):
            return Optimality(proven=False, bound_ms=0.0, gap_percent=100.0, limited_by=limited_by)
        bound_ms = min(solution.bound_ms, found.runtime_ms)
        gap_percent = 100.0 * (found.runtime_ms - bound_ms) / found.runtime_ms if found.runtime_ms else 0.0
        proven = solution.proven and gap_percent <= 100.0 * self.limits.relative_gap
        return Optimality(proven, bound_ms, gap_percent, limited_by)

    def _cheapest(self, work: Workspace, extraction: ModelProblem, best: Solution, original: Graph) -> Solution:
        """Return the solution whose graph is the cheapest by the cost model, the best one or an alternative.

        Where prices add up that is known to be the best one.
        """
        if _adds_up(self.cost_model):
            return best
        count = self.solutions - 1
        limits = self._limits(work, _SOLVING / max(count, 1))
        others = alternatives(extraction.problem, best, count, limits, self.random_seed)
        return min((best, *others), key=lambda s: work.evaluator.runtime_ms(extraction.graph(s, original)))


def _used(egraph: ModelEGraph) -> list[str]:
    """Return the ids of the rules that were used in an e-graph, if only for what was there already."""
    return [use.rule.id for use in (*egraph.uses, *egraph.idle_uses)]


_SEEDING, _EXPLORING, _SOLVING = 0.4, 0.3, 0.5
"""Parts of the time that is left which one stage may take, if the budget is a time."""
_USING = 0.75
"""The part of the rewrites that are left which uses of rules may take; the others are for realising a solution."""


def _share(work: Workspace, part: float) -> float | None:
    """Return the seconds of a part of the time that is left; None if there is no limit."""
    left_s = work.ledger.time_left_s
    return None if left_s is None else max(1e-3, part * left_s)


def _out_of_time(work: Workspace, best: State) -> State:
    """Return the best state so far; if no e-graph has been solved before, nothing is known of how good it is."""
    work.optimality = work.optimality or Optimality(proven=False, bound_ms=0.0, gap_percent=100.0, limited_by="time")
    return best


def _adds_up(cost_model: CostModel) -> bool:
    """Tell if the price of a graph is the sum of its nodes' prices; a subclass may say otherwise."""
    return isinstance(cost_model, AnalyticCost) and local(cost_model) is not None


OTHERS: Mapping[str, Callable[..., Search]] = {"greedy": Greedy, "chains": Chains}
"""The searches that may go before equality saturation, and on from what a round found, by name."""


def equality_saturation(
    library: Library,
    rewriter: Rewriter,
    cost_model: CostModel,
    *,
    before: str | None = "greedy",
    after: str | None = "greedy",
    exploration: Mapping[str, Any] | None = None,
    limits: Mapping[str, Any] | None = None,
    **options: Any,
) -> EqualitySaturation:
    """Make the method: `exploration` and `limits` are settings of `ExplorationConfig` and `ilp.Limits`.

    `before` names the search whose result is in the e-graph from the start, `after` the one that ends each round.
    `InputError` for an unknown setting.
    """
    for name in (before, after):
        if name is not None and name not in OTHERS:
            raise InputError(f"equality saturation goes with {' or '.join(OTHERS)} before and after it, not {name!r}")
    _check_settings(EqualitySaturation, options, ("library", "rewriter", "cost_model", "seed"))
    sharing = rewriter if isinstance(rewriter, SharingRewriter) else SharingRewriter(rewriter.rules, rewriter.compiled)
    private = Rewriter(rewriter.rules, rewriter.compiled) if sharing is rewriter and before is not None else rewriter
    return EqualitySaturation(
        library,
        sharing,
        cost_model,
        seed=None if before is None else OTHERS[before](library, private, cost_model),
        after=None if after is None else OTHERS[after](library, sharing, cost_model),
        exploration=_configured(ExplorationConfig, exploration),
        limits=_configured(ilp.Limits, limits),
        **options,
    )


def tensat(library: Library, rewriter: Rewriter, cost_model: CostModel, **options: Any) -> EqualitySaturation:
    """Make the method with the settings of Tensat (Yang et al., MLSys 2021), to compare with.

    No greedy search before or after it, all rules at once, no price guard, and an e-graph without cycles.
    """
    own = {
        "before": None,
        "after": None,
        "rounds": 1,
        "whole_nodes": None,
        "declared_first": False,
        "exploration": vars(TENSAT),
        "limits": {"time_s": 3600.0, "nodes": 1_000_000},
        "name": "tensat",
    }
    return equality_saturation(library, rewriter, cost_model, **{**own, **options})


def _configured(kind: type[T], settings: Mapping[str, Any] | None) -> T:
    _check_settings(kind, settings or {})
    return kind(**(settings or {}))


def _check_settings(kind: type, settings: Mapping[str, Any], reserved: Collection[str] = ()) -> None:
    """Raise `InputError` for a setting that is no field of the dataclass, or of another type, or that its maker gives
    it.
    """
    known = [entry.name for entry in fields(kind) if entry.name not in reserved]
    types = get_type_hints(kind)
    for name, value in settings.items():
        if name not in known:
            raise InputError(f"equality saturation has no setting {name!r}: choose among {', '.join(known)}")
        is_whole_float = isinstance(value, int) and isinstance(float(value), types[name])
        if not isinstance(value, types[name]) and not is_whole_float:
            raise InputError(f"the setting {name} of equality saturation cannot be {value!r}")
