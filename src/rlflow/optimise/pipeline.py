"""The way of a model from import to a checked and timed candidate: first each subgraph inside it, then the whole.

Before that come passes of other libraries on all of it, if they are asked for.

A subgraph of If, Loop, Scan or SequenceMap is made a model of its own and goes the same way, with the subgraphs inside
it before it: of a Loop whose body holds an If, the two branches come first, then the body, then the model. Each must
pass the gate alone, and the model as a whole passes it again. Where nothing is found, or nothing can be judged or
checked in time, a model comes out as the object that went in.

A candidate that is refused, in whatever phase, ends nothing (`optimise.refusal`). The search goes on without the rule
that was to blame; where it cannot, what the steps before it made is tried; then the model without the passes, without
the rewrites of its subgraphs, and at last the model as it was.

A model and its candidate are written to files once, with their weights where ONNX Runtime can map them: judging, check
and timing open a large one many times, some of them in other processes.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

from onnx import ModelProto

from rlflow.cost.base import CostModel
from rlflow.equivalence.report import EquivalenceReport
from rlflow.errors import RLFlowError
from rlflow.ir.graph import Graph
from rlflow.ir.structural_hash import structural_hash
from rlflow.ir.tensor_type import Dimension
from rlflow.method import Effort, OptimisationResult
from rlflow.onnx_io import check_model, to_onnx
from rlflow.onnx_io.external_data import write_mapped
from rlflow.onnx_io.shapes.inference import pin_dimensions
from rlflow.onnx_io.subgraphs import Subgraph, size, subgraphs, with_subgraphs
from rlflow.optimise.alternatives import alternatives
from rlflow.optimise.clock import NO_DEADLINE, Deadline
from rlflow.optimise.diagnose import Derivation
from rlflow.optimise.gate import Judgement
from rlflow.optimise.phases import Phases, sizes_of
from rlflow.optimise.refusal import Refusal, Refused, of_candidate
from rlflow.optimise.reported.latency import LatencyChange
from rlflow.optimise.reported.passes import PassesReport
from rlflow.optimise.reported.race import Measured, Racer
from rlflow.optimise.reported.sizes import AtSize
from rlflow.optimise.reported.steps import Step, SubgraphReport
from rlflow.optimise.specialise import Assumptions, Settled
from rlflow.optimise.timing import is_slower
from rlflow.rules.library import Library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.runtime.inputs import symbolic_dimensions
from rlflow.runtime.scratch import scratch_folder
from rlflow.runtime.timing.belief import Prior, prior_of
from rlflow.runtime.timing.latency import Round
from rlflow.trajectory.record import Trajectory
from rlflow.trajectory.replay import of_its_rules, replay

_LOGGER = logging.getLogger(__name__)

NOTHING_FOUND = "no sequence of rewrites lowered its predicted cost"
MEASURED_DEARER = "measured part by part, no rewritten model was cheaper"
UNCHECKED = "the budget was over before the rewritten model was checked"
INTERRUPTED = "interrupted before anything was found"
UNPRICED = "the budget was over before all parts of the original were measured"
REFUSED = "what a search made of the model after them was refused"
NOT_KEPT = "the model around it, with its rewrites, was refused"
NO_TIME = "the budget was over before its turn"

_JUDGEMENTS = 4
"""A subgraph needs at least the time of so many judgements: two for itself and its candidate, the rest to search."""


@dataclass(frozen=True)
class PipelineResult:
    """The outcome for one model.

    `candidate` is the model itself where there is none, as `left_because` says; it was not even searched for if none
    could have been judged. `latency` is empty then, and where there was no time for it. `inside` reports on its
    subgraphs, the innermost first. `shapes` are those of inputs that could be assumed. `passes` were run before all
    else, if that was asked for, and `before_passes` is the model without those that were taken. `refusals` are about
    candidates that were refused, of which this one may be the last, as `refusal` says; `rewriter` has taken its steps.
    It does `without` the steps of these rules, and may have won a `race`, in these `rounds` beside the original.
    Where there are several sizes, it was checked and timed `at_sizes`; `equivalence` and `latency` are of the first.
    `file` holds the candidate, once it was exported.
    """

    candidate: ModelProto
    assumptions: Assumptions
    result: OptimisationResult
    settled: Settled
    equivalence: EquivalenceReport
    left_because: str = ""
    is_searched: bool = True
    inside: tuple[SubgraphReport, ...] = ()
    latency: dict[str, LatencyChange] = field(default_factory=dict)
    measured: Measured | None = None
    shapes: Mapping[str, tuple[Dimension, ...]] = field(default_factory=dict)
    passes: PassesReport | None = None
    before_passes: Assumptions | None = None
    refusal: Refusal | None = None
    refusals: tuple[Refusal, ...] = ()
    rewriter: Rewriter | None = None
    without: tuple[str, ...] = ()
    race: tuple[Racer, ...] = ()
    rounds: tuple[Round, ...] = ()
    at_sizes: tuple[AtSize, ...] = ()
    file: Path | None = None

    def ended_before(self, step: int) -> PipelineResult:
        """Return the result that ends at the cheapest graph before this one of its steps, counted from 1."""
        assert self.rewriter is not None, "steps were taken by one"
        settled, taken = self.settled, self.settled.trajectory.steps[: step - 1]
        last = min(range(len(taken)), key=lambda place: taken[place].runtime_ms)
        shorter = replace(settled.trajectory, steps=taken[: last + 1])
        *_, graph = replay(settled.start, shorter, of_its_rules(shorter, self.rewriter))
        result = replace(self.result, best=graph, best_ms=taken[last].runtime_ms, optimality=None)
        settled = replace(settled, last=graph, trajectory=shorter)
        shortened = replace(self, settled=settled, result=result, measured=None, refusal=None, race=(), rounds=())
        return replace(shortened, at_sizes=(), file=None)

    @property
    def prior(self) -> Prior:
        """The belief beforehand, by its predicted saving or that of measured parts."""
        before_ms, after_ms = self.result.start_ms, self.result.best_ms
        if self.measured is not None:
            before_ms, after_ms = self.measured.before_ms, self.measured.after_ms
        return prior_of(100.0 * (1.0 - after_ms / before_ms) if before_ms else 0.0)

    @property
    def predicted_ratio(self) -> float:
        """The price before the search over that after it, at most 1000: a graph of mere views may cost nothing."""
        start_ms, best_ms = self.result.start_ms, self.result.best_ms
        return start_ms / max(best_ms, start_ms / 1000.0) if start_ms else 1.0

    @property
    def pinned(self) -> Mapping[str, tuple[Dimension, ...]]:
        """Shapes of inputs that the candidate assumes."""
        return self.shapes if self.pinned_for else {}

    @property
    def steps(self) -> tuple[Step, ...]:
        """Steps on the graph itself, without those in subgraphs."""
        return tuple(Step(s.rule, s.location, s.runtime_ms) for s in self.settled.trajectory.steps)

    @property
    def pinned_for(self) -> tuple[str, ...]:
        """Rules that need these shapes, in subgraphs or outside them."""
        inside = (rule for report in self.inside for rule in report.pinned_for)
        return (*inside, *self.settled.pinned_for)


@dataclass(frozen=True)
class _Beginning:
    """The model that a search begins from, as `assumptions` has it, and what was done before.

    `as_given` is the model as it was. `source` is the model that steps start from, or the argument by which a command
    takes its file.
    """

    as_given: Assumptions
    assumptions: Assumptions
    source: str | ModelProto
    passes: PassesReport | None = None
    inside: tuple[SubgraphReport, ...] = ()
    refusals: tuple[Refusal, ...] = ()

    @property
    def is_changed(self) -> bool:
        return self.assumptions is not self.as_given

    @property
    def known(self) -> tuple[Refusal, ...]:
        """All refusals so far, in subgraphs too."""
        return (*self.refusals, *(refusal for report in self.inside for refusal in report.refusals))

    def about(self) -> dict[str, Any]:
        """The part of a result that is known before the search."""
        moved = self.passes is not None and bool(self.passes.passes)
        return {
            "inside": self.inside,
            "shapes": self.as_given.shapes,
            "passes": self.passes,
            "before_passes": self.as_given if moved else None,
        }


@dataclass(frozen=True)
class Pipeline:
    """The phases of each model, and what may be assumed of it.

    `dimensions` are sizes that may be assumed, and `library` holds the rules for whose sake the opset may be raised.
    """

    phases: Phases
    library: Library
    dimensions: Mapping[str, int]

    def run(self, model: ModelProto, deadline: Deadline = NO_DEADLINE, argument: str = "") -> PipelineResult:
        """Optimise a valid model. Subgraphs and the graph around them share the time as they share the nodes.

        `argument` is how a command names the model's file, if it has one. Raises as `from_onnx` does.
        """
        return self._run(self._assumptions(model), deadline, argument)

    def run_beside(
        self, judging: Future[Judgement], model: ModelProto, original: Path, deadline: Deadline, argument: str
    ) -> PipelineResult:
        """Do what `run` does with a model that lies in the file `original` already, and is being judged."""
        return self._run_beside(judging, self._assumptions(model), original, deadline, argument)

    def _run(self, as_given: Assumptions, deadline: Deadline, argument: str) -> PipelineResult:
        with scratch_folder() as folder:
            original = write_mapped(as_given.model, folder / "original.onnx")
            with self.phases.judging(original, deadline) as judging:
                return self._run_beside(judging, as_given, original, deadline, argument)

    def _run_beside(
        self, judging: Future[Judgement], as_given: Assumptions, original: Path, deadline: Deadline, argument: str
    ) -> PipelineResult:
        as_given.searched  # noqa: B018 - it is kept, and takes as long as judging a small model
        judgement = self.phases.judge(judging)
        if judgement.unjudgeable:
            return self._left(as_given, judgement, deadline)
        return self._rewritten(as_given, original, judgement, deadline, argument)

    def _rewritten(
        self, as_given: Assumptions, original: Path, judgement: Judgement, deadline: Deadline, argument: str
    ) -> PipelineResult:
        """Search for a candidate of a model that could be judged, and check and time it beside the file `original`.

        As long as one is refused and there is time, the next one has its turn.
        """
        refusals: tuple[Refusal, ...] = ()
        for begun in self._beginnings(as_given, original, judgement, deadline, argument):
            made = self._best_from(begun, refusals, original, judgement, deadline)
            refusals += made.refusals
            if made.refusal is None or deadline.is_over:
                break
        return replace(made, refusals=refusals)

    def _beginnings(
        self, as_given: Assumptions, original: Path, judgement: Judgement, deadline: Deadline, argument: str
    ) -> Iterator[_Beginning]:
        """Yield what a search may begin from: the model after passes and with optimised subgraphs, without the passes,
        and the model itself; each if it differs from those before.
        """
        model, before_check = as_given.model, self.phases.before_check(judgement, deadline)
        plain = begun = _Beginning(as_given, as_given, argument or model)
        moved = self.phases.move(model, original, self._searched, judgement, before_check)
        if moved is not None:
            without = replace(moved.report, passes=(), domains=(), left_because=REFUSED)
            plain = replace(plain, passes=without if moved.report.passes else moved.report)
            begun = begun if moved.model is model else self._begun(begun, moved.model)
            begun = replace(begun, passes=moved.report, refusals=moved.refusals)
        with_subgraphs = self._with_subgraphs(begun, judgement, before_check)
        yield with_subgraphs
        if begun.is_changed and with_subgraphs.assumptions is not begun.assumptions:
            yield self._with_subgraphs(plain, judgement, self.phases.before_check(judgement, deadline))
        if with_subgraphs.is_changed:
            yield replace(plain, inside=tuple(map(_not_kept, with_subgraphs.inside)))

    def _begun(self, before: _Beginning, model: ModelProto) -> _Beginning:
        """The beginning from a model that was made of that before."""
        return replace(before, assumptions=self._assumptions(model), source=model)

    def _best_from(
        self,
        begun: _Beginning,
        before: tuple[Refusal, ...],
        original: Path,
        judgement: Judgement,
        deadline: Deadline,
    ) -> PipelineResult:
        """Search, check and time; again without the rules of what is refused, or by the steps before the wrong one.

        before: the refusals of other beginnings, whose rules are not tried again.
        """
        refusals, known = begun.refusals, (*before, *begun.known)
        pipeline, right = self._after(known), None
        made = pipeline._candidate(begun, original, judgement, deadline)
        while (refusal := made.refusal) is not None or made.left_because:
            is_anew = False
            if refusal is not None:
                _LOGGER.warning(refusal.summary)
                refusals, known = (*refusals, refusal), (*known, refusal)
                right, others = _before_the_wrong(made) or right, pipeline.phases.disabled
                pipeline = self._after(known)
                is_anew = pipeline.phases.disabled > others and pipeline._has_time(judgement, deadline)
            if deadline.is_over:
                break
            if is_anew:
                made = pipeline._candidate(begun, original, judgement, deadline)
            elif right is not None:
                made, right = pipeline._through_the_gate(right, begun, original, judgement, deadline), None
            else:
                break
        reason = made.left_because
        if refusal is not None:
            reason = f"the rewritten model {refusal.reason}"
        elif reason and refusals:
            reason = f"a rewritten model was refused, and without what made it, {reason}"
        return replace(made, refusals=refusals, left_because=reason)

    def _after(self, refusals: Collection[Refusal]) -> Pipeline:
        """The same without the rules that were to blame, as far as the method can be made anew, and with another folder
        for the next reproducer.
        """
        phases, used = self.phases, {refusal.reproducer for refusal in refusals}
        try:
            phases = phases.without({rule for refusal in refusals for rule in refusal.rules}) or phases
        except Refused as refused:
            _LOGGER.warning("the search cannot be made anew: it %s", refused.refusal.reason)
        base = folder = phases.reproducer
        for number in count(2):
            if base is None or folder not in used:
                break
            folder = base.with_name(f"{base.name}.{number}")
        return replace(self, phases=replace(phases, reproducer=folder))

    def _has_time(self, judgement: Judgement, deadline: Deadline) -> bool:
        """True if a search may begin that leaves time to check and to time what it finds."""
        return not self.phases.before_check(judgement, deadline).is_over

    def _candidate(self, begun: _Beginning, original: Path, judgement: Judgement, deadline: Deadline) -> PipelineResult:
        """Search, measure, check and time once."""
        about = begun.about() | {"candidate": begun.as_given.model}
        try:
            if begun.is_changed:
                with of_candidate("reading what was made"):
                    begun.assumptions.searched  # noqa: B018 - it is kept
            found = self._found(begun.assumptions, judgement, deadline)
        except Refused as refused:
            return replace(self._unsearched(begun.as_given, judgement), **about, refusal=refused.refusal)
        found = replace(found, **about)
        if not begun.is_changed and not found.steps:
            return replace(found, left_because=_nothing_because(found, deadline))
        found = self._winner(replace(found, left_because=""), begun, original, judgement, deadline)
        return self._through_the_gate(found, begun, original, judgement, deadline)

    def _winner(
        self, found: PipelineResult, begun: _Beginning, original: Path, judgement: Judgement, deadline: Deadline
    ) -> PipelineResult:
        """Let what was found race with its alternatives, if there is time, and return what wins.

        Where that does without a rule, there may be more to find without it: a second search, whose result races too.
        """
        if not found.steps or not self.phases.may_race(judgement, deadline):
            return found
        racers = [found, *self._alternatives(found, begun)]
        winner = self._raced(racers, original, judgement, deadline)
        if not winner.without or not self.phases.may_race(judgement, deadline):
            return winner
        try:
            wiser = self.phases.without(winner.without)
            if wiser is None:
                return winner
            again = replace(self, phases=wiser)._found(begun.assumptions, judgement, deadline)
        except Refused as refused:
            _LOGGER.warning("the second search is left out: it %s", refused.refusal.reason)
            return winner
        if not again.steps or again.steps == winner.steps:
            return winner
        again = replace(again, **begun.about(), candidate=winner.candidate, left_because="", without=winner.without)
        return self._raced([winner, again], original, judgement, deadline)

    def _alternatives(self, found: PipelineResult, begun: _Beginning) -> Iterator[PipelineResult]:
        """Yield what its steps lead to without rules that were said to save most, as far as that can be made."""
        start, cost_model = begun.assumptions.searched, self.phases.cost_model
        rewriter, most, gainless = self.phases.method.rewriter, self.phases.gate.racers - 1, self.phases.gainless
        try:
            with of_candidate("leaving out rules"):
                for other in alternatives(start, found.result, rewriter, cost_model, most, gainless):
                    settled = begun.assumptions.settled(other.result, rewriter)
                    yield replace(found, result=other.result, settled=settled, without=other.without)
        except Refused as refused:
            _LOGGER.warning("there are fewer alternatives to race: one %s", refused.refusal.reason)

    def _raced(
        self, racers: Sequence[PipelineResult], original: Path, judgement: Judgement, deadline: Deadline
    ) -> PipelineResult:
        """Return the winner of a race, which may have won another; the first where there is none."""
        try:
            with of_candidate("the export"):
                files = [racer.file or _exported(racer, original)[1] for racer in racers]
        except Refused as refused:  # it will be found out again where that is counted
            _LOGGER.warning("nothing is raced: a candidate %s", refused.refusal.reason)
            return racers[0]
        predicted = [racer.predicted_ratio for racer in racers]
        race = self.phases.race(original, files, predicted, judgement, deadline) if len(files) > 1 else None
        if race is None:
            return racers[0]
        places = tuple(_racer(racers[place], race.ratio(place), race.rounds[place]) for place in race.order)
        winner = replace(racers[race.order[0]], file=files[race.order[0]])
        known = [racer for racer in winner.race if racer not in places]
        return replace(winner, race=(*places, *known), rounds=(*winner.rounds, *race.rounds[race.order[0]]))

    def _assumptions(self, model: ModelProto) -> Assumptions:
        return Assumptions(model, self.dimensions, self.library.rules)

    def _searched(self, model: ModelProto) -> Graph:
        return self._assumptions(model).searched

    def _left(self, as_given: Assumptions, judgement: Judgement, deadline: Deadline) -> PipelineResult:
        """The outcome for a model of which no candidate could be judged."""
        because = INTERRUPTED if deadline.is_interrupted() else judgement.unjudgeable
        return replace(self._unsearched(as_given, judgement), left_because=because)

    def _unsearched(self, assumptions: Assumptions, judgement: Judgement) -> PipelineResult:
        rewriter = self.phases.method.rewriter
        nothing = _nothing_done(assumptions, self.phases.cost_model, rewriter.matching)
        settled = assumptions.settled(nothing, rewriter)
        return PipelineResult(
            assumptions.model, assumptions, nothing, settled, judgement.report, UNPRICED, is_searched=False
        )

    def _found(self, assumptions: Assumptions, judgement: Judgement, deadline: Deadline) -> PipelineResult:
        """Search, and measure where nothing is to race; of the outputs of what is found nothing is known yet."""
        graph, until = assumptions.searched, self.phases.before_check(judgement, deadline)
        is_raced = self.phases.may_race(judgement, deadline)
        result = self.phases.search(graph, judgement, until, is_raced)
        if result is None:
            return self._unsearched(assumptions, judgement)
        result, measured = (result, None) if is_raced else self.phases.measure(graph, result, judgement, until)
        with of_candidate("the search"):
            settled = assumptions.settled(result, self.phases.method.rewriter)
        return PipelineResult(
            assumptions.model,
            assumptions,
            result,
            settled,
            judgement.report,
            measured=measured,
            rewriter=self.phases.method.rewriter,
        )

    def _with_subgraphs(self, begun: _Beginning, judgement: Judgement, deadline: Deadline) -> _Beginning:
        """Return the beginning with optimised subgraphs.

        To judge a small one takes hardly less than to judge all: a share in which nothing could be done is enlarged, at
        the cost of those that come later.
        """
        model = begun.assumptions.model
        replaced, reports, least_s = {}, list[SubgraphReport](), _JUDGEMENTS * judgement.wall_s
        for subgraph, share in _shared(model):
            wiser = self._after([refusal for report in reports for refusal in report.refusals])
            optimised, inside = wiser._of_subgraph(subgraph, deadline.part(share, least_s))
            reports += inside
            if optimised is not subgraph.model:
                replaced[subgraph.place] = optimised

        try:
            with of_candidate("putting subgraphs back"):
                changed = with_subgraphs(model, replaced)
                if any(report.pinned_for for report in reports):
                    pin_dimensions(changed.graph, self.dimensions)
        except Refused as refused:
            return replace(begun, inside=tuple(map(_not_kept, reports)), refusals=(*begun.refusals, refused.refusal))
        begun = replace(begun, inside=tuple(reports))
        return begun if changed is model else self._begun(begun, changed)

    def _of_subgraph(self, subgraph: Subgraph, deadline: Deadline) -> tuple[ModelProto, list[SubgraphReport]]:
        """Return the subgraph's own model if it cannot be judged alone, nothing was found, or it became slower."""
        about = SubgraphReport(subgraph.node, subgraph.attribute)
        if deadline.is_over:
            return subgraph.model, [replace(about, left_because=NO_TIME)]
        inside = self._inside(subgraph.model, about)
        assumptions = inside._assumptions(subgraph.model)
        try:
            with of_candidate("its rewriting", passing=(RLFlowError,)):
                if not inside._may_find(assumptions):
                    return subgraph.model, [replace(about, left_because=NOTHING_FOUND)]
                made = inside._run(assumptions, deadline, argument="")
        except RLFlowError as error:
            return subgraph.model, [replace(about, left_because=str(error))]

        refusals = tuple(replace(refusal, place=about.place) for refusal in made.refusals)
        about = replace(about, optimisation_s=made.result.wall_time_s, effort=made.result.effort, refusals=refusals)
        if because := made.left_because or self._refused(made):
            return subgraph.model, [*map(_not_kept, made.inside), replace(about, left_because=because)]
        done = replace(
            about,
            steps=made.steps,
            pinned_for=made.settled.pinned_for,
            cost_before_ms=made.result.start_ms,
            cost_after_ms=made.result.best_ms,
        )
        return made.candidate, [*made.inside, done]

    def _refused(self, made: PipelineResult) -> str:
        """The reason for which the checked candidate of a subgraph is not taken, or ""."""
        if not made.latency:
            return "the budget was over before the rewritten one was timed"
        return "the rewritten one was slower beyond noise" if is_slower(made.latency, self.phases.setting) else ""

    def _inside(self, model: ModelProto, about: SubgraphReport) -> Pipeline:
        """The same for a subgraph, which must keep the opset of the graph around it."""
        symbols = symbolic_dimensions(model)
        phases = self.phases.inside(about.place, symbols)
        return Pipeline(phases, Library(()), sizes_of(symbols, self.dimensions))

    def _may_find(self, assumptions: Assumptions) -> bool:
        """False for a graph without a match or subgraphs. Many have two or three nodes: running them would be waste."""
        matches = self.phases.method.rewriter.matches(assumptions.searched)
        return any(matches.counts) or any(True for _ in subgraphs(assumptions.model))

    def _through_the_gate(
        self, found: PipelineResult, begun: _Beginning, original: Path, judgement: Judgement, deadline: Deadline
    ) -> PipelineResult:
        """Export what was found, compare it with the original, and time it, at each size."""
        try:
            with of_candidate("the export"):
                candidate, exported = _exported(found, original)
            steps = (found.settled.start, found.settled.trajectory, found.rewriter or self.phases.method.rewriter)
            reports = list[EquivalenceReport]()
            for phases, own in self.phases.at_each_size(judgement):
                derivation = Derivation(original, exported, *steps, begun.source, dimensions=phases.gate.dimensions)
                report = phases.check(derivation, own, deadline)
                if report is None:
                    return replace(found, left_because=UNCHECKED)
                reports.append(report)
            self.phases.watch.answer()
            latencies = self.phases.time_at_each_size(
                original, exported, found.prior, judgement, deadline, found.rounds
            )
        except Refused as refused:
            return replace(found, refusal=refused.refusal)
        return replace(
            found,
            candidate=candidate,
            file=exported,
            equivalence=reports[0],
            latency=latencies[0],
            # one size alone has no row
            at_sizes=tuple(map(AtSize, self.phases.gate.sizes, reports, latencies)),
            refusal=None,
        )


def _exported(found: PipelineResult, original: Path) -> tuple[ModelProto, Path]:
    """Return the model that was found, and its file beside the original's, which is written once."""
    candidate = to_onnx(found.settled.last)
    if found.file is not None:
        return candidate, found.file
    check_model(candidate)
    names = (original.with_name(f"candidate_{number}.onnx") for number in count())
    path = next(path for path in names if not path.exists())
    return candidate, write_mapped(candidate, path, like=original)


def _racer(found: PipelineResult, ratio: float, rounds: Sequence[Round]) -> Racer:
    return Racer(found.without, len(found.steps), ratio, len(rounds))


def _before_the_wrong(made: PipelineResult) -> PipelineResult | None:
    """The result that ends before its first wrong step, if that is known and not the first of all."""
    if made.refusal is None or made.refusal.step < 2 or made.rewriter is None:
        return None
    try:
        return made.ended_before(made.refusal.step)
    except RLFlowError as error:
        _LOGGER.warning("the steps before the wrong one cannot be taken by themselves: %s", error)
        return None


def _not_kept(report: SubgraphReport) -> SubgraphReport:
    """The report on a subgraph whose rewrites were not kept after all."""
    return replace(report, steps=(), pinned_for=(), left_because=NOT_KEPT) if report.steps else report


def _shared(model: ModelProto) -> Iterator[tuple[Subgraph, float]]:
    """Yield the subgraphs, each with its share of the time that is left before it: that of its nodes among those that
    have not had their turn.
    """
    to_come = size(model.graph)
    for subgraph in subgraphs(model):
        nodes = max(size(subgraph.model.graph), 1)
        yield subgraph, min(1.0, nodes / max(to_come, 1))
        to_come -= nodes


def _nothing_because(found: PipelineResult, deadline: Deadline) -> str:
    """The reason why a search has no step to show."""
    if deadline.is_interrupted():
        return INTERRUPTED
    nothing = NOTHING_FOUND if found.measured is None else MEASURED_DEARER
    of_passes = "" if found.passes is None else f"; of the passes, {found.passes.left_because}"
    return (found.left_because or nothing) + of_passes


def _nothing_done(assumptions: Assumptions, cost_model: CostModel, matching: str) -> OptimisationResult:
    """The result of no search at all."""
    graph = assumptions.searched
    no_steps = Trajectory(structural_hash(graph), 0.0, cost_model.name, "", (), matching=matching)
    return OptimisationResult(graph, 0.0, 0.0, no_steps, wall_time_s=0.0, effort=Effort())
