"""The gate before the exit: no model leaves that computes something else.

    judgeable(original)              may anything be compared with it? it runs here, and its outputs can be told apart
    judging(original, ...)           the same in the background
    check_made(original, model, ...) a model that others have made is equivalent, or it is refused
    check(derivation)                the candidate is equivalent, or it is refused: step, rule and fusion are named

Which one is faster is another question (`optimise.timing`).

Models are compared as written and as they will run, as deployed or in another runtime: a fusion there may be wrong, or
lossy, and a rewrite may let it in. The invariant: a model that nobody has run yet is run in another process first.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event

import numpy as np
from onnx import ModelProto

from rlflow.equivalence.compare import compare, compare_with_itself, with_own_error
from rlflow.equivalence.drawing import Reference
from rlflow.equivalence.reference import reference_of, run_again, run_original
from rlflow.equivalence.report import EquivalenceReport, not_equivalent
from rlflow.equivalence.tolerance import draws_at_random, tolerance_of
from rlflow.errors import InputError, RLFlowError
from rlflow.optimise.clock import NO_DEADLINE, Deadline
from rlflow.optimise.diagnose import Derivation, Tried, explain, explain_made
from rlflow.optimise.refusal import Refusal, Refused
from rlflow.runtime.inputs import draw_inputs, symbolic_dimensions
from rlflow.runtime.isolation import Limits, ProcessDeath, ProcessTimeout, call_isolated
from rlflow.runtime.runtimes import RUNTIMES, YARDSTICK, OpenModel, open_model, said
from rlflow.runtime.session import SETTINGS, structure_of
from rlflow.runtime.sizes import Size
from rlflow.runtime.timing.belief import Belief
from rlflow.runtime.timing.sequential import SequentialTest


@dataclass(frozen=True)
class GateConfig:
    """The settings by which a result is checked and timed.

    It is compared on `draws` inputs. At most so many `racers` run against each other, of which one is checked. That is
    timed in rounds of fresh sessions, with at least `runs_per_round` runs each, until `belief` decides, `rounds` are
    done, or the next one would not fit into `time_s` seconds; the first is always taken. With a `proof` it takes that
    test to call it faster, whatever may be believed. `dimensions` are the sizes of dynamic dimensions, by symbol, and
    `sizes` all those at which it is checked and timed, of which they are the first, where there are several; if
    `exceptional`, NaN and infinities among the inputs must come out alike as well; `limits` bind the processes in which
    a model runs for the first time. Models are compared in each of `settings`, of which the first is the yardstick. One
    that computes in a coarser type than float32 may be off by `tolerance` of an output's largest value, which its user
    must name.
    """

    draws: int = 3
    rounds: int = 100
    runs_per_round: int = 3
    threads: int = 1
    seed: int = 0
    time_s: float = 20.0
    racers: int = 3
    belief: Belief = field(default_factory=Belief)
    proof: SequentialTest | None = None
    dimensions: Mapping[str, int] | None = None
    sizes: tuple[Size, ...] = ()
    exceptional: bool = False
    limits: Limits = field(default_factory=Limits)
    settings: tuple[str, ...] = SETTINGS
    tolerance: float | None = None

    def running_in(self, setting: str) -> GateConfig:
        """Return the same for models that will run in this setting.

        `InputError` where that computes in a coarser type and there is no tolerance.
        """
        precision = RUNTIMES.get(setting).precision
        if precision != "float32" and self.tolerance is None:
            raise InputError(f"{setting} computes in {precision}: name the relative error to accept, such as 1e-2")
        return self if setting in SETTINGS else replace(self, settings=(YARDSTICK, setting))

    @property
    def at_each_size(self) -> tuple[GateConfig, ...]:
        """The same at each of several sizes alone."""
        each = (replace(self, dimensions=size.dimensions, sizes=(size,)) for size in self.sizes)
        return tuple(each) or (self,)

    @property
    def where(self) -> str:
        """The size as the end of a clause, if it is one of several."""
        return f" at {self.sizes[0]}" if len(self.sizes) == 1 else ""

    @property
    def accepted(self) -> dict[str, float]:
        """The errors to accept in settings that compute in a coarser type than float32."""
        coarse = (setting for setting in self.settings if RUNTIMES.get(setting).precision != "float32")
        return {setting: self.tolerance for setting in coarse if self.tolerance is not None}


_UNTRIED = "it could not be tried here"
_PATIENCE_S = 30.0
"""The time that others like a candidate that has killed its process may take, of which many are tried."""
_DRAWING = 0.15
"""The part of the time for judging after which no further input is drawn: each is run three times."""


@dataclass(frozen=True)
class Pace:
    """The seconds that it takes to open a session of a model, and to run it once."""

    opening_s: float = 0.0
    running_s: float = 0.0


@dataclass(frozen=True)
class Judgement:
    """The original compared with itself, and why nothing else could be compared with it, or "".

    `reference` is what it computes, for those who compare others with it. It took `wall_s` seconds with the process in
    which that was done; `paces` tell what of it was due to the model, by how it is run. Where there are several sizes,
    all but `wall_s` is of the first, and the others' are `elsewhere`.
    """

    report: EquivalenceReport
    unjudgeable: str = ""
    reference: Reference | None = None
    paces: Mapping[str, Pace] = field(default_factory=dict)
    wall_s: float = 0.0
    elsewhere: tuple[Judgement, ...] = ()

    @property
    def at_each_size(self) -> tuple[Judgement, ...]:
        return (replace(self, elsewhere=()), *self.elsewhere)


def judgeable(original: ModelProto | Path, config: GateConfig, deadline: Deadline = NO_DEADLINE) -> Judgement:
    """Compare the model with itself, on fewer inputs if the deadline asks for it.

    It runs in another process; a model that has come through may be run in this one.
    """
    started_s, left_s = deadline.now_s(), deadline.left_s
    try:
        judgement = call_isolated(limits_until(config, deadline), judged, original, config, _DRAWING * left_s)
    except ProcessDeath as death:
        hint = "; a larger budget gives it more time" if left_s < config.limits.longest_s else ""
        reason = f"{_UNTRIED}: {death}{hint if isinstance(death, ProcessTimeout) else ''}"
        judgement = Judgement(_nothing_known(structure_of(original), config), reason)
    return replace(judgement, wall_s=deadline.now_s() - started_s)


@contextmanager
def judging(original: Path, config: GateConfig, deadline: Deadline) -> Iterator[Future[Judgement]]:
    """Do what `judgeable` does beside what the caller does meanwhile. Leaving the context ends it."""
    left = Event()
    until = replace(deadline, is_interrupted=lambda: left.is_set() or deadline.is_interrupted())
    with ThreadPoolExecutor(1) as background:
        try:
            yield background.submit(judgeable, original, config, until)
        finally:
            left.set()


def judged(original: ModelProto | Path, config: GateConfig, drawing_s: float = math.inf) -> Judgement:
    """Do what `judgeable` does, in this process; after `drawing_s` no further input is drawn.

    Of a model that cannot be judged at one of several sizes nothing is known at any.
    """
    judgements = list[Judgement]()
    for each in config.at_each_size:
        started = time.perf_counter()
        found = _judged_at_one(original, each, drawing_s / len(config.at_each_size))
        if found.unjudgeable:
            return replace(found, unjudgeable=f"{found.unjudgeable}{each.where}")
        judgements.append(replace(found, wall_s=time.perf_counter() - started))
    first, *others = judgements
    return replace(first, elsewhere=tuple(others))


def _judged_at_one(original: ModelProto | Path, config: GateConfig, drawing_s: float) -> Judgement:
    started, structure = time.perf_counter(), structure_of(original)
    dynamic = [name for name in symbolic_dimensions(structure) if name not in (config.dimensions or {})]
    unknown = _nothing_known(structure, config)
    if dynamic:
        wanted = " ".join(", ".join(dynamic).split())  # a name may be of several lines
        advice = 'name the shapes that you run it with, as in --shape x=1x128 or shapes={"x": (1, 128)}'
        return Judgement(unknown, f"its dimensions {wanted} are dynamic: {advice}")
    try:
        own, reference, paces = _run_in_all(original, config, started + drawing_s)
    except InputError:
        raise
    except RLFlowError as error:
        return Judgement(unknown, f"{_UNTRIED}: {error}")
    if not own.equivalent or draws_at_random(structure):
        reason = "its outputs change from run to run, so that no other model could be compared with it"
        return Judgement(unknown, reason)
    if reference.accepted and not own.own_error <= max(reference.accepted.values()):
        reason = f"{own.own_difference}, more than the tolerance of {max(reference.accepted.values()):.1e}"
        return Judgement(own, reason)
    if not own.non_vacuous_draws:
        return Judgement(own, "no drawn input gave outputs that could tell a wrong model from a right one")
    return Judgement(own, "", reference, paces)


def check(
    derivation: Derivation,
    config: GateConfig,
    reproducer: Path | None = None,
    longest_s: float = math.inf,
    reference: Reference | None = None,
) -> EquivalenceReport:
    """Return the report of an equivalent candidate; it runs in another process first, where it can do no harm.

    `reference` is what the original computes, if that is known: it is not run again.
    Raise `ProcessTimeout` if that takes longer than `longest_s`, so that nothing is known of it. Otherwise raise
    `Refused` naming the first wrong step, its rule, the values that it replaced and the fusion that made it wrong,
    after writing what shows the difference to the folder `reproducer`, if one is given.
    """
    if reference is None:
        reference = reference_of(
            derivation.original,
            config.settings,
            draws=config.draws,
            seed=config.seed,
            threads=config.threads,
            dimensions=config.dimensions,
        )
        reference = replace(reference, accepted=config.accepted)
    tried = _tried(derivation.original, derivation.candidate, config, longest_s, reference)
    if tried.report.equivalent:
        return tried.report
    cause = explain(derivation, tried, reference, reproducer)
    raise Refused(
        Refusal(
            phase="the check",
            reason=f"{tried.problem}{config.where}; {cause.summary}",
            differs=tried.differs,
            rules=cause.rules,
            step=cause.step,
            fusions=cause.fusions,
            reproducer=cause.reproducer,
        )
    )


def check_made(
    original: Path, made: Path, config: GateConfig, longest_s: float, reference: Reference, folder: Path | None
) -> EquivalenceReport:
    """Return the report of a model that others have made; raise `Refused` if it differs. It runs in another process.

    Both models and an input that shows the difference are written to `folder`, if one is given. If it takes longer than
    `longest_s` seconds, it is refused as well.
    """
    try:
        tried = _tried(original, made, config, longest_s, reference)
    except ProcessTimeout as timeout:
        raise Refused(Refusal("the check of passes", f"could not be checked in time ({timeout})")) from None
    if tried.report.equivalent:
        return tried.report
    cause = explain_made(original, made, tried, reference, folder)
    reason = f"{tried.problem}{config.where}{cause.summary and '; '}{cause.summary}"
    raise Refused(
        Refusal("the check of passes", reason, tried.differs, fusions=cause.fusions, reproducer=cause.reproducer)
    )


def _nothing_known(structure: ModelProto, config: GateConfig) -> EquivalenceReport:
    return EquivalenceReport(True, "", 0.0, 0.0, tolerance_of(structure), config.draws, non_vacuous_draws=0)


def limits_until(config: GateConfig, deadline: Deadline) -> Limits:
    """The limits of a process that may not outlive the deadline, and ends when that is called off."""
    longest_s = min(config.limits.longest_s, deadline.left_s)
    return replace(config.limits, longest_s=longest_s, is_called_off=deadline.is_interrupted)


def _run_in_all(
    original: ModelProto | Path, config: GateConfig, drawing_until_s: float
) -> tuple[EquivalenceReport, Reference, dict[str, Pace]]:
    """Compare the model as written with itself, and run it in the other settings.

    One session as written will do for both runs: whatever differs from run to run does so in it. In other settings, it
    runs on the inputs with which it will be timed, too.
    """
    yardstick, *others = config.settings
    started = time.perf_counter()
    session = open_model(original, yardstick, config.threads)
    opened = time.perf_counter()
    reference = run_original(
        original,
        session,
        draws=config.draws,
        seed=config.seed,
        dimensions=config.dimensions,
        drawing_s=drawing_until_s - opened,
        exceptional=config.exceptional,
    )
    report = compare_with_itself(original, session, reference)
    draws = len(reference.inputs)
    paces = {yardstick: Pace(opened - started, (time.perf_counter() - opened) / (2 * draws))}
    inputs = draw_inputs(structure_of(original), np.random.default_rng(config.seed), config.dimensions)
    for setting in others:
        del session  # its memory, before the model is opened again
        started = time.perf_counter()
        session = _opened(original, setting, config.threads)
        opened = time.perf_counter()
        session.run(inputs)
        paces[setting] = Pace(opened - started, time.perf_counter() - opened)
        reference = run_again(session, setting, reference)
    return with_own_error(report, reference), replace(reference, accepted=config.accepted), paces


def _opened(original: ModelProto | Path, setting: str, threads: int) -> OpenModel:
    """Open a model that runs as written in another setting. Where it does not, there is a way to find out why."""
    try:
        return open_model(original, setting, threads)
    except RLFlowError as error:
        hint = "; `rlflow doctor` looks for the optimiser to blame" if setting == "deployed" else ""
        raise RLFlowError(f"{said(YARDSTICK)} it runs, but {said(setting)}, {error}{hint}") from error


def _compared(
    original: ModelProto | Path, candidate: ModelProto | Path, config: GateConfig, reference: Reference
) -> EquivalenceReport:
    """Compare a candidate, and run it as it will run on the inputs with which it will be timed: the original's."""
    return compare(
        original,
        candidate,
        threads=config.threads,
        dimensions=config.dimensions,
        reference=reference,
        to_run=draw_inputs(structure_of(original), np.random.default_rng(config.seed), config.dimensions),
    )


def _tried(
    original: ModelProto | Path,
    candidate: ModelProto | Path,
    config: GateConfig,
    longest_s: float,
    reference: Reference,
) -> Tried:
    """Compare a candidate with the original in another process. `ProcessTimeout` where only `longest_s` was too short.

    A process that dies says that it is the candidate which cannot be run: the original has been.
    """
    limits = replace(config.limits, longest_s=min(config.limits.longest_s, longest_s))
    try:
        report = call_isolated(limits, _compared, original, candidate, config, reference)
    except ProcessDeath as death:
        if isinstance(death, ProcessTimeout) and longest_s < config.limits.longest_s:
            raise
        known = not_equivalent(str(death), structure_of(original), len(reference.inputs), is_run=False)
        return Tried(known, replace(limits, longest_s=min(limits.longest_s, _PATIENCE_S)))
    return Tried(report)
