"""The last question: do sessions with other options run what is delivered faster than with ONNX Runtime's defaults?

    find = OptionFinder(with_threads=True)
    find(file, config, deadline, session_s)             [SessionOptions(intra_op_num_threads=1), ...]
    tuned(phases, [(model, file)], original, judgement, find, deadline).model

A model that carries options runs with them as deployed (`runtime.session_options`). So it is a candidate like any
other: several race, and the first is compared with the original and timed beside the model without options. Where the
original was rewritten, it races, too: with options it may be faster than what was made of it.

Invariant: options are kept only where the same decision finds the model faster that finds a rewritten one so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
from onnx import ModelProto

from rlflow.equivalence.report import EquivalenceReport
from rlflow.optimise.clock import Deadline
from rlflow.optimise.gate import GateConfig, Judgement, limits_until
from rlflow.optimise.phases import Phases
from rlflow.optimise.refusal import Refused, of_candidate
from rlflow.optimise.reported.options import OptionsReport
from rlflow.optimise.runtimes import NO_TIME
from rlflow.optimise.timing import is_better
from rlflow.runtime.inputs import draw_inputs
from rlflow.runtime.isolation import ProcessTimeout, call_isolated
from rlflow.runtime.kernel_runs import at_work
from rlflow.runtime.session import structure_of
from rlflow.runtime.session_options import SessionOptions
from rlflow.runtime.timing.belief import NOTHING_PREDICTED
from rlflow.runtime.timing.latency import countdown

FindOptions: TypeAlias = Callable[[Path, GateConfig, Deadline, float], list[SessionOptions]]
"""Finds options to try for a model in a file until a deadline, the most promising first; a session takes so many
seconds.
"""
_FINDING = 0.4
"""The part of the time in which options are looked for."""
_SESSIONS = 30
"""As many are opened at least to tell which optimisers do something to a model."""
_ROUNDS = 12
"""Rounds of timing at most: what is clear takes three."""
_LEAST_RATIO = 1.02
"""Of what won a race by less nothing is timed: several race, and one of them wins by chance."""
NOTHING_FASTER = "with no other options it ran faster"
NOTHING_TRIED = "there were none to try, or no time to find any"


@dataclass(frozen=True)
class Tuned:
    """The model that was given in this place, with the options with which it is fastest, and its `equivalence`; or the
    very first.
    """

    place: int
    model: ModelProto
    report: OptionsReport
    equivalence: EquivalenceReport | None = None


@dataclass(frozen=True)
class OptionFinder:
    """Finds options with which ONNX Runtime optimises the model less, and those of fewer threads, if `with_threads`."""

    with_threads: bool = False

    def __call__(self, file: Path, config: GateConfig, deadline: Deadline, session_s: float) -> list[SessionOptions]:
        fewer = fewer_threads(config.threads) if self.with_threads else []
        if _SESSIONS * session_s > deadline.left_s:
            return fewer
        inputs = draw_inputs(structure_of(file), np.random.default_rng(config.seed), config.dimensions)
        return [*fewer, *call_isolated(limits_until(config, deadline), _less_optimised, file, inputs, deadline.left_s)]


def fewer_threads(most: int) -> list[SessionOptions]:
    """Return the options of one thread, and of half as many as there are cores."""
    return [SessionOptions(intra_op_num_threads=fewer) for fewer in sorted({1, most // 2}) if 1 <= fewer < most]


def less_optimised(
    file: Path, inputs: Mapping[str, np.ndarray], is_over: Callable[[], bool]
) -> Iterator[SessionOptions]:
    """Yield the options without any optimisation, and without each optimiser that does something to a model."""
    yield SessionOptions(graph_optimization_level="ORT_DISABLE_ALL")
    for name in at_work(file, inputs, is_over):
        yield SessionOptions(disabled_optimizers=(name,))


def _less_optimised(file: Path, inputs: Mapping[str, np.ndarray], left_s: float) -> list[SessionOptions]:
    """Return what `less_optimised` yields in so many seconds, in a process that may die of it."""
    own_left_s = countdown(left_s)
    return list(less_optimised(file, inputs, lambda: own_left_s() <= 0.0))


def tuned(
    phases: Phases,
    models: Sequence[tuple[ModelProto, Path]],
    original: Path,
    judgement: Judgement,
    find: FindOptions,
    deadline: Deadline,
) -> Tuned:
    """Return the model that runs fastest with options, or the first, which is right and is delivered otherwise.

    models: each with its file, without options. original: the file of what all were made from, which was judged.
    """
    try:
        with of_candidate("trying session options", passing=(ProcessTimeout,)):
            return _tuned(phases, models, original, judgement, find, deadline)
    except ProcessTimeout:
        return _as_it_is(models, NO_TIME)
    except Refused as refused:
        return _as_it_is(models, f"with others it {refused.refusal.reason}")


def _tuned(
    phases: Phases,
    models: Sequence[tuple[ModelProto, Path]],
    original: Path,
    judgement: Judgement,
    find: FindOptions,
    deadline: Deadline,
) -> Tuned:
    if deadline.is_over:
        return _as_it_is(models, NO_TIME)
    phases.begun("options", "trying session options")
    files = [file for _, file in models]
    found = _found(files, phases, judgement, find, deadline.part(_FINDING))
    if not found:
        return _as_it_is(models, NOTHING_TRIED)
    found = found[: phases.racers_in(len(found), judgement, deadline)]
    racers = [_carrying(options, files[n], f"options_{k}.onnx") for k, (n, options) in enumerate(found)]
    phases = replace(phases, gate=replace(phases.gate, racers=len(racers), rounds=_ROUNDS))
    place = 0
    if len(racers) > 1:
        race = phases.race(files[0], racers, [1.0] * len(racers), judgement, deadline)
        if race is None:
            return _as_it_is(models, NO_TIME)
        place = race.order[0]
        if race.ratio(place) < _LEAST_RATIO:
            return _as_it_is(models, NOTHING_FASTER)
    equivalence = phases.check_made(original, racers[place], judgement, deadline)
    latencies = phases.time_at_each_size(files[0], racers[place], NOTHING_PREDICTED, judgement, deadline)
    if not is_better(latencies, phases.setting, phases.gate):
        return _as_it_is(models, NO_TIME if deadline.is_over or not all(latencies) else NOTHING_FASTER)
    number, options = found[place]
    changes = [latency[phases.setting] for latency in latencies]
    report = OptionsReport(options, min(changes, key=lambda change: change.verdict.ratio))
    return Tuned(number, options.put_into(models[number][0]), report, equivalence)


def _as_it_is(models: Sequence[tuple[ModelProto, Path]], because: str) -> Tuned:
    return Tuned(0, models[0][0], OptionsReport(left_because=because))


def _found(
    files: Sequence[Path], phases: Phases, judgement: Judgement, find: FindOptions, deadline: Deadline
) -> list[tuple[int, SessionOptions]]:
    """Options to try for each of the files, by its place; the most promising of each first."""
    found, session_s = list[tuple[int, int, SessionOptions]](), phases.session_s(judgement)
    for model, file in enumerate(files):
        options = find(file, phases.gate, deadline.part(1.0 / (len(files) - model)), session_s)
        found += [(place, model, each) for place, each in enumerate(options)]
    return [(model, each) for _, model, each in sorted(found, key=lambda each: each[:2])]


def _carrying(options: SessionOptions, file: Path, name: str) -> Path:
    """Write a model beside its file, with options; large weights stay where they are."""
    path = file.with_name(name)
    path.write_bytes(options.put_into(structure_of(file)).SerializeToString())
    return path
