"""The gate before the exit: no model leaves that computes something else, and none is called faster that is not.

    judgeable(original)              may anything be compared with it? it runs here, and its outputs can be told apart
    difference(original, model, ...) a model that others have made is equivalent, or why not
    check(derivation)                the candidate is equivalent, or an error names the step and rule that are wrong
    timed(original, candidate, ...)  both are timed in fresh sessions until it is decided which one is faster

The invariant: a model that nobody has run yet is run in another process first.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

import numpy as np
from onnx import ModelProto

from rlflow.equivalence.compare import (
    EquivalenceReport,
    compare,
    compare_with_itself,
    drawn_inputs,
    run_original,
)
from rlflow.equivalence.drawing import Inputs, Reference
from rlflow.equivalence.tolerance import draws_at_random, tolerance_of
from rlflow.errors import EquivalenceError, InputError, RLFlowError
from rlflow.optimise.clock import NO_DEADLINE, Deadline
from rlflow.optimise.diagnose import Derivation, explain
from rlflow.optimise.report import LatencyChange
from rlflow.optimiser import OnProgress
from rlflow.runtime.inputs import draw_inputs, symbolic_dimensions
from rlflow.runtime.isolation import Limits, ProcessDeath, ProcessTimeout, call_isolated
from rlflow.runtime.session import Setting, open_session, run, structure_of
from rlflow.runtime.timing.latency import Round, countdown, latency_rounds, times_of
from rlflow.runtime.timing.sequential import SequentialTest, judge


@dataclass(frozen=True)
class GateConfig:
    """The settings by which a result is checked and timed.

    It is compared on `draws` inputs. It is timed in rounds of fresh sessions, with at least `runs_per_round` runs each,
    until `test` decides, `rounds` are done, or the next one would not fit into `time_s` seconds; the first is always
    taken. `dimensions` are the sizes of dynamic dimensions, by symbol; `limits` bind the processes in which a model
    runs for the first time.
    """

    draws: int = 3
    rounds: int = 100
    runs_per_round: int = 3
    threads: int = 1
    seed: int = 0
    time_s: float = 20.0
    test: SequentialTest = field(default_factory=SequentialTest)
    dimensions: Mapping[str, int] | None = None
    limits: Limits = field(default_factory=Limits)


_UNTRIED = "it could not be tried here"
_DRAWING = 0.15
"""The part of the time for judging after which no further input is drawn: each is run twice, and again as deployed."""


@dataclass(frozen=True)
class Pace:
    """The seconds that it takes to open a session of a model, and to run it once."""

    opening_s: float = 0.0
    running_s: float = 0.0


@dataclass(frozen=True)
class Judgement:
    """The original compared with itself, and why nothing else could be compared with it, or "".

    `reference` is what it computes, for those who compare others with it. It took `wall_s` seconds with the process in
    which that was done; `paces` tell what of it was due to the model, by how it is run.
    """

    report: EquivalenceReport
    unjudgeable: str = ""
    reference: Reference | None = None
    paces: Mapping[Setting, Pace] = field(default_factory=dict)
    wall_s: float = 0.0


def judgeable(original: ModelProto | Path, config: GateConfig, deadline: Deadline = NO_DEADLINE) -> Judgement:
    """Compare the model with itself, on fewer inputs if the deadline asks for it.

    It runs in another process; a model that has come through may be run in this one.
    """
    started_s, left_s = deadline.now_s(), deadline.left_s
    try:
        judgement = call_isolated(_limits(config, deadline), judged, original, config, _DRAWING * left_s)
    except ProcessDeath as death:
        hint = "; a larger budget gives it more time" if left_s < config.limits.longest_s else ""
        reason = f"{_UNTRIED}: {death}{hint if isinstance(death, ProcessTimeout) else ''}"
        judgement = Judgement(_nothing_known(structure_of(original), config), reason)
    return replace(judgement, wall_s=deadline.now_s() - started_s)


def judged(original: ModelProto | Path, config: GateConfig, drawing_s: float = math.inf) -> Judgement:
    """Do what `judgeable` does, in this process; after `drawing_s` no further input is drawn."""
    started, structure = time.perf_counter(), structure_of(original)
    dynamic = [name for name in symbolic_dimensions(structure) if name not in (config.dimensions or {})]
    unknown = _nothing_known(structure, config)
    if dynamic:
        wanted = " ".join(", ".join(dynamic).split())  # a name may be of several lines
        advice = 'name the shapes that you run it with, as in --shape x=1x128 or shapes={"x": (1, 128)}'
        return Judgement(unknown, f"its dimensions {wanted} are dynamic: {advice}")
    try:
        own, reference, as_written = _run_twice(original, config, started + drawing_s)
        paces: dict[Setting, Pace] = {
            "as_written": as_written,
            "deployed": _run_deployed(original, original, config),
        }
    except InputError:
        raise
    except RLFlowError as error:
        return Judgement(unknown, f"{_UNTRIED}: {error}")
    if not own.equivalent or draws_at_random(structure):
        reason = "its outputs change from run to run, so that no other model could be compared with it"
        return Judgement(unknown, reason)
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
    `EquivalenceError` naming the first wrong step, its rule and the values that it replaced, after writing what shows
    the difference to the folder `reproducer`, if one is given.
    """
    limits = replace(config.limits, longest_s=min(config.limits.longest_s, longest_s))
    try:
        report = call_isolated(limits, _tried, derivation.original, derivation.candidate, config, reference)
    except ProcessDeath as death:
        if isinstance(death, ProcessTimeout) and longest_s < config.limits.longest_s:
            raise
        raise EquivalenceError(f"the rewritten model could not be run: {death}; no model was written") from None
    if report.equivalent:
        return report
    what = explain(derivation, report, _inputs(derivation, config, reference), reproducer)
    raise EquivalenceError(f"the rewritten model is {report.summary}; {what}; no model was written")


def difference(
    original: Path, candidate: Path, config: GateConfig, longest_s: float, reference: Reference | None
) -> str:
    """Say in what a model that others have made differs from the original, or ""; it runs in another process."""
    limits = replace(config.limits, longest_s=min(config.limits.longest_s, longest_s))
    try:
        report = call_isolated(limits, _tried, original, candidate, config, reference)
    except RLFlowError as error:
        return f"it could not be run: {error}"
    return "" if report.equivalent else f"it is {report.summary}"


def _nothing_known(structure: ModelProto, config: GateConfig) -> EquivalenceReport:
    return EquivalenceReport(True, "", 0.0, 0.0, tolerance_of(structure), config.draws, non_vacuous_draws=0)


def _limits(config: GateConfig, deadline: Deadline) -> Limits:
    """The limits of a process that may not outlive the deadline, and ends when that is called off."""
    longest_s = min(config.limits.longest_s, deadline.left_s)
    return replace(config.limits, longest_s=longest_s, is_called_off=deadline.is_interrupted)


def _inputs(derivation: Derivation, config: GateConfig, reference: Reference | None) -> list[Inputs]:
    """The inputs on which the models were compared."""
    if reference is not None:
        return reference.inputs
    return drawn_inputs(derivation.original, draws=config.draws, seed=config.seed, dimensions=config.dimensions)


def _run_twice(
    original: ModelProto | Path, config: GateConfig, drawing_until_s: float
) -> tuple[EquivalenceReport, Reference, Pace]:
    """Compare the model as written with itself. One session will do: whatever differs from run to run does so in it."""
    started = time.perf_counter()
    session = open_session(original, "as_written", config.threads)
    opened = time.perf_counter()
    reference = run_original(
        original,
        session,
        draws=config.draws,
        seed=config.seed,
        dimensions=config.dimensions,
        drawing_s=drawing_until_s - opened,
    )
    report = compare_with_itself(original, session, reference)
    runs = 2 * len(reference.inputs)
    return report, reference, Pace(opened - started, (time.perf_counter() - opened) / runs)


def _tried(
    original: ModelProto | Path, candidate: ModelProto | Path, config: GateConfig, reference: Reference | None
) -> EquivalenceReport:
    """Compare both as written; run an equivalent candidate as deployed too, since it will be timed so."""
    report = compare(
        original,
        candidate,
        draws=config.draws,
        seed=config.seed,
        threads=config.threads,
        dimensions=config.dimensions,
        reference=reference,
    )
    if report.equivalent:
        _run_deployed(candidate, original, config)
    return report


def _run_deployed(model: ModelProto | Path, original: ModelProto | Path, config: GateConfig) -> Pace:
    """Run a model as deployed, on the inputs with which it will be timed: those of the original."""
    inputs = draw_inputs(structure_of(original), np.random.default_rng(config.seed), config.dimensions)
    started = time.perf_counter()
    session = open_session(model, "deployed", config.threads)
    opened = time.perf_counter()
    run(session, inputs)
    return Pace(opened - started, time.perf_counter() - opened)


_ORIGINAL = ("original", "original again")
_CANDIDATE = ("candidate", "candidate again")


def timed(
    original: ModelProto | Path,
    candidate: ModelProto | Path,
    setting: Setting,
    config: GateConfig,
    left_s: Callable[[], float] = lambda: math.inf,
    on_progress: OnProgress | None = None,
) -> LatencyChange:
    """Time both models in rounds, twice in each, until it is decided which one is faster.

    `left_s` tells the seconds that are left, besides those of `config`. `on_progress` receives the fraction of
    `config.rounds` that is done, and the answer so far.
    """
    models = {_ORIGINAL[0]: original, _ORIGINAL[1]: original, _CANDIDATE[0]: candidate, _CANDIDATE[1]: candidate}
    own_left_s = countdown(config.time_s)
    endless = latency_rounds(
        models,
        setting=setting,
        runs_per_round=config.runs_per_round,
        threads=config.threads,
        seed=config.seed,
        dimensions=config.dimensions,
        left_s=lambda: min(own_left_s(), left_s()),
    )
    rounds: list[Round] = []
    with closing(endless):
        for each in islice(endless, max(config.rounds, 1)):
            rounds.append(each)
            change = latency_change(rounds, config.test)
            if on_progress is not None:
                on_progress(len(rounds) / config.rounds, f"timing the result against the original: {change.verdict}")
            if change.verdict.decision != "undecided":
                break
    return change


def latency_change(rounds: Sequence[Round], test: SequentialTest) -> LatencyChange:
    """Return medians and verdict of rounds, in each of which both models were timed twice."""
    times_ms = times_of(rounds)
    original, candidate = (np.stack([times_ms[name] for name in twice], axis=1) for twice in (_ORIGINAL, _CANDIDATE))
    return LatencyChange(
        before_ms=float(np.median(original)),
        after_ms=float(np.median(candidate)),
        verdict=judge(original, candidate, test),
        retaken=sum(each.retaken for each in rounds),
    )


def is_faster(latency: Mapping[Setting, LatencyChange], setting: Setting) -> bool:
    """True if it was found faster in the setting that was optimised for."""
    return latency[setting].verdict.decision == "faster"


def is_slower(latency: Mapping[Setting, LatencyChange], setting: Setting) -> bool:
    """True if it was found slower in the setting that was optimised for."""
    return latency[setting].verdict.decision == "slower"
