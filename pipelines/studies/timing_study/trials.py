"""The errors of timing: how often a model differs from itself, and how often a known difference is missed.

    plain, slower = (zoo.build("mlp", layers=layers) for layers in (33, 34))         3 % slower by construction
    trials = [trial(plain, slower, "deployed", gate, SequentialTest()) for _ in range(100)]      by belief and by proof
    figures(trials)["slower_share"]                                                  beside that of the fixed rounds

The baseline is a rule that the gate once had, on times that are taken in the same way: seven rounds, the bootstrap
interval of their median, and a difference counts from 2 %. The same comparison is made on drawn times (`simulated`),
where the noise is known.

The invariant: in a group of trials, what is compared and what runs beside it is the same for all.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median
from typing import Any

import numpy as np
from onnx import ModelProto

from rlflow.optimise.gate import GateConfig
from rlflow.optimise.timing import timed
from rlflow.runtime.session import Setting
from rlflow.runtime.timing.latency import compare_latency
from rlflow.runtime.timing.sequential import SequentialTest
from rlflow.runtime.timing.statistics import beyond_noise, ratio

_FIXED_ROUNDS = 7
Decide = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Returns the decision after every round of logarithms of times of two models, as `Belief.decisions` does."""
Noise = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]


@dataclass(frozen=True)
class Trial:
    """One comparison: the decision, its ratio, what it took, and the decisions by proof and after the fixed rounds."""

    decision: str
    ratio: float
    rounds: int
    retaken: int
    wall_s: float
    proven_decision: str
    fixed_decision: str


def trial(
    original: ModelProto, candidate: ModelProto, setting: Setting, gate: GateConfig, proof: SequentialTest
) -> Trial:
    """Compare two models by all three rules, one after the other."""
    start = time.perf_counter()
    change = timed(original, candidate, setting, gate)
    wall_s = time.perf_counter() - start
    verdict = change.verdict
    proven = timed(original, candidate, setting, replace(gate, proof=proof)).verdict.decision
    fixed = _fixed_decision(original, candidate, setting, gate)
    return Trial(verdict.decision, verdict.ratio, verdict.rounds, change.retaken, wall_s, proven, fixed)


def _fixed_decision(original: ModelProto, candidate: ModelProto, setting: Setting, gate: GateConfig) -> str:
    times_ms = compare_latency(
        {"original": original, "candidate": candidate},
        setting=setting,
        rounds=_FIXED_ROUNDS,
        runs_per_round=gate.runs_per_round,
        threads=gate.threads,
        seed=gate.seed,
    )
    measured = ratio(times_ms["original"], times_ms["candidate"])
    if not beyond_noise(measured):
        return "undecided"
    return "faster" if measured.value > 1 else "slower"


def figures(trials: Sequence[Trial]) -> dict[str, Any]:
    """The figures of a group of comparisons (schema `timing`)."""
    return {
        **_shares([each.decision for each in trials]),
        "proven": _shares([each.proven_decision for each in trials]),
        "fixed_rounds": _shares([each.fixed_decision for each in trials]),
        "ratio": median(each.ratio for each in trials),
        "mean_rounds": fmean(each.rounds for each in trials),
        "mean_rounds_retaken": fmean(each.retaken for each in trials),
        "mean_s": fmean(each.wall_s for each in trials),
        "cases": len(trials),
    }


def _shares(decided: Sequence[str]) -> dict[str, float]:
    """The share of cases that were decided in each way; the rest remained open."""
    faster, slower, same = (decided.count(decision) / len(decided) for decision in ("faster", "slower", "same"))
    return {"faster_share": faster, "slower_share": slower, "same_share": same}


def simulated(noise: Noise, slowdown: float, decide: Decide, *, rounds: int, cases: int, seed: int) -> dict[str, Any]:
    """The figures of comparisons of drawn times: a candidate that takes 1 + `slowdown` times as long, and the noise.

    `noise` draws logarithms of times of the given shape (cases, rounds, 4).
    """
    logs = noise(np.random.default_rng(seed), (cases, rounds, 4))
    after_each_round = decide(logs[..., :2], logs[..., 2:] + math.log1p(slowdown))
    decided, taken = first_decisions(after_each_round)
    return {**_shares(decided.tolist()), "mean_rounds": float(taken.mean()), "cases": cases}


def first_decisions(after_each_round: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the decision with which each case stopped, and after how many rounds; both (cases,).

    after_each_round: (cases, rounds). A case that never decides takes all rounds.
    """
    cases, rounds = after_each_round.shape
    done = after_each_round != "undecided"
    at = np.where(done.any(axis=1), done.argmax(axis=1), rounds - 1)
    return after_each_round[np.arange(cases), at], at + 1


def quiet(spread: float) -> Noise:
    """Times of equal sessions that scatter by the share `spread`, normally."""
    return lambda rng, shape: spread * rng.standard_normal(shape)


def heavy_tailed(spread: float) -> Noise:
    """Student's t with two degrees of freedom, which has no variance."""
    return lambda rng, shape: spread * rng.standard_t(2, shape)


def bursts(spread: float) -> Noise:
    """Quiet, but a tenth of the sessions take 1.1 to 2.7 times as long."""

    def draw(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        return quiet(spread)(rng, shape) + (rng.random(shape) < 0.1) * rng.uniform(0.1, 1.0, shape)

    return draw


def drift(spread: float) -> Noise:
    """Quiet, on a machine whose pace wanders from round to round, and slows down by 1 % from session to session."""

    def draw(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        position = rng.random(shape).argsort(axis=-1)  # the order of a round is drawn
        wander = np.cumsum(0.02 * rng.standard_normal((*shape[:-1], 1)), axis=-2)
        return quiet(spread)(rng, shape) + 0.01 * position + wander

    return draw


NOISES: dict[str, Callable[[float], Noise]] = {
    "quiet": quiet,
    "heavy_tailed": heavy_tailed,
    "bursts": bursts,
    "drift": drift,
}
