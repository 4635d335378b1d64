"""The phases in which one model is optimised, each within a deadline of its own.

    judge      may anything be compared with the original?
    move       if that is asked for, whole-graph passes of public libraries, before any rule
    search     by the cost model of the search
    race       what it found and what its steps lead to without its main rules (`alternatives`) run against each other
    measure    where there is no time for that, a few graphs on the way are priced again on this machine (`shortlist`),
               if it is for ONNX Runtime
    check      the candidate computes the same
    time       end to end against the original, last

Whatever a candidate does in a phase that the original does not do leads to `Refused` (`optimise.refusal`).

A phase takes its share of what is left when it begins (`clock.Shares`). What check and timing need of a large model is
foreseen from how long judging took, and kept free by those before them: the check may not be cut short, and a timing of
too few rounds decides nothing. What judging learned is not found out again: the check compares with the outputs that
the original had then.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path

from onnx import ModelProto

from rlflow.cost.base import CostModel, MeasuringCostModel
from rlflow.equivalence.report import EquivalenceReport
from rlflow.errors import InputError, RLFlowError
from rlflow.ir.graph import Graph
from rlflow.ir.structural_hash import structural_hash
from rlflow.method import Method, OnProgress, OptimisationResult
from rlflow.onnx_io.external_data import write_mapped
from rlflow.optimise import gate, timing
from rlflow.optimise.clock import Deadline, Shares, Stopwatch
from rlflow.optimise.diagnose import Derivation
from rlflow.optimise.gate import GateConfig, Judgement, Pace
from rlflow.optimise.pre_passes import FirstMove, GraphOf, Moved, none_taken
from rlflow.optimise.refusal import Refusal, Refused, of_candidate
from rlflow.optimise.reported.latency import LatencyChange
from rlflow.optimise.reported.passes import PassesReport
from rlflow.optimise.reported.race import Measured
from rlflow.optimise.shortlist import Shortlist
from rlflow.rules.portability import gainless_in
from rlflow.runtime.isolation import ProcessTimeout
from rlflow.runtime.session import SETTINGS
from rlflow.runtime.timing.belief import Prior
from rlflow.runtime.timing.latency import Round
from rlflow.trajectory.record import Trajectory
from rlflow.trajectory.replay import of_its_rules, replay

_LOGGER = logging.getLogger(__name__)

_CHECK_OVER_JUDGING = 1.0
"""The time that is kept free for a check over that which judging took. The candidate is exported besides, and runs half
as often.
"""
_LONGEST_CHECK = 1.5
"""However late it is, a check may take so many times as long as judging did."""
_SESSIONS_IN_ROUND = 4
_DECIDING_ROUNDS = 4
"""Rounds that mostly decide. What is clear takes two."""
_PROVING_ROUNDS = 8
"""Rounds that mostly prove it. What is clear takes four."""
_LEAST_SESSION_S = 0.025
"""However fast a model is, a session is timed for so long."""
_PRICE_S, _PRICE_OVER_RUN = 0.03, 0.5
"""What measuring a price takes at least, and what more over a run of the model. It may be twice as much: the first few
prices tell, which are not begun where there would be too little time anyway.
"""
_MOST_FOR_MEASURING = 0.6
"""The part of the time for searching and measuring that is kept free for measuring at most."""
_MOST_FOR_PASSES = 0.4
"""The part of the time before the check that passes may take at most, where there are rules to search with besides."""
_MOST_FOR_TIMING = 0.5
"""The part of the time after the judging and without the check that is kept free for timing at most."""


@dataclass(frozen=True)
class Phases:
    """The parts that each phase works with. Without a `shortlist` nothing is measured after the search.

    `reproducer` is the folder for what shows a wrong rule. `first_move` runs passes before the search, if there is one.
    `made_without` makes the method anew without some rules, by their ids, of which `disabled` are left out already; a
    method that came ready cannot be made again. `known` are steps that an earlier run had found. `watch` takes the time
    of each phase.
    """

    method: Method
    cost_model: CostModel
    setting: str
    gate: GateConfig
    shares: Shares = field(default_factory=Shares)
    shortlist: Shortlist | None = None
    reproducer: Path | None = None
    on_progress: OnProgress | None = None
    first_move: FirstMove | None = None
    made_without: Callable[[Collection[str]], Method] | None = None
    disabled: frozenset[str] = frozenset()
    known: Trajectory | None = None
    watch: Stopwatch = field(default_factory=Stopwatch)

    def without(self, rules: Collection[str]) -> Phases | None:
        """Return the phases with a method that does not have these rules, either; None if it cannot be made."""
        disabled = self.disabled | set(rules)
        if self.made_without is None or disabled == self.disabled:
            return None
        with of_candidate("making the method anew"):
            return replace(self, method=self.made_without(disabled), disabled=disabled)

    def at_each_size(self, judgement: Judgement) -> Iterator[tuple[Phases, Judgement]]:
        """Yield the phases for each size at which a result is checked and timed, with the judgement there."""
        for config, own in zip(self.gate.at_each_size, judgement.at_each_size, strict=True):
            yield replace(self, gate=config), own

    def judging(self, model: Path, deadline: Deadline) -> AbstractContextManager[Future[Judgement]]:
        return gate.judging(model, self.gate, deadline.part(self.shares.of("judging")))

    def judge(self, judging: Future[Judgement]) -> Judgement:
        self.begun("judging", "judging the original")
        return judging.result()

    def move(
        self, model: ModelProto, original: Path, graph_of: GraphOf, judgement: Judgement, deadline: Deadline
    ) -> Moved | None:
        """Return what passes make of a model, or the very model with the reason; None if no passes are wanted.

        What is refused is made anew without the passes that made it, as long as there is time.
        original: the model's file, beside which another one is written to be compared with it.
        """
        first_move, refusals = self.first_move, list[Refusal]()
        if first_move is None:
            return None
        while True:
            share = _MOST_FOR_PASSES if self.method.rewriter.rules else 1.0
            until, on_progress = deadline.part(share), self.begun("passes", "passes of other libraries")
            try:
                with of_candidate("passes"):
                    moved = first_move.of(model, graph_of, self.cost_model, until, on_progress)
            except Refused as refused:
                report = PassesReport(first_move.backend, left_because=f"what they made {refused.refusal.reason}")
                return Moved(model, report, (*refusals, refused.refusal))
            if moved.model is model:
                return replace(moved, refusals=tuple(refusals))
            try:
                with of_candidate("the check of passes"):
                    self._check_moved(moved, original, judgement, deadline)
            except Refused as refused:
                refusals.append(refused.refusal)
                others = first_move.excluding(moved.report.passes)
                if deadline.is_over or others == first_move:  # else passes that run all the same never end
                    return none_taken(model, moved, tuple(refusals))
                first_move = others
            else:
                return replace(moved, refusals=tuple(refusals))

    def _check_moved(self, moved: Moved, original: Path, judgement: Judgement, deadline: Deadline) -> None:
        self.begun("checking", "checking what passes made")
        made = write_mapped(moved.model, original.with_name("passes.onnx"), like=original)
        self.check_made(original, made, judgement, deadline, self.reproducer)

    def check_made(
        self, original: Path, made: Path, judgement: Judgement, deadline: Deadline, folder: Path | None = None
    ) -> EquivalenceReport:
        """Do what `gate.check_made` does, on the inputs that the original was judged by, at each size; the report is
        that of the first.
        """
        reports = list[EquivalenceReport]()
        for phases, own in self.at_each_size(judgement):
            assert own.reference is not None  # it could be judged
            longest_s = _longest_check_s(own, deadline)
            reports.append(gate.check_made(original, made, phases.gate, longest_s, own.reference, folder))
        return reports[0]

    def search(
        self, graph: Graph, judgement: Judgement, deadline: Deadline, is_raced: bool = False
    ) -> OptimisationResult | None:
        """Return what the method finds; None if the graph could not even be priced in time.

        If there may be time to measure what it finds, that is kept free, unless it `is_raced` instead.
        """
        until = deadline.part(self.shares.of("searching"))
        measuring_s = 0.0 if is_raced else self._measuring_s(graph, judgement)
        if measuring_s <= _MOST_FOR_MEASURING * deadline.left_s:
            until = min(until, deadline.before(measuring_s), key=lambda each: each.end_s)
        if isinstance(self.cost_model, MeasuringCostModel) and not math.isinf(until.end_s):
            self.begun("measuring", "measuring the original")
            if self.cost_model.measure([graph], time.perf_counter() + until.left_s):
                return None
        on_progress = self.begun("searching", "searching")
        with of_candidate("the search", passing=(InputError,)):
            return self._or_known(graph, self.method.optimise(graph, until.budget(), on_progress))

    def _or_known(self, graph: Graph, found: OptimisationResult) -> OptimisationResult:
        """Return what the known steps make of the graph, if they begin at it and are cheaper than what was found."""
        known, rewriter = self.known, self.method.rewriter
        if known is None or (known.start_hash, known.matching) != (structural_hash(graph), rewriter.matching):
            return found
        if self.disabled.intersection(step.rule for step in known.steps):
            return found
        try:
            *_, last = (graph, *replay(graph, known, of_its_rules(known, rewriter)))
        except RLFlowError as error:
            _LOGGER.warning("the steps that are known from before cannot be taken again: %s", error)
            return found
        price_ms = self.cost_model.runtime_ms(last)
        if price_ms >= found.best_ms:
            return found
        return replace(found, best=last, best_ms=price_ms, trajectory=known, optimality=None)

    def measure(
        self, graph: Graph, found: OptimisationResult, judgement: Judgement, deadline: Deadline
    ) -> tuple[OptimisationResult, Measured | None]:
        """Return the best of a few graphs that the search went through, and what was measured of it."""
        if self.shortlist is None or not found.trajectory.steps:
            return found, None
        until = deadline.part(self.shares.of("measuring"), least_s=self._measuring_s(graph, judgement))
        on_progress, price_s = self.begun("measuring", "measuring what was found"), self._price_s(judgement)
        try:
            with of_candidate("measuring"):
                return self.shortlist.best(graph, found, self.method.rewriter, until, on_progress, price_s)
        except Refused as refused:  # the check will tell if the candidate is to blame
            _LOGGER.warning("what the search found is checked unmeasured: it %s", refused.refusal.reason)
            return found, None

    def may_race(self, judgement: Judgement, deadline: Deadline) -> bool:
        """True if whole models can race in half of what will be left after the check; else their parts are measured.

        That is by ONNX Runtime's prices, which say nothing sure of other runtimes: where one of these is asked for,
        nothing but a race does.
        """
        if self.gate.racers < 2 or deadline.is_over or (self.shortlist is None and self._is_priced):
            return False
        return self.racers_in(self.gate.racers, judgement, deadline) == self.gate.racers

    def racers_in(self, most: int, judgement: Judgement, deadline: Deadline) -> int:
        """Return how many of so many can race in half of what will be left after the check; one needs no race."""
        after_check_s = deadline.left_s - _CHECK_OVER_JUDGING * judgement.wall_s
        most_s = _MOST_FOR_TIMING * after_check_s
        return next((n for n in range(most, 1, -1) if self._race_s(judgement, 1, n) <= most_s), min(most, 1))

    def race(
        self,
        original: Path,
        candidates: Sequence[Path],
        predicted: Sequence[float],
        judgement: Judgement,
        deadline: Deadline,
    ) -> timing.Race | None:
        """Let candidates race as long as there is time to check the first and to time it; None if it came to no end.

        `predicted` are the ratios of the original's price to theirs.
        """
        until = deadline.before(_CHECK_OVER_JUDGING * judgement.wall_s)
        runs = next(
            (
                runs
                for runs in range(self.gate.runs_per_round, 1, -1)
                if self._race_s(judgement, runs, self.gate.racers) <= until.left_s / 2
            ),
            1,
        )
        if until.is_over:
            return None
        self.begun("racing", "racing what was found")
        limits = gate.limits_until(self.gate, until)
        try:
            config = replace(self.gate, runs_per_round=runs)
            return timing.raced(original, candidates, predicted, self.setting, config, limits)
        except RLFlowError as error:  # the check will tell if one of them is to blame
            _LOGGER.warning("what the search found is checked without a race: %s", error)
            return None

    def check(self, derivation: Derivation, judgement: Judgement, deadline: Deadline) -> EquivalenceReport | None:
        """Do what `gate.check` does, on the inputs that the original was judged by; None if it takes too long."""
        self.begun("checking", f"checking the result against the original{self.gate.where}")
        longest_s = _longest_check_s(judgement, deadline)
        with of_candidate("the check"):
            try:
                return gate.check(derivation, self.gate, self.reproducer, longest_s, judgement.reference)
            except ProcessTimeout:
                return None

    def time(
        self,
        model: Path,
        candidate: Path,
        prior: Prior,
        judgement: Judgement,
        deadline: Deadline,
        before: Sequence[Round] = (),
    ) -> dict[str, LatencyChange]:
        """Time both models until the deadline; nothing comes of it if that is too near for a single round.

        `prior` is what is believed of the candidate beforehand, and `before` are rounds that count as well.
        """
        belief, proof = replace(self.gate.belief, prior=prior), self.gate.proof
        before = () if proof else before  # of several candidates one wins by chance more often than a proof may err
        runs = self.runs_per_round(judgement, deadline.left_s)
        if deadline.is_over or not runs:
            return {self.setting: timing.latency_change(before, belief, proof)} if before else {}
        self.begun("timing", f"timing the result against the original{self.gate.where}")
        time_s = self.gate.time_s if math.isinf(deadline.end_s) else math.inf
        config = replace(self.gate, runs_per_round=runs, time_s=time_s, belief=belief)
        with of_candidate("timing"):
            change = timing.timed(
                model, candidate, self.setting, config, lambda: deadline.left_s, self.on_progress, before
            )
        return {self.setting: change}

    def time_at_each_size(
        self,
        model: Path,
        candidate: Path,
        prior: Prior,
        judgement: Judgement,
        deadline: Deadline,
        before: Sequence[Round] = (),
    ) -> list[dict[str, LatencyChange]]:
        """Do what `time` does, at each size; the rounds `before` were those of the first."""
        found, sizes = list[dict[str, LatencyChange]](), list(self.at_each_size(judgement))
        for place, (phases, own) in enumerate(sizes):
            until = deadline.part(1.0 / (len(sizes) - place))
            found.append(phases.time(model, candidate, prior, own, until, before if place == 0 else ()))
        return found

    def runs_per_round(self, judgement: Judgement, left_s: float) -> int:
        """Return how often each session is run in a round: the less time is left, the less, so that there are as many
        rounds as decide. That is 0 where not even one round fits.
        """
        for runs in range(self.gate.runs_per_round, 0, -1):
            if self._deciding_rounds * self._round_s(judgement, runs) <= left_s:
                return runs
        return 1 if self._round_s(judgement, runs=1) <= left_s else 0

    def before_check(self, judgement: Judgement, deadline: Deadline) -> Deadline:
        """Return the deadline of what comes before the check, which leaves time for it and for timing.

        What passes make is checked besides, before the search.
        """
        checks = 1 if self.first_move is None else 2
        before_check = deadline.before(checks * _CHECK_OVER_JUDGING * judgement.wall_s)
        rounds_s = (self._round_s(own, self.gate.runs_per_round) for own in judgement.at_each_size)
        timing_s = self._deciding_rounds * sum(rounds_s)
        if self.may_race(judgement, deadline):
            timing_s += self._race_s(judgement, self.gate.runs_per_round, self.gate.racers)
        return before_check.before(min(timing_s, _MOST_FOR_TIMING * before_check.left_s))

    @property
    def gainless(self) -> frozenset[str]:
        """Rules that were measured to gain elsewhere but not in the runtime asked for, whose prices nobody knows."""
        return frozenset() if self._is_priced else gainless_in(self.setting)

    @property
    def _is_priced(self) -> bool:
        return self.setting in SETTINGS

    def _measuring_s(self, graph: Graph, judgement: Judgement) -> float:
        """Foresee the seconds that it takes to measure both ends of a search from this graph."""
        return 0.0 if self.shortlist is None else self.shortlist.foreseen_s(graph, self._price_s(judgement))

    def _price_s(self, judgement: Judgement) -> float:
        return _PRICE_S + _PRICE_OVER_RUN * judgement.paces.get(self.setting, Pace()).running_s

    @property
    def _deciding_rounds(self) -> int:
        return _DECIDING_ROUNDS if self.gate.proof is None else _PROVING_ROUNDS

    def _round_s(self, judgement: Judgement, runs: int) -> float:
        """Foresee the seconds of a round of timing."""
        return _SESSIONS_IN_ROUND * self.session_s(judgement, runs)

    def _race_s(self, judgement: Judgement, runs: int, racers: int) -> float:
        """Foresee the seconds of a race of so many, of which the slower half falls out each time."""
        sessions, left = 0, racers
        while left > 1:
            sessions += _SESSIONS_IN_ROUND // 2 * (1 + left)
            left = math.ceil(left / 2)
        return sessions * self.session_s(judgement, runs)

    def session_s(self, judgement: Judgement, runs: int = 1) -> float:
        """Foresee the seconds of a session that is opened, run once, and then timed."""
        pace = judgement.paces.get(self.setting, Pace())
        return pace.opening_s + max((1 + runs) * pace.running_s, _LEAST_SESSION_S)

    def inside(self, place: str, symbols: Collection[str]) -> Phases:
        """Return the phases for a subgraph, which has these symbols for sizes; progress tells of its place.

        Passes are run on whole models alone, and only those race. What passes gain in a subgraph has no price, and is
        not taken for itself. Of several sizes, the first is that of a subgraph: the whole is checked at all.
        """

        def on_progress(done: float, text: str) -> None:
            if self.on_progress:
                self.on_progress(done, f"{place}: {text}")

        gate = replace(self.gate, dimensions=sizes_of(symbols, self.gate.dimensions or {}), sizes=(), racers=1)
        self.watch.begin("subgraphs")  # all phases of theirs are that one
        return replace(self, gate=gate, on_progress=on_progress, first_move=None, watch=Stopwatch())

    def begun(self, phase: str, said: str) -> OnProgress | None:
        """Tell that a phase begins, and in which words; return what it may tell of itself with."""
        self.watch.begin(phase)
        on_progress = self.on_progress
        if on_progress is None:
            return None
        on_progress(0.0, said)
        return lambda done, text: on_progress(done, f"{said}: {text}")


def _longest_check_s(judgement: Judgement, deadline: Deadline) -> float:
    """The seconds that a check may take. Who has interrupted and does not want to wait for it interrupts once more."""
    return math.inf if deadline.is_interrupted() else max(deadline.left_s, _LONGEST_CHECK * judgement.wall_s)


def sizes_of(symbols: Collection[str], sizes: Mapping[str, int]) -> dict[str, int]:
    """Return the sizes of these symbols alone."""
    return {name: size for name, size in sizes.items() if name in symbols}
