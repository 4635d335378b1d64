"""The first remedy: subnormal weights of the original at zero, where trials show no change of any output.

    flushed = without_subnormals(phases, model, original, judging, deadline)
    flushed.model, flushed.report

Such numbers may take an Intel processor a hundred times as long, and others hardly longer: they go because they are
there, whatever the clock of this machine says, whose answer is reported (`rlflow.subnormal`). What a search finds is
then timed against the model without them; it is still compared with the outputs of the user's own.
"""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path

from onnx import ModelProto

from rlflow.equivalence.report import EquivalenceReport
from rlflow.onnx_io.external_data import write_mapped
from rlflow.optimise.clock import Deadline
from rlflow.optimise.gate import GateConfig, Judgement, Pace, judgeable
from rlflow.optimise.phases import Phases
from rlflow.optimise.refusal import Refused
from rlflow.optimise.reported.subnormals import SubnormalReport
from rlflow.runtime.isolation import ProcessTimeout
from rlflow.runtime.timing.belief import NOTHING_PREDICTED
from rlflow.subnormal.flush import Decayed, Found, decayed, multiplied
from rlflow.subnormal.trial import Trial, error_of, harmless

_SHARE = 0.15
"""The part of the time that is left after the proof in which the model is timed."""
_ROUNDS = 4
"""Rounds of timing, unless fewer decide: the ratio is for the report alone."""
NO_TIME = "there was no time to prove that no output depends on them"
NEEDED = "outputs depend on them, or no input could tell"
NO_SUMS = "what reads them does more than multiply and add them"
UNJUDGEABLE = "nothing can be compared with the original"


@dataclass(frozen=True)
class Flushed:
    """The model to search from and its file, beside the original's. It is the very model if nothing was set to zero.

    `judging` tells the outputs of the original, and how the model runs. There is a `report` if the original has
    subnormal weights, and an `equivalence` if some were set to zero.
    """

    model: ModelProto
    file: Path
    judging: Future[Judgement]
    report: SubnormalReport | None = None
    equivalence: EquivalenceReport | None = None


def without_subnormals(
    phases: Phases, model: ModelProto, original: Path, judging: Future[Judgement], deadline: Deadline
) -> Flushed:
    """Return the model without its subnormal weights, as far as these are harmless.

    original: the file of `model`, which is being judged.
    """
    as_it_is, found = Flushed(model, original, judging), decayed(model)
    if not found.all:
        return as_it_is
    judgement = phases.judge(judging)
    if judgement.unjudgeable:
        return _left(as_it_is, found, UNJUDGEABLE)
    if not found.weights:
        return _left(as_it_is, found, NO_SUMS)
    try:
        return _proven(phases, as_it_is, found, judgement, deadline)
    except ProcessTimeout:
        return _left(as_it_is, found, NO_TIME)
    except Refused as refused:
        return _left(as_it_is, found, f"a model without them {refused.refusal.reason}")


def _proven(phases: Phases, as_it_is: Flushed, found: Found, judgement: Judgement, deadline: Deadline) -> Flushed:
    """Try the weights, time the model without those that are harmless, and judge how it runs."""
    phases.begun("subnormals", "setting subnormal weights to zero")
    original = as_it_is.file
    kept, report = proven(found, as_it_is.model, original, judgement, phases.gate, deadline)
    if report is None:
        return _left(as_it_is, found, NEEDED)
    flushed = multiplied(as_it_is.model, kept, 0.0)
    file = write_mapped(flushed, original.with_name("flushed.onnx"), like=original)
    timing = replace(phases, gate=replace(phases.gate, rounds=_ROUNDS, proof=None))
    if phases.gate.sizes:  # the proof was at the first
        phases.check_made(original, file, judgement, deadline)
    latency = timing.time(original, file, NOTHING_PREDICTED, judgement, deadline.part(_SHARE))
    again = judgeable(file, phases.gate, deadline.part(phases.shares.of("judging")))
    left = tuple(each for each in found.all if each not in kept)
    run_ratio = _run_ratio(judgement, again, phases.setting)
    subnormals = SubnormalReport(kept, left, error_of(report), latency, run_ratio)
    return Flushed(flushed, file, _done(judgement, again), subnormals, report)


def proven(
    found: Found, model: ModelProto, original: Path, judgement: Judgement, config: GateConfig, deadline: Deadline
) -> tuple[tuple[Decayed, ...], EquivalenceReport | None]:
    """Return the weights that are harmless, and the report on the model without them; None where no weight is.

    original: the file of `model`, of which something can be compared. Raises `ProcessTimeout` when the time is over.
    """
    assert judgement.reference is not None  # it could be judged
    trial = Trial(
        model=model,
        file=original,
        reference=judgement.reference,
        dimensions=config.dimensions or {},
        threads=config.threads,
        limits=config.limits,
        left_s=lambda: deadline.left_s,
    )
    return harmless(found.weights, trial)


def _run_ratio(original: Judgement, flushed: Judgement, setting: str) -> float | None:
    """The time of a run of the original over one without subnormals; None where one of them is not known."""
    before, after = (each.paces.get(setting, Pace()).running_s for each in (original, flushed))
    return before / after if before and after else None


def _done(judgement: Judgement, again: Judgement) -> Future[Judgement]:
    """The judgement on the original with the times that the model without subnormals takes, if these are known."""
    if not again.unjudgeable:
        pairs = zip(judgement.elsewhere, again.elsewhere, strict=True)
        elsewhere = tuple(replace(own, paces=other.paces, wall_s=other.wall_s) for own, other in pairs)
        judgement = replace(judgement, paces=again.paces, wall_s=again.wall_s, elsewhere=elsewhere)
    judging: Future[Judgement] = Future()
    judging.set_result(judgement)
    return judging


def _left(as_it_is: Flushed, found: Found, because: str) -> Flushed:
    return replace(as_it_is, report=SubnormalReport(left=found.all, left_because=because))
