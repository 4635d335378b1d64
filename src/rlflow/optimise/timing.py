"""The clock's say on candidates: a race among several, and the decision whether one is faster than the original.

    race = raced(original, [first, second, third], [1.1, 1.07, 1.04], "deployed", config, Limits())
    change = timed(original, [first, second, third][race.order[0]], "deployed", config, before=race.rounds[...])
    is_faster({"deployed": change}, "deployed")
    is_better([{"deployed": change}], "deployed", config)       at several sizes

Whole models run in fresh sessions, as their users run them, beside the original (`runtime.timing.latency`). What is
decided is said in `runtime.timing.belief`, or proven where that is asked for.

Invariant: a candidate that nobody has run yet runs in another process. `timed` runs those that have been checked.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from onnx import ModelProto

from rlflow.method import OnProgress
from rlflow.optimise.gate import GateConfig
from rlflow.optimise.reported.latency import LatencyChange
from rlflow.runtime.isolation import Limits, call_isolated
from rlflow.runtime.timing.belief import Belief
from rlflow.runtime.timing.latency import Opener, Round, alternating, countdown, latency_rounds, times_of
from rlflow.runtime.timing.sequential import SequentialTest
from rlflow.runtime.timing.verdict import judge

ORIGINAL = ("original", "original again")
CANDIDATE = ("candidate", "candidate again")
"""The names of the sessions of a round."""
_PREDICTION = 0.2
"""Rounds for which a predicted ratio counts: its error is about 5 %, that of a round 2."""


@dataclass(frozen=True)
class Race:
    """The outcome of a race. `order` are the candidates' places, the last survivor first; `rounds` those in which each
    took part, of which a round names the sessions as `timed` does.
    """

    order: tuple[int, ...]
    rounds: Mapping[int, tuple[Round, ...]]

    def ratio(self, place: int) -> float:
        """The original's time over the candidate's, median over its rounds; above 1, it is faster."""
        return math.exp(np.median(_log_ratios(self.rounds[place])))


def raced(
    original: Path,
    candidates: Sequence[Path],
    predicted: Sequence[float],
    setting: str,
    config: GateConfig,
    limits: Limits,
) -> Race:
    """Run candidates beside the original, in another process, by successive halving.

    In each round fresh sessions of the original and of the candidates that are left are opened, two of each, in an
    order drawn anew; then those of the slower half fall out, until one is left. A candidate is ranked by the mean of
    its ratios to the original, among which the `predicted` one counts as a fifth of a round: two rounds alone do not
    tell candidates apart that differ by a percent. Raises `ProcessDeath` if that process ends, or reaches one of the
    limits.
    """
    return call_isolated(limits, _raced, original, candidates, predicted, setting, config)


def _raced(
    original: Path, candidates: Sequence[Path], predicted: Sequence[float], setting: str, config: GateConfig
) -> Race:
    left, fallen = list(range(len(candidates))), list[int]()
    rounds: dict[int, tuple[Round, ...]] = {place: () for place in left}
    while len(left) > 1:
        for place, found in _race_round(original, candidates, left, setting, config, len(rounds[left[0]])).items():
            rounds[place] += (found,)
        left.sort(key=lambda place: _rank(rounds[place], predicted[place]), reverse=True)
        kept = math.ceil(len(left) / 2)
        left, fallen = left[:kept], left[kept:] + fallen
    return Race((*left, *fallen), rounds)


def _rank(rounds: Sequence[Round], predicted: float) -> float:
    return float(np.average([*_log_ratios(rounds), math.log(predicted)], weights=[1.0] * len(rounds) + [_PREDICTION]))


def _race_round(
    original: Path, candidates: Sequence[Path], left: Sequence[int], setting: str, config: GateConfig, number: int
) -> dict[int, Round]:
    """Time the original and the candidates that are left once; return of each its own round beside the original."""
    models = {name: original for name in ORIGINAL}
    names = {place: tuple(f"{name} {place}" for name in CANDIDATE) for place in left}
    models |= {name: candidates[place] for place in left for name in names[place]}
    endless = latency_rounds(
        models,
        setting=setting,
        runs_per_round=config.runs_per_round,
        threads=config.threads,
        seed=config.seed + number,
        dimensions=config.dimensions,
    )
    with closing(endless):
        found = next(endless)
    ours = {name: found.times_ms[name] for name in ORIGINAL}
    own = {place: dict(zip(CANDIDATE, (found.times_ms[name] for name in names[place]), strict=True)) for place in left}
    return {place: Round(ours | own[place], found.retaken) for place in left}


def _log_ratios(rounds: Sequence[Round]) -> np.ndarray:
    original, candidate = _pairs(rounds)
    ratios: np.ndarray = np.log(original).mean(axis=1) - np.log(candidate).mean(axis=1)
    return ratios


def timed(
    original: ModelProto | Path,
    candidate: ModelProto | Path,
    setting: str,
    config: GateConfig,
    left_s: Callable[[], float] = lambda: math.inf,
    on_progress: OnProgress | None = None,
    before: Sequence[Round] = (),
) -> LatencyChange:
    """Time both models in rounds, twice in each, until it is decided which one is faster.

    `left_s` tells the seconds that are left, besides those of `config`. `on_progress` receives the fraction of
    `config.rounds` that is done, and the answer so far. The rounds `before`, of a race, count as well: where they
    decide it, none is taken.
    """
    models = {ORIGINAL[0]: original, ORIGINAL[1]: original, CANDIDATE[0]: candidate, CANDIDATE[1]: candidate}
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
    return decided(endless, config, on_progress, before)


def timed_as_opened(
    original: Opener, candidate: Opener, threads: int, config: GateConfig, left_s: Callable[[], float]
) -> LatencyChange:
    """Do what `timed` does with two ways to open a model, by the clock of so many threads."""
    openers = dict.fromkeys(ORIGINAL, original) | dict.fromkeys(CANDIDATE, candidate)
    rng, runs = np.random.default_rng(config.seed), config.runs_per_round
    rounds = alternating(openers, rng, runs_per_round=runs, threads=threads, left_s=left_s)
    return decided((each for each in rounds), config)


def decided(
    endless: Generator[Round, None, None],
    config: GateConfig,
    on_progress: OnProgress | None = None,
    before: Sequence[Round] = (),
) -> LatencyChange:
    """Take rounds, of which each names its sessions as `timed` does, until they decide or `config.rounds` are done."""
    if before and (change := latency_change(before, config.belief, config.proof)).verdict.decision != "undecided":
        return change
    rounds = list(before)
    with closing(endless):
        for each in islice(endless, max(config.rounds - len(before), 1)):
            rounds.append(each)
            change = latency_change(rounds, config.belief, config.proof)
            if on_progress is not None:
                on_progress(len(rounds) / config.rounds, f"timing the result against the original: {change.verdict}")
            if change.verdict.decision != "undecided":
                break
    return change


def latency_change(rounds: Sequence[Round], belief: Belief, proof: SequentialTest | None = None) -> LatencyChange:
    """Return medians and verdict of rounds, in each of which both models were timed twice."""
    original, candidate = _pairs(rounds)
    return LatencyChange(
        before_ms=float(np.median(original)),
        after_ms=float(np.median(candidate)),
        verdict=judge(original, candidate, belief, proof),
        retaken=sum(each.retaken for each in rounds),
    )


def _pairs(rounds: Sequence[Round]) -> tuple[np.ndarray, np.ndarray]:
    """The milliseconds of original and candidate, (rounds, 2) each."""
    times_ms = times_of(rounds)
    original, candidate = (np.stack([times_ms[name] for name in twice], axis=1) for twice in (ORIGINAL, CANDIDATE))
    return original, candidate


def is_faster(latency: Mapping[str, LatencyChange], setting: str) -> bool:
    """True if it was found faster in the setting that was optimised for."""
    return latency[setting].verdict.decision == "faster"


def is_better(latencies: Sequence[Mapping[str, LatencyChange]], setting: str, config: GateConfig) -> bool:
    """True if it was found faster at one size, and nowhere left to be slower by as much as decides (`Belief`)."""
    if not all(latencies):
        return False
    verdicts = [latency[setting].verdict for latency in latencies]
    return any(verdict.decision == "faster" for verdict in verdicts) and all(
        verdict.decision in ("faster", "same")
        or (
            verdict.decision == "undecided"
            and config.proof is None
            and verdict.harmful_probability <= config.belief.harmful
        )
        for verdict in verdicts
    )


def is_slower(latency: Mapping[str, LatencyChange], setting: str) -> bool:
    """True if it was found slower in the setting that was optimised for."""
    return latency[setting].verdict.decision == "slower"
