"""Every method on one graph: the same rules, prices, checks and timing for all (docs/decisions.md, 12).

    contest = contest_of(source, folder, gate)               what all have in common; the original runs once
    outcome = compete(contender, contest, checkpoint)        for each method
    timing = time_all(contest, outcomes, on_progress)        all of them together
    figures = row(contest, outcome, cost_model, timing)      for each method

The invariant: a model that computes something else than the original is no outcome, and every figure of a row follows
from an `Outcome` and the one `Timing`. The original competes too, as its own trivial baseline, timed twice. A graph
that several methods have found may be exported, checked and timed once; their rows then tell the same of it.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from experiment.search_checkpoint import kept_results
from rlflow.cost.base import CostModel, far_share
from rlflow.cost.work_ratios import work_ratios
from rlflow.equivalence.report import EquivalenceReport
from rlflow.errors import EquivalenceError, InputError
from rlflow.ir.graph import Graph
from rlflow.ir.structural_hash import structural_hash
from rlflow.method import Budget, Effort, Method, OnProgress, OptimisationResult
from rlflow.onnx_io import check_model, graph_of, to_onnx
from rlflow.onnx_io.external_data import write_mapped
from rlflow.optimise.diagnose import Derivation
from rlflow.optimise.gate import GateConfig, Judgement, check, judgeable
from rlflow.optimise.source import Source
from rlflow.runtime.session import SETTINGS, Setting
from rlflow.runtime.timing.latency import compare_latency
from rlflow.runtime.timing.statistics import Estimate, ratio

ORIGINAL = "original"


@dataclass(frozen=True)
class Contender:
    """A method, its budget and seeds, and the cost of its training: seconds and real steps.

    `alias` is its name among the others where one method competes with several settings.
    """

    optimiser: Method
    budget: Budget
    seeds: tuple[int, ...] = (0,)
    training_s: float = 0.0
    training_rewrites: int = 0
    alias: str = ""

    @property
    def name(self) -> str:
        return self.alias or self.optimiser.name


@dataclass(frozen=True)
class Contest:
    """The common start of all methods: a graph, the file of its model, and that model compared with itself.

    Results are written beside `original`, with which they share what weights they can, and checked and timed as `gate`
    says.
    """

    graph: Graph
    original: Path
    gate: GateConfig
    judgement: Judgement


@dataclass(frozen=True)
class Outcome:
    """The result of a method: a model in a file, and the evidence that it computes the same as the original."""

    contender: Contender
    result: OptimisationResult
    model: Path
    equivalence: EquivalenceReport


@dataclass(frozen=True)
class Timing:
    """Milliseconds (rounds,) by setting and model; the original was timed twice, to show the noise."""

    times_ms: Mapping[Setting, Mapping[str, np.ndarray]]

    def ratio(self, setting: Setting, name: str) -> Estimate:
        """The original's latency over that of `name`; for the original itself, over its second timing."""
        times = self.times_ms[setting]
        return ratio(times[ORIGINAL], times[again(name)])

    def median_ms(self, setting: Setting, name: str) -> float:
        """The median latency over all rounds."""
        return float(np.median(self.times_ms[setting][name]))


def contest_of(source: Source, folder: Path, gate: GateConfig) -> Contest:
    """Write the original to `folder` and run it: all results are compared with what it computes.

    `InputError` if nothing can be compared with it.
    """
    original = write_mapped(source.model, folder / f"{ORIGINAL}.onnx")
    judgement = judgeable(original, gate)
    if judgement.unjudgeable:
        raise InputError(f"{source.name} cannot be compared with anything: {judgement.unjudgeable}")
    return Contest(graph_of(source.model), original, gate, judgement)


def compete(
    contender: Contender,
    contest: Contest,
    checkpoint: Path,
    on_progress: OnProgress | None = None,
    before_keeping: Callable[[], None] = lambda: None,
    others: Iterable[Outcome] = (),
) -> Outcome:
    """Optimise, export and check, or take over the model and the evidence of one of `others` that found the same graph.

    The result is kept in the folder `checkpoint` and read from there if the method has run before. `before_keeping`
    saves what the result rests on, such as prices measured on the way; it is called first, so that a kill leaves both
    or only the prices. `EquivalenceError`, naming rule and step, if the result computes something else; a reproducer
    is then written to a folder in `checkpoint`.
    """
    graph = contest.graph
    results = kept_results(checkpoint, graph, contender.optimiser.rewriter)
    result = results.find(contender.name)
    if result is None:
        result = contender.optimiser.optimise(graph, contender.budget, on_progress)
        before_keeping()
        results.keep(contender.name, result)

    found = structural_hash(result.best)
    same = next((other for other in others if structural_hash(other.result.best) == found), None)
    if same is not None:
        return Outcome(contender, result, same.model, same.equivalence)

    candidate = to_onnx(result.best)
    check_model(candidate)
    path = write_mapped(candidate, contest.original.with_name(f"{contender.name}.onnx"), like=contest.original)

    derivation = Derivation(contest.original, path, graph, result.trajectory, contender.optimiser.rewriter)
    reproducer = checkpoint / f"{contender.name}.reproducer"
    try:
        report = check(derivation, contest.gate, reproducer, reference=contest.judgement.reference)
    except EquivalenceError as error:
        raise EquivalenceError(f"{contender.name}: {error}") from None
    return Outcome(contender, result, path, report)


def time_all(contest: Contest, outcomes: Mapping[str, Outcome], on_progress: OnProgress) -> Timing:
    """Time all models in alternating fresh sessions, in both settings."""
    original, gate = contest.original, contest.gate
    timed_as: dict[Path, str] = {}
    for name, outcome in outcomes.items():
        timed_as.setdefault(outcome.model, name)
    models = {ORIGINAL: original, again(ORIGINAL): original} | {name: model for model, name in timed_as.items()}

    def on_round(setting: Setting, done: int) -> None:
        fraction = (SETTINGS.index(setting) + done / gate.rounds) / len(SETTINGS)
        on_progress(fraction, f"{setting}, round {done}")

    times_ms = {}
    for setting in SETTINGS:
        measured = compare_latency(
            models,
            setting=setting,
            rounds=gate.rounds,
            runs_per_round=gate.runs_per_round,
            threads=gate.threads,
            seed=gate.seed,
            on_round=partial(on_round, setting),
        )
        shared = {name: measured[timed_as[outcome.model]] for name, outcome in outcomes.items()}
        times_ms[setting] = measured | shared
    return Timing(times_ms)


def original_row(contest: Contest, cost_model: CostModel, timing: Timing) -> dict[str, Any]:
    """The figures of the original, the trivial baseline (schema `evaluate`)."""
    graph = contest.graph
    runtime_ms = cost_model.runtime_ms(graph)
    return {
        **work_ratios(cost_model, graph, graph),
        **_trust(cost_model, graph),
        "cost_before_ms": runtime_ms,
        "cost_after_ms": runtime_ms,
        "improvement_percent": 0.0,
        **_latency(timing, ORIGINAL),
        **_evidence(contest.judgement.report),
        "optimisation_s": 0.0,
        "training_s": 0.0,
        **Effort().to_json(),
        "seeds": [contest.gate.seed],
        "steps": 0,
        "distinct_rules": 0,
    }


def row(contest: Contest, outcome: Outcome, cost_model: CostModel, timing: Timing) -> dict[str, Any]:
    """The figures of one method (schema `evaluate`)."""
    result, contender = outcome.result, outcome.contender
    steps = result.trajectory.steps
    return {
        **work_ratios(cost_model, contest.graph, result.best),
        **_trust(cost_model, result.best),
        "cost_before_ms": result.start_ms,
        "cost_after_ms": result.best_ms,
        "improvement_percent": result.improvement_percent,
        **_latency(timing, contender.name),
        **_evidence(outcome.equivalence),
        "optimisation_s": result.wall_time_s,
        "training_s": contender.training_s,
        **(Effort(rewrites=contender.training_rewrites) + result.effort).to_json(),
        "seeds": list(contender.seeds),
        "steps": len(steps),
        "distinct_rules": len({step.rule for step in steps}),
        "trajectory": result.trajectory.digest,
    }


def again(name: str) -> str:
    """The name under which the second timing of the original is kept; any other model was timed once."""
    return f"{name} again" if name == ORIGINAL else name


def _latency(timing: Timing, name: str) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    for setting in SETTINGS:
        measured = timing.ratio(setting, name)
        figures[f"latency_ratio_{setting}"] = measured.value
        figures[f"latency_ratio_{setting}_ci95"] = measured.ci95
        figures[f"latency_{setting}_ms"] = timing.median_ms(setting, name)
    return figures


def _trust(cost_model: CostModel, graph: Graph) -> dict[str, float]:
    """The trust that a graph's price deserves, of cost models that know."""
    share = far_share(cost_model, graph)
    return {} if share is None else {"far_share": share}


def _evidence(report: EquivalenceReport) -> dict[str, float]:
    return {
        "max_relative_error": report.max_relative_error,
        "tolerance": report.tolerance,
        "non_vacuous_draws": report.non_vacuous_draws,
    }
