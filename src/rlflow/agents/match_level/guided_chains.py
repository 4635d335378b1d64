"""Chains of rewrites in the order of what V has learned from experts, and an e-graph of the rules that V likes.

Greedy search takes what saves most and so closes ways that open only later: a fused product no longer lets a slice
pass. This search begins where greedy began. From each state it tries the rewrite that an expert most likely takes, then
the likeliest that touches what the last ones made, and so on; as soon as the graph is cheaper than where the chain
began, the chain is kept. One that gets nowhere is undone, and not tried again where it looks the same:

    state   p(an expert takes it), and what it leads to     chain: the first by one of three orders of the two,
                                                            then by p among those next to the last steps
    next    the first state on a chain that is cheaper; none: greedy descent, and another climb in another order

A search is

    play        an episode of C, if the policy has one, by its most probable actions
    listen      a climb by V alone, which prices what it takes; what V says on its way is remembered
    saturate    an e-graph of the original and of the best so far, by the rules that V likes (`rule_guard`)
    price       chains that look at every price (`search.chains`), from the original again, where V may know little
    saturate    once more if V spoke against rules that experts took in lessons: an e-graph of these as well
    climb       in the other orders, and then with noise, until the rewrites end

An e-graph finds what no order of chains does, but by all rules it is mostly full of what leads nowhere. The noise of
climbs is shared by all matches of a rule: it is the order of kinds of rewrites that leads elsewhere, not the order of
places.

The invariant: what is returned is never dearer than what greedy search finds, whose result is the first candidate. Of a
deep graph, which is searched in short, that holds as long as the budget does not end what is carried over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from rlflow.agents.match_level.preference import ORDERS, Preference
from rlflow.agents.match_level.rule_guard import RuleGuard
from rlflow.agents.match_level.scorers import MakeScorer, Scores
from rlflow.agents.player import Player
from rlflow.cost.base import CostModel
from rlflow.errors import InputError
from rlflow.ir.graph import Graph
from rlflow.ir.preview import runs
from rlflow.method import OnProgress, State, Workspace
from rlflow.rules.library import Library
from rlflow.rules.matching.rewriter import Location, Rewriter
from rlflow.rules.matching.sharing import SharingRewriter
from rlflow.rules.rule import Rule
from rlflow.search.abridged import in_short
from rlflow.search.alike import everywhere
from rlflow.search.base import Search
from rlflow.search.chains import Chains
from rlflow.search.equality_saturation import EqualitySaturation, equality_saturation
from rlflow.search.greedy import Greedy, descend, enough_ms, saves
from rlflow.search.locality import Surroundings, surroundings_in
from rlflow.search.seeding import seeded

_NEAR = 4  # edges: what lies farther from a chain's first step hardly ever changes where it leads
_TRIES = 4  # continuations of a chain of which the first that leads to a new graph is taken
_IDLE = 20  # climbs in a row that carry out no rewrite, after which none is expected to
_ROUNDS = 2  # of an e-graph: by the shipped rules first, by all that are admitted around what came out
_SOLVER = {"time_s": None, "nodes": 200}  # of an extraction, as in lessons: no clock decides what must repeat


@dataclass(frozen=True)
class ChainConfig:
    """Settings of the search.

    - `length`: rewrites of a chain at most; `least_probability`: below it, a rewrite is not tried.
    - `failure_penalty`: taken off the logit of a first step each time that a chain from one that looks like it failed.
    - `orders`: of first steps (`preference.ORDERS`), one climb each without noise; later climbs draw one of them.
    - `playing`: the share of the rewrites that an episode of C may take; 0: there is none.
    - `listening`: the share of the rewrites after which the first climb ends.
    - `saturation`: of those that are left then, the share of the e-graph. It admits rules of which V gives a match at
      least `admitted_probability`, and unheard-of ones whose share in lessons is at least `admitted_share`.
    - `by_price`: of those that are left then, the share of the chains that look at prices. Of those that they leave,
      `saturation` is also the share of the e-graph of more rules.
    - `noise`: scales of the noise of which later climbs draw one; `from_start`: the share of them that begins at the
      original, the others on the best way so far; `rewrites_per_climb`: those after which such a climb ends.
    - `rewrites`: those carried out after which the search ends, those of greedy search aside.
    """

    length: int = 12
    least_probability: float = 0.02
    failure_penalty: float = 3.0
    orders: tuple[str, ...] = ("confident", "patient", "far_sighted")
    playing: float = 0.5
    listening: float = 0.2
    saturation: float = 1.0
    admitted_probability: float = 0.2
    admitted_share: float = 0.02
    by_price: float = 0.5
    noise: tuple[float, ...] = (1.0, 2.0, 3.0)
    from_start: float = 0.7
    rewrites_per_climb: int = 400
    rewrites: int = 2000

    def __post_init__(self) -> None:
        unknown = [order for order in self.orders if order not in ORDERS]
        if unknown or not self.orders:
            missing, known = ", ".join(unknown) or "at all", ", ".join(ORDERS)
            raise InputError(f"rlflow: there is no order of first steps {missing}; choose among {known}")
        if not self.noise:
            raise InputError("rlflow: later climbs draw one of the scales of noise, of which there is none")
        counts = {
            "length": self.length,
            "rewrites": self.rewrites,
            "rewrites_per_climb": self.rewrites_per_climb,
        }
        for name, count in counts.items():
            if not isinstance(count, int) or count < 0:
                raise InputError(f"rlflow: {name} is a number of rewrites, not {count!r}")
        shares = ("playing", "listening", "saturation", "by_price", "admitted_share", "from_start")
        for name in (*shares, "admitted_probability", "least_probability"):
            share, is_share = getattr(self, name), name in shares
            if not (0 <= share <= 1 if is_share else 0 < share < 1):
                ends = "included" if is_share else "excluded"
                raise InputError(f"rlflow: {name} lies between 0 and 1, both {ends}, and is not {share!r}")


MakePlayer = Callable[[Workspace, State], Player[Any, Any]]
"""Makes the player of episodes that begin at a state of a workspace."""


class _Climbing(NamedTuple):
    """One search: the workspace, whose ledger ends it, and the scorer, whose scores are remembered rule by rule."""

    work: Workspace
    judge: RuleGuard

    def at_most(self, rewrites: int) -> _Climbing:
        """Return the same for so many rewrites, in a workspace of its own: what an e-graph of some rules proves says
        nothing of the others.
        """
        return self._replace(work=self.work.within(self.work.ledger.child(rewrites=rewrites)))

    def with_share(self, share: float, otherwise: State, search: Callable[[_Climbing], State]) -> State:
        """Let a search carry out this share of the rewrites left; if that is less than one, return `otherwise`."""
        rewrites = round(share * (self.work.ledger.rewrites_left or 0))
        return search(self.at_most(rewrites)) if rewrites else otherwise


@dataclass
class _Memory:
    """The chains of one climb that got nowhere.

    failed: surroundings of their first steps, which are not tried again; failures: how often one that looks like that
    failed, by the key of its token; seen: graphs to which a first step has led.
    """

    failed: set[Surroundings] = field(default_factory=set)
    failures: Counter[bytes] = field(default_factory=Counter)
    seen: set[str] = field(default_factory=set)

    def failures_of(self, scores: Scores) -> np.ndarray:
        """(M,): how often a first step failed that looks like each match."""
        of_kind = np.array([self.failures[token.key] for token in scores.state.tokens], dtype=np.float64)
        return of_kind[scores.state.token_of]


@dataclass(frozen=True)
class GuidedChains(Search):
    """Ends with its rewrites or the budget, or where no rewrite is probable enough to be tried.

    A deep graph is searched in short (`search.abridged`); its rewrites are those of the graph in short.

    The rewriter must share, as that of the experts did. `scored_by` makes the scorer: V (`EncoderScorer`), or
    what V is compared with; `shares` is what lessons tell of rules, by their ids. `plays` makes a
    player of C; None if the policy has no C.
    """

    scored_by: MakeScorer
    greedy: Search
    saturation: EqualitySaturation
    chains: Search
    shares: Mapping[str, float] = field(default_factory=dict)
    config: ChainConfig = field(default_factory=ChainConfig)
    plays: MakePlayer | None = None
    seed: int = 0
    name: str = "rlflow"

    def improve(self, work: Workspace, state: State, on_progress: OnProgress | None = None) -> State:
        if work.rewriter.matching != SharingRewriter.matching:
            raise InputError(
                "rlflow searches in a workspace of sharing matching, as its experts did: give it a SharingRewriter"
            )
        carried = in_short(work, state, self.saturation.whole_nodes, partial(self.improve, on_progress=on_progress))
        if carried is not None:
            return carried
        best = min(state, seeded(work, self.greedy, work.ledger), key=lambda s: s.runtime_ms)
        if self.config.rewrites < 1:
            return best
        judge = self.scored_by(state.graph, work.rewriter, self.cost_model)
        climbing = _Climbing(work, RuleGuard(judge, work.rewriter.rules, self.shares))
        return self._best(climbing.at_most(self.config.rewrites), state, best, on_progress)

    def _best(self, climbing: _Climbing, start: State, best: State, on_progress: OnProgress | None) -> State:
        """Search in one way after another; the best of where all end, and of what was the best before."""
        work, begun = climbing.work, climbing.work.ledger.effort.rewrites
        rng = np.random.default_rng(self.seed)
        openings = self._openings(climbing, start, best)
        number = idle = 0
        while not work.is_spent and idle < _IDLE:
            before = work.ledger.effort.rewrites
            found = (
                openings[number](best) if number < len(openings) else self._climbed_again(climbing, start, best, rng)
            )
            if saves(work, best, found):
                best = found
            number += 1
            idle = 0 if work.ledger.effort.rewrites > before else idle + 1
            if on_progress:
                done = min(1.0, (work.ledger.effort.rewrites - begun) / self.config.rewrites)
                on_progress(max(work.fraction, done), f"best {best.runtime_ms:.3f} ms after {number} searches")
        return best

    def _openings(self, climbing: _Climbing, start: State, greedy: State) -> list[Callable[[State], State]]:
        """Return the searches that come first, each of which takes the best state so far."""
        config, share = self.config, climbing.with_share
        searches: list[Callable[[State], State]] = [
            lambda best: self._listened(climbing, start, greedy),
            lambda best: share(config.by_price, start, lambda part: self.chains.improve(part.work, start)),
            lambda best: share(config.saturation, best, lambda part: self._saturated_again(part, best)),
            *(lambda best, order=order: self._climbed_quietly(climbing, start, order) for order in config.orders[1:]),
        ]
        if (plays := self.plays) is None or not config.playing or not start.runtime_ms:
            return searches
        return [lambda best: self._played(climbing, start, plays), *searches]

    def _listened(self, climbing: _Climbing, start: State, greedy: State) -> State:
        """Return what an e-graph finds by the rules that V was heard to like, around where a climb by V alone ends.

        What C found is left to the second e-graph, so that the two begin in different places.
        """
        config, share = self.config, climbing.with_share
        heard = round(config.listening * config.rewrites)
        climbed = self._climbed_quietly(climbing.at_most(heard), start, config.orders[0]) if heard else start
        best = min(greedy, climbed, key=lambda s: s.runtime_ms)
        return share(config.saturation, best, lambda part: self._saturated(part, best))

    def _climbed_again(self, climbing: _Climbing, start: State, best: State, rng: np.random.Generator) -> State:
        """Return where a climb with noise ends, from the start or from somewhere on the best way."""
        noise = float(rng.choice(self.config.noise)) * rng.gumbel(size=len(self.rewriter.rules))
        path = best.path()
        begin = start if rng.random() < self.config.from_start else path[int(rng.integers(len(path)))]
        brief = climbing.at_most(self.config.rewrites_per_climb)
        climbed = self._climbed(brief, begin, Preference(str(rng.choice(self.config.orders)), noise))
        return descend(climbing.work, climbed)

    def _played(self, climbing: _Climbing, start: State, plays: MakePlayer) -> State:
        """Return where C's episode ends, by its most probable actions, and greedy search from there."""
        work = climbing.work.within(climbing.work.ledger.part(self.config.playing))
        return descend(work, work.note(plays(work, start).play(None, candidates=1)))

    def _climbed_quietly(self, climbing: _Climbing, start: State, order: str) -> State:
        """Return where a climb without noise ends."""
        quiet = np.zeros(len(self.rewriter.rules))
        return descend(climbing.work, self._climbed(climbing, start, Preference(order, quiet)))

    def _saturated(self, climbing: _Climbing, best: State) -> State:
        """Return what an e-graph of the workspace's start finds by the rules of which V was heard to think well."""
        return self._saturated_by(climbing.judge.admitted(*self._admission), climbing.work, best)

    def _saturated_again(self, climbing: _Climbing, best: State) -> State:
        """Return what an e-graph finds by the rules of lessons that V spoke against as well; `best` without any."""
        rules = climbing.judge.tolerated(*self._admission)
        has_more = len(rules) > len(climbing.judge.admitted(*self._admission))
        return self._saturated_by(rules, climbing.work, best) if has_more else best

    @property
    def _admission(self) -> tuple[float, float]:
        return self.config.admitted_probability, self.config.admitted_share

    def _saturated_by(self, rules: Sequence[Rule], work: Workspace, best: State) -> State:
        return replace(self.saturation, rewriter=SharingRewriter(rules)).improve(work, best)

    def _climbed(self, climbing: _Climbing, state: State, preference: Preference) -> State:
        """Take one chain after another, each of which ends at a cheaper graph, until none does."""
        memory = _Memory()
        chained: State | None = state
        while chained is not None:
            state = chained
            chained = self._next_chain(climbing, state, preference, memory)
        return state

    def _next_chain(self, climbing: _Climbing, state: State, preference: Preference, memory: _Memory) -> State | None:
        surroundings = surroundings_in(state.graph, _NEAR)
        scores = climbing.judge.of(state.graph)
        order = preference.first(scores) - self.config.failure_penalty * memory.failures_of(scores)
        for number in _likely(scores, order, self.config.least_probability):
            location, match = scores.state.matches[number]
            place = surroundings(match)
            if place in memory.failed:
                continue
            found = self._chain(climbing, preference, state, location, memory.seen)
            if found is not None:
                alike = [m.nodes for _, m in scores.state.matches if m is not match and surroundings(m) == place]
                return everywhere(climbing.work, state, found, alike)
            if climbing.work.is_spent:
                return None
            memory.failed.add(place)
            memory.failures[scores.key_of(number)] += 1
        return None

    def _chain(
        self, climbing: _Climbing, preference: Preference, start: State, first: Location, seen: set[str]
    ) -> State | None:
        """Return the first state on a chain that is cheaper than its start; None if there is none."""
        enough, state = enough_ms(start), climbing.work.step(start, first)
        if state.runtime_ms < enough:
            return state
        if state.hash in seen:
            return None
        seen.add(state.hash)
        passed, changed = {start.hash, state.hash}, set(_changed(start.graph, state.graph))
        for _ in range(self.config.length - 1):
            following = self._continued(climbing, preference, state, changed, passed)
            if following is None:
                return None
            passed.add(following.hash)
            changed.update(_changed(state.graph, following.graph))
            state = following
            if state.runtime_ms < enough:
                return state
        return None

    def _continued(
        self, climbing: _Climbing, preference: Preference, state: State, changed: set[int], passed: set[str]
    ) -> State | None:
        """Return the state after the likeliest rewrite near the changed nodes that leads to a graph not passed."""
        scores, near = climbing.judge.of(state.graph), _neighbourhood(state.graph, changed)
        tries = 0
        for number in _likely(scores, preference.following(scores), self.config.least_probability):
            location, match = scores.state.matches[number]
            if near.isdisjoint(match.nodes) and not any(ref.node in near for ref in match.bindings.values()):
                continue
            if climbing.work.is_spent or tries == _TRIES:
                return None
            tries += 1
            following = climbing.work.step(state, location)
            if following.hash not in passed:
                return following
        return None


def guided_chains(
    scored_by: MakeScorer,
    library: Library,
    rewriter: Rewriter,
    cost_model: CostModel,
    config: ChainConfig,
    seed: int = 0,
    shares: Mapping[str, float] | None = None,
    plays: MakePlayer | None = None,
) -> GuidedChains:
    """Make the search with the rules of a rewriter, which need not share. shares, plays: as of `GuidedChains`."""
    rules, compiled = rewriter.rules, rewriter.compiled
    greedy = Greedy(library, Rewriter(rules, compiled), cost_model)
    sharing = rewriter if isinstance(rewriter, SharingRewriter) else SharingRewriter(rules, compiled)
    saturation = equality_saturation(library, sharing, cost_model, before=None, rounds=_ROUNDS, limits=_SOLVER)
    chains = Chains(library, sharing, cost_model)
    return GuidedChains(
        library, sharing, cost_model, scored_by, greedy, saturation, chains, shares or {}, config, plays, seed
    )


def _likely(scores: Scores, order: np.ndarray, least: float) -> Iterator[int]:
    """Yield the numbers of matches that are probable enough, the first by order before others."""
    threshold = np.log(least) - np.log1p(-least)
    for number in np.argsort(-order, kind="stable"):
        if scores.taken[number] >= threshold:
            yield int(number)


def _changed(before: Graph, after: Graph) -> Iterator[int]:
    """Yield the nodes that the last edit added, and those whose operands it changed."""
    if after.edit is None:
        return
    yield from after.edit.change.added
    yield from (i for i in after.edit.change.touched if after.nodes[i] is not before.nodes.get(i))


def _neighbourhood(graph: Graph, changed: set[int]) -> set[int]:
    """The changed nodes that are still there, and those next to them."""
    near: set[int] = set()
    for identifier in changed:
        if identifier in graph.nodes:
            near.add(identifier)
            near.update(graph.consumers[identifier])
            near.update(i for i in graph.nodes[identifier].sources if runs(graph.nodes[i]))
    return near
