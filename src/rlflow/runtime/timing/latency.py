"""End-to-end latency of several models against each other, round by round.

    models = {"original": a, "again": a, "candidate": b}
    with closing(latency_rounds(models, setting="deployed", left_s=countdown(20.0))) as rounds:
        for each in rounds:
            each.times_ms["original"] / each.times_ms["candidate"]

Whatever else can be opened and run, such as a model of another framework, takes turns by `alternating`.

A model that is opened twice runs at two speeds (by where its pages lie: up to 7 % on small models,
docs/measurements.md, 1), and a machine drifts. So each round opens a fresh session of every model, one after another,
and only times of one round are compared. Their order is drawn anew for every round, which is what makes a test on them
exact (`rlflow.runtime.timing.sequential`): a model that is always opened after another one may be the slower for it.

Noise only ever adds time, so that a session's time is that of its fastest runs (`rlflow.runtime.timing.clock`). Between
two sessions of a model of one millisecond, while other work kept both cores busy, the median of five runs differed by
8 %, of twenty by 3 %; the fastest of five by 5 %, of twenty by 0.7 %.

The pace of the machine is taken before and after every session. A round in which it was slow, against what it was in
all rounds so far, is taken again; whatever the reason was, it was nothing in the models.
"""

import math
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto

from rlflow.errors import InputError, RLFlowError
from rlflow.onnx_io.external_data import write_mapped
from rlflow.runtime.inputs import draw_inputs, required_inputs
from rlflow.runtime.runtimes import OpenModel, open_model
from rlflow.runtime.scratch import scratch_folder
from rlflow.runtime.session import structure_of
from rlflow.runtime.timing.clock import clock_ns, shortest_ns
from rlflow.runtime.timing.pace import pace_ms

# About as long as it takes to open a small model, which would be a waste for fewer runs.
_LEAST_NS = 25_000_000
# The pace scatters by 3 % from moment to moment, and is slower by 30 to 100 % now and then beside other work.
_SLOW = 1.3
_MOST_RETAKES = 2

Opener = Callable[[], Callable[[], Any]]
"""Opens a model anew and runs it once, which touches its memory; what it returns runs it again."""


@dataclass(frozen=True)
class Round:
    """Milliseconds of a run by model, and how many times the round was taken again because the machine was slow."""

    times_ms: Mapping[str, float]
    retaken: int = 0


@dataclass(frozen=True)
class Take:
    """A round as it was measured, beside the pace before, between and after the sessions."""

    times_ms: Mapping[str, float]
    paces_ms: tuple[float, ...]


def latency_rounds(
    models: Mapping[str, ModelProto | Path],
    *,
    setting: str | Mapping[str, str],
    runs_per_round: int = 10,
    threads: int = 1,
    seed: int = 0,
    dimensions: Mapping[str, int] | None = None,
    left_s: Callable[[], float] = lambda: math.inf,
) -> Generator[Round, None, None]:
    """Yield rounds as long as they are asked for and fit, by the longest so far, into what is left; at least one.

    `setting` is that of all models, or of each by its name. All models get the same inputs, drawn once from the first
    with `seed` and `dimensions`. A round opens one model anew at a time (so memory holds one), runs
    it once, times `runs_per_round` runs, or more if these take less than 25 ms, and closes it. `left_s` tells the
    seconds that are left. Close the generator when you stop asking: the models' files are on disk until then.

    Raises `InputError` when there is nothing to measure, `RLFlowError` when the models' inputs differ or one does not
    run, both with the first round.
    """
    if not models or runs_per_round < 1:
        raise InputError(f"nothing to time: {len(models)} models, {runs_per_round} runs per round")
    settings = dict.fromkeys(models, setting) if isinstance(setting, str) else setting
    rng = np.random.default_rng(seed)
    inputs = _shared_inputs(models, rng, dimensions)
    with scratch_folder() as folder:
        files = _files(models, folder)

        openers = {name: session_opener(files[name], settings[name], threads, inputs) for name in models}
        yield from alternating(openers, rng, runs_per_round=runs_per_round, threads=threads, left_s=left_s)


def session_opener(file: Path, setting: str, threads: int, inputs: Mapping[str, np.ndarray]) -> Opener:
    """Return what opens a model in a file, and raises `RLFlowError` where it does not run."""
    return opener(partial(open_model, file, setting, threads), inputs)


def opener(open_anew: Callable[[], OpenModel], inputs: Mapping[str, np.ndarray]) -> Opener:
    """Return what opens a model anew and runs it once on these inputs."""

    def opened() -> Callable[[], Any]:
        model = open_anew()
        model.run(inputs)
        return model.repeated(inputs)

    return opened


def alternating(
    openers: Mapping[str, Opener],
    rng: np.random.Generator,
    *,
    runs_per_round: int,
    threads: int,
    left_s: Callable[[], float] = lambda: math.inf,
) -> Iterator[Round]:
    """Yield the rounds of `latency_rounds` for whatever is opened; their order within a round is drawn from `rng`."""

    def take() -> Take:
        times_ms, paces_ms = {}, [pace_ms(threads)]
        for name in rng.permutation(list(openers)).tolist():
            times_ms[name] = _shortest_run_ms(openers[name](), runs_per_round, threads)
            paces_ms.append(pace_ms(threads))
        return Take({name: times_ms[name] for name in openers}, tuple(paces_ms))

    return undisturbed(within(left_s, take))


def compare_latency(
    models: Mapping[str, ModelProto | Path],
    *,
    setting: str,
    rounds: int = 10,
    runs_per_round: int = 10,
    threads: int = 1,
    seed: int = 0,
    dimensions: Mapping[str, int] | None = None,
    left_s: Callable[[], float] = lambda: math.inf,
    on_round: Callable[[int], None] | None = None,
) -> dict[str, np.ndarray]:
    """Return the times of so many `latency_rounds`, by model: arrays (rounds,) whose k-th entries belong together.

    Rounds are fewer where no more fit into what is left. `on_round` receives the number of rounds done. Raises as
    `latency_rounds` does, and without rounds.
    """
    if rounds < 1:
        raise InputError(f"nothing to time: {rounds} rounds")
    endless = latency_rounds(
        models,
        setting=setting,
        runs_per_round=runs_per_round,
        threads=threads,
        seed=seed,
        dimensions=dimensions,
        left_s=left_s,
    )
    done = []
    with closing(endless):
        for each in islice(endless, rounds):
            done.append(each)
            if on_round is not None:
                on_round(len(done))
    return times_of(done)


def times_of(rounds: Iterable[Round]) -> dict[str, np.ndarray]:
    """Return the milliseconds of all rounds, (rounds,) by model."""
    rows = [each.times_ms for each in rounds]
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def countdown(time_s: float) -> Callable[[], float]:
    """Return a function that tells the seconds that are left of `time_s`, from now on."""
    end_s = time.monotonic() + time_s
    return lambda: end_s - time.monotonic()


def within(left_s: Callable[[], float], take: Callable[[], Take]) -> Iterator[Take]:
    """Yield takes, at least one, until less is left than the longest of them took."""
    longest_s, before_s = -math.inf, left_s()
    while before_s >= longest_s:
        yield take()
        after_s = left_s()
        took_s = before_s - after_s if math.isfinite(after_s) else 0.0
        longest_s, before_s = max(longest_s, took_s), after_s


def undisturbed(takes: Iterable[Take]) -> Iterator[Round]:
    """Yield the takes beside which the machine was not slow, and any that is the third in a row for one round.

    Slow is a pace beyond 1.3 times the median of all so far. Where takes end before a round is done, nothing is
    yielded for it, unless it is the first. Which takes are left out depends on the paces alone, so that it favours no
    model.
    """
    paces_ms: list[float] = []
    retaken = rounds = 0
    for take in takes:
        paces_ms += take.paces_ms
        slow = max(take.paces_ms) > _SLOW * np.median(paces_ms)
        if slow and retaken < _MOST_RETAKES:
            retaken += 1
            continue
        yield Round(take.times_ms, retaken)
        rounds, retaken = rounds + 1, 0
    if not rounds and retaken:
        yield Round(take.times_ms, retaken - 1)


def _files(models: Mapping[str, ModelProto | Path], folder: Path) -> dict[str, Path]:
    """Write each model to a file. One that has several names is written once, and one that is in a file stays there."""
    written: dict[int, Path] = {}
    for model in models.values():
        if isinstance(model, ModelProto) and id(model) not in written:
            written[id(model)] = write_mapped(model, folder / f"{len(written)}.onnx")
    return {name: model if isinstance(model, Path) else written[id(model)] for name, model in models.items()}


def _shortest_run_ms(run_once: Callable[[], Any], runs: int, threads: int) -> float:
    """The time of the fastest runs of what was opened, which goes with the call, so that memory holds one model."""
    times_ns: list[int] = []
    while len(times_ns) < runs or sum(times_ns) < _LEAST_NS:
        start = clock_ns(threads)
        run_once()
        times_ns.append(clock_ns(threads) - start)
    return shortest_ns(times_ns) / 1e6


def _shared_inputs(
    models: Mapping[str, ModelProto | Path], rng: np.random.Generator, dimensions: Mapping[str, int] | None
) -> dict[str, np.ndarray]:
    reference, *others = models
    inputs = draw_inputs(structure_of(models[reference]), rng, dimensions)
    for name in others:
        expected = {value.name for value in required_inputs(structure_of(models[name]))}
        if expected != set(inputs):
            raise RLFlowError(f"{name} takes inputs {sorted(expected)}, {reference} takes {sorted(inputs)}")
    return inputs
