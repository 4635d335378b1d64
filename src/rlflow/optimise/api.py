"""The steps behind `rlflow.optimise`: names become objects, the pipeline runs, and a report says what came of it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from onnx import ModelProto

from rlflow.cost.analytic import AnalyticCost
from rlflow.cost.base import CostContext, CostModel
from rlflow.cost.measured import MeasuredCost, measured
from rlflow.cost.models import COST_MODELS, HERE
from rlflow.cost.pricing import PricingConfig
from rlflow.cost.work_ratios import work_ratios
from rlflow.equivalence.report import EquivalenceReport
from rlflow.errors import InputError, PriceError
from rlflow.ir.graph import Graph
from rlflow.ir.tensor_type import Dimension
from rlflow.method import Method, OnProgress, OptimisationResult
from rlflow.onnx_io import save_model
from rlflow.onnx_io.external_data import write_mapped
from rlflow.optimise import DEFAULT_COST_MODEL, DEFAULT_SETTING
from rlflow.optimise.clock import Deadline, Shares, Stopwatch, TimeSpent
from rlflow.optimise.flushing import Flushed, without_subnormals
from rlflow.optimise.gate import GateConfig, judging
from rlflow.optimise.methods import METHODS
from rlflow.optimise.phases import Phases
from rlflow.optimise.pipeline import Pipeline, PipelineResult
from rlflow.optimise.pre_passes import FirstMove
from rlflow.optimise.report import OptimisationReport
from rlflow.optimise.reported.latency import LatencyChange
from rlflow.optimise.reported.options import OptionsReport
from rlflow.optimise.reported.settings import InSetting
from rlflow.optimise.reported.sizes import AtSize
from rlflow.optimise.runtimes import Beside, fastest
from rlflow.optimise.session_options import FindOptions, tuned
from rlflow.optimise.shortlist import Shortlist
from rlflow.optimise.source import Source
from rlflow.optimise.timing import is_better, is_faster, is_slower
from rlflow.rules.certificate import ASSUMPTIONS
from rlflow.rules.library import Library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.rules.rule import Rule
from rlflow.rules.user_rules import library_of
from rlflow.runtime.hardware import fingerprint
from rlflow.runtime.isolation import Workers
from rlflow.runtime.runtimes import RUNTIMES, YARDSTICK, said
from rlflow.runtime.scratch import scratch_folder
from rlflow.runtime.session import SETTINGS, Setting
from rlflow.runtime.session_options import DEFAULTS, SessionOptions, write_beside
from rlflow.runtime.sizes import Shapes, Size, each_size, separated
from rlflow.runtime.timing.apart import time_batch_apart
from rlflow.schemas.figures import Written
from rlflow.search.factory import make_search
from rlflow.trajectory.record import Trajectory

if TYPE_CHECKING:
    from rlflow.optimise.methods import MethodFactory

_LOGGER = logging.getLogger(__name__)

_BESIDE = 0.25
"""The part of the time in which a result is run in other settings, if that is asked for."""
_OPTIONS = 0.1
"""The part of the time in which it is run with session options, if that is asked for; and what is left over."""
MEASURED = "measured"
PREDICTED = "predicted"
PASSES = "passes"
"""The method that has no rules, and whose passes are all that is done."""
PROVEN = "faster beyond noise and equal within rounding"
NOT_FASTER = "the rewritten model was not faster beyond noise"
SLOWER = "the rewritten model was slower; optimised for each size by itself (--dispatch), it may be faster"
UNTIMED = "the budget was over before the rewritten model was timed"
UNDECIDED = "the time was over before timing could tell if the rewritten model is faster"
"""Followed by the probability that it is."""
INTERRUPTED_UNTIMED = "interrupted: equal within rounding, not timed"
INTERRUPTED_TIMING = "interrupted: equal within rounding, timed too briefly to tell if it is faster"

T = TypeVar("T")


@dataclass(frozen=True)
class Rewriting:
    """The way to a result: the model's graph `before` all, the graph that its steps `start` from, the rewriter that
    took them, and the prices of graphs, measured ones where the parts of both ends were measured.

    `searched` are the graphs that a search saw in the places of the first and of the last, under all that it might
    assume, with the same nodes in the same order: these have prices. `shapes` are those of inputs with dynamic
    dimensions for which sizes were given. The steps start from a graph of another model than the given one where that
    `is_from_the_model` is false: after passes, after rewrites in bodies, without subnormal weights, or where a part of
    the outputs is read.
    """

    before: Graph
    start: Graph
    searched: tuple[Graph, Graph]
    rewriter: Rewriter
    cost_model: CostModel
    shapes: Mapping[str, tuple[Dimension, ...]]
    is_from_the_model: bool


@dataclass(frozen=True)
class Optimised:
    """The result of `rlflow.optimise`.

    `model` is what to use: the optimised model, or the original where that was not faster beyond noise or could not be
    judged, without its subnormal weights if it had any; `written` says which, and `reason` why. `latency` is empty
    where there was nothing to time. `result` is the search's: if passes were taken before, it begins after them.
    `rewriting` holds the graphs on the way.
    """

    model: ModelProto
    result: OptimisationResult
    written: str
    reason: str
    equivalence: EquivalenceReport
    latency: dict[str, LatencyChange]
    report: OptimisationReport
    source: Source
    rewriting: Rewriting

    def save(self, path: Path | str) -> None:
        """Write `model` to a file, whole or not at all; beyond protobuf's 2 GB its weights go to `<name>.data` beside
        it. An original that came from one file is copied byte for byte, unless it has session options now. These are
        written to `<name>.options.json` as well, which is removed where there are none.

        `InputError` if the folder does not exist or may not be written.
        """
        if self.model is self.source.model:
            self.source.save(path)
        else:
            save_model(self.model, path)
        write_beside(path, SessionOptions.of(self.model))


@dataclass(frozen=True)
class Request:
    """The arguments of `rlflow.optimise`, under their names."""

    method: str | Method | MethodFactory
    options: Mapping[str, Any]
    library: Library | Path | str | None
    disabled: Sequence[str]
    strict: bool
    cost_model: str | CostModel
    shortlist: int
    pricing: PricingConfig | None
    prices: Path | None
    budget_s: float | None
    setting: str
    beside: Sequence[str]
    shapes: Shapes
    read: Sequence[str]
    gate: GateConfig
    shares: Shares
    reproducer: Path | None
    on_progress: OnProgress | None
    passes: str | None
    known: Trajectory | None
    session_options: FindOptions | None
    since_s: float

    def __post_init__(self) -> None:
        if self.setting not in RUNTIMES.names():
            raise InputError(f"there is no setting {self.setting!r}: choose one of {', '.join(RUNTIMES.names())}")
        for setting in self.beside:
            RUNTIMES.get(setting)
        if self.session_options is not None and self.setting != DEFAULT_SETTING:
            raise InputError(f"session_options are for the setting {DEFAULT_SETTING}, not for {self.setting}")
        if isinstance(self.disabled, str):
            raise InputError(f"disabled is the text {self.disabled!r}: give a list of ids or names of rules")
        if isinstance(self.read, str):
            raise InputError(f"read is the text {self.read!r}: give a list of such texts")


class _Delivered(NamedTuple):
    """The model that is delivered, its file without options of a session, why that one, and in which setting it runs;
    `session_options` if some were tried.
    """

    model: ModelProto
    file: Path
    written: Written
    reason: str
    setting: str
    equivalence: EquivalenceReport
    session_options: OptionsReport | None = None


class _Search(NamedTuple):
    """A method that is ready, the rules that it has, and the prices that it goes by."""

    method: Method
    rules: Library
    cost_model: CostModel


def optimise_model(model: ModelProto | Path | str | Source, request: Request, deadline: Deadline) -> Optimised:
    """Carry out `rlflow.optimise`, with one isolated process for all that runs what nobody has run yet.

    That starts now, to have imported what it needs by the time at which the model is read.
    """
    with Workers("rlflow.optimise.timing") as workers:
        limits = replace(request.gate.limits, workers=workers)
        return _optimise_beside(model, replace(request, gate=replace(request.gate, limits=limits)), deadline)


def _optimise_beside(model: ModelProto | Path | str | Source, request: Request, deadline: Deadline) -> Optimised:
    watch = Stopwatch(request.since_s)
    if request.method == PASSES:
        request = _without_rules(request)
    factory: Any = METHODS.get(request.method) if isinstance(request.method, str) else request.method
    source = Source.of(model).reading(request.read)
    sizes = each_size(source.model, request.shapes)
    # Of several sizes none may be assumed: what is delivered is for all of them.
    assumed = sizes[0].dimensions if len(sizes) == 1 else {}
    config = _config(request, sizes)
    context = _context(request, config.dimensions or {})
    whole, deadline = deadline, deadline.part(1.0 - _OPTIONS) if request.session_options else deadline
    with scratch_folder() as folder:
        original = write_mapped(source.model, folder / "original.onnx")
        # Rules and prices are read while another process judges.
        with judging(original, config, deadline.part(request.shares.of("judging"))) as judged:
            watch.begin("rules")
            search = _search(factory, request, context)
            shortlist = _shortlist(request, search.cost_model, context)

            def made_without(rules: Collection[str]) -> Method:
                anew = replace(request, disabled=(*request.disabled, *rules), cost_model=search.cost_model)
                return _search(factory, anew, context).method

            phases = Phases(
                method=search.method,
                cost_model=search.cost_model,
                setting=request.setting,
                gate=config,
                shares=request.shares,
                shortlist=shortlist,
                reproducer=request.reproducer,
                on_progress=_overall(request.on_progress, request.budget_s, whole),
                first_move=None if request.passes is None else FirstMove(request.passes),
                made_without=None if _ready(factory) else made_without,
                known=request.known,
                watch=watch,
            )
            pipeline = Pipeline(phases, search.rules, assumed)
            flushed = without_subnormals(phases, source.model, original, judged, deadline)
            argument = source.argument if flushed.equivalence is None else ""
            until = deadline.part(1.0 - _BESIDE) if request.beside else deadline
            made = pipeline.run_beside(flushed.judging, flushed.model, flushed.file, until, argument)
            decision = _decision(made, request, deadline)
            watch.answer()
            settings = _in_settings(made, flushed, decision[0], request, phases, deadline)
            delivered = _delivered(made, flushed, decision, settings, request)
            if request.session_options is not None:
                delivered = _tuned(delivered, made, phases, flushed, request.session_options, whole)
    if request.prices is not None:
        _keep_prices(shortlist.cost_model if shortlist else search.cost_model, request.prices)
    rewriting = _rewriting(made, search, shortlist, bool(argument))
    return _optimised(made, flushed, source, search, rewriting, request, delivered, settings, watch.told())


def _config(request: Request, sizes: Sequence[Size]) -> GateConfig:
    """The settings by which a result is checked and timed, at each of the sizes."""
    if len(sizes) > 1 and request.beside:
        raise InputError("several sizes are for one runtime and one precision: name these, instead of auto")
    given = request.gate.dimensions or {}
    sizes = [replace(size, dimensions={**size.dimensions, **given}) for size in sizes]
    return replace(
        request.gate.running_in(request.setting),
        dimensions=sizes[0].dimensions,
        sizes=tuple(sizes) if len(sizes) > 1 else (),
        exceptional=request.strict,
    )


def _without_rules(request: Request) -> Request:
    """The request of a method that runs passes and nothing else. `InputError` for one that asks for rules."""
    if request.library is not None or request.disabled or request.strict:
        raise InputError(
            f"the method {PASSES} uses no rules: leave library, disabled and strict out, or choose another method"
        )
    return replace(request, passes=request.passes or FirstMove.backend, library=Library(()))


def _search(factory: Any, request: Request, context: CostContext) -> _Search:
    """Put method, rules and prices together. A method that is ready brings its own rules and prices."""
    cost_model, ready = request.cost_model, _ready(factory)
    if ready is not None:
        _refuse_what_it_brings(
            ready.name,
            options=request.options,
            library=request.library,
            disabled=request.disabled,
            strict=request.strict,
            cost_model=isinstance(cost_model, str) and cost_model != DEFAULT_COST_MODEL and cost_model,
            pricing=request.pricing,
            prices=request.prices,
        )
        pricer = AnalyticCost() if isinstance(cost_model, str) else cost_model
        return _Search(ready, Library(ready.rewriter.rules), pricer)
    rules = library_of(request.library).without(request.disabled)
    rules = rules.strict() if request.strict else rules
    pricer = _cost_model(cost_model, context)
    parts = (rules, Rewriter(rules.rules), pricer)
    subject = f"the method {getattr(factory, '__name__', factory)}"
    return _Search(make_search(factory, parts, request.options, subject), rules, pricer)


def _delivered(
    made: PipelineResult,
    flushed: Flushed,
    decision: tuple[bool, str],
    settings: tuple[InSetting, ...],
    request: Request,
) -> _Delivered:
    """Return what is delivered by the decision for the first setting or in the fastest of several."""
    setting, is_better, reason = _in_fastest(settings, *decision) if settings else (request.setting, *decision)
    if flushed.report is not None and flushed.report.weights:
        reason = f"{flushed.report.reason}; {reason}"
    if not is_better:
        return _unchanged(made, flushed, reason, setting)
    assert made.file is not None, "what was checked has one"
    return _Delivered(made.candidate, made.file, "optimised", reason, setting, made.equivalence)


def _unchanged(made: PipelineResult, flushed: Flushed, reason: str, setting: str) -> _Delivered:
    """The original, or that without subnormal weights, as what is delivered."""
    written: Written = "original" if flushed.equivalence is None else "flushed"
    return _Delivered(flushed.model, flushed.file, written, reason, setting, flushed.equivalence or made.equivalence)


def _tuned(
    delivered: _Delivered, made: PipelineResult, phases: Phases, flushed: Flushed, find: FindOptions, deadline: Deadline
) -> _Delivered:
    """Return what is delivered, or the original, with the session options with which it runs fastest, if it is for
    ONNX Runtime.
    """
    judgement = flushed.judging.result()
    if judgement.reference is None or delivered.setting != phases.setting:
        return delivered
    choices = [delivered]
    if delivered.written == "optimised":
        reason = f"as the rewritten model without ({delivered.reason})"
        choices.append(_unchanged(made, flushed, reason, delivered.setting))
    models = [(each.model, each.file) for each in choices]
    found = tuned(phases, models, flushed.file, judgement, find, deadline)
    chosen, options = choices[found.place], found.report
    if options.options == DEFAULTS:
        return delivered._replace(session_options=options)
    reason = f"{options.reason}{'; ' if chosen is delivered else ' '}{chosen.reason}"
    return chosen._replace(
        model=found.model, reason=reason, equivalence=found.equivalence or chosen.equivalence, session_options=options
    )


def _optimised(
    made: PipelineResult,
    flushed: Flushed,
    source: Source,
    search: _Search,
    rewriting: Rewriting,
    request: Request,
    delivered: _Delivered,
    settings: tuple[InSetting, ...],
    time_spent: TimeSpent,
) -> Optimised:
    """Report on the model that is delivered."""
    report = OptimisationReport(
        input=source.name,
        output=None,
        method=search.method.name,
        written=delivered.written,
        reason=delivered.reason,
        latency=made.latency,
        equivalence=delivered.equivalence,
        hardware=fingerprint(request.gate.threads).key,
        budget_s=request.budget_s,
        setting=delivered.setting,
        settings=settings,
        shapes=separated(request.shapes)[0],
        sizes=made.at_sizes,
        session_options=delivered.session_options,
        threads=request.gate.threads,
        seed=request.gate.seed,
        draws_asked=request.gate.draws,
        subnormals=flushed.report,
        read=source.read,
        time_spent=time_spent,
        **_figures(made, search.cost_model, search.method.rewriter.rules),
    )
    return Optimised(
        model=delivered.model,
        result=replace(made.result, best=made.settled.last, trajectory=made.settled.trajectory),
        written=report.written,
        reason=report.reason,
        equivalence=report.equivalence,
        latency=made.latency,
        report=report,
        source=source,
        rewriting=rewriting,
    )


def _rewriting(made: PipelineResult, search: _Search, shortlist: Shortlist | None, is_as_given: bool) -> Rewriting:
    begun = made.before_passes or made.assumptions
    return Rewriting(
        before=begun.as_it_is,
        start=made.settled.start,
        searched=(begun.searched, made.result.best),
        rewriter=made.rewriter or search.method.rewriter,
        cost_model=search.cost_model if made.measured is None or shortlist is None else shortlist.cost_model,
        shapes=made.shapes,
        is_from_the_model=is_as_given and made.before_passes is None and not any(r.steps for r in made.inside),
    )


def _decision(made: PipelineResult, request: Request, deadline: Deadline) -> tuple[bool, str]:
    """Say whether the candidate is delivered, and why or why not.

    Who interrupts gets the best so far: what computes the same, unless it has been found slower already.
    """
    if made.left_because:
        return False, made.left_because
    if made.at_sizes:
        return _decision_at_sizes(made.at_sizes, request.setting, request.gate, deadline)
    if made.latency and is_faster(made.latency, request.setting):
        verdict = made.latency[request.setting].verdict
        believed = f"faster with probability {verdict.faster_probability:.2f} and equal within rounding"
        return True, believed if request.gate.proof is None else PROVEN
    if deadline.is_interrupted() and not (made.latency and is_slower(made.latency, request.setting)):
        return True, INTERRUPTED_TIMING if made.latency else INTERRUPTED_UNTIMED
    if not made.latency:
        return False, UNTIMED
    verdict = made.latency[request.setting].verdict
    is_cut_short = verdict.decision == "undecided" and verdict.rounds < request.gate.rounds
    return False, f"{UNDECIDED} (probability {verdict.faster_probability:.2f})" if is_cut_short else NOT_FASTER


def _decision_at_sizes(rows: Sequence[AtSize], setting: str, gate: GateConfig, deadline: Deadline) -> tuple[bool, str]:
    """Decide for a candidate that must be slower at none of the sizes."""
    latencies = [row.latency for row in rows]
    decisions = [latency[setting].verdict.decision if latency else "undecided" for latency in latencies]
    if is_better(latencies, setting, gate):
        faster = f"{decisions.count('faster')} of {len(rows)} sizes"
        return True, f"faster at {faster}, slower at none, and equal within rounding at each"
    if "slower" in decisions:
        slower = "; ".join(str(row.size) for row, each in zip(rows, decisions, strict=True) if each == "slower")
        return False, f"at {slower}, {SLOWER}"
    if deadline.is_interrupted():
        return True, INTERRUPTED_TIMING if any(latencies) else INTERRUPTED_UNTIMED
    if untimed := "; ".join(str(row.size) for row in rows if not row.latency):
        return False, f"{UNTIMED} at {untimed}"
    doubtful = "; ".join(str(row.size) for row, each in zip(rows, decisions, strict=True) if each == "undecided")
    if "faster" in decisions:
        return False, f"timing could not rule out that the rewritten model is slower at {doubtful}"
    if any(latency[setting].verdict.rounds < gate.rounds for latency in latencies) and doubtful:
        return False, f"{UNDECIDED} at {doubtful}"
    return False, NOT_FASTER


def _in_settings(
    made: PipelineResult, flushed: Flushed, is_better: bool, request: Request, phases: Phases, deadline: Deadline
) -> tuple[InSetting, ...]:
    """Run what was made, or the original alone, in all settings that were asked for; none where it cannot be judged."""
    judgement = flushed.judging.result()
    if not request.beside or judgement.reference is None:
        return ()
    candidate, known = None, judgement.report
    if not made.left_because and made.refusal is None:
        candidate, known = made.file, made.equivalence
    phases.begun("settings", "running the result in other settings")
    beside = Beside(flushed.file, candidate, request.setting, is_better, phases.gate, judgement.reference, deadline)
    return beside.rows(known, request.beside)


def _in_fastest(settings: tuple[InSetting, ...], is_better: bool, reason: str) -> tuple[str, bool, str]:
    """Return the fastest setting, and whether the candidate is delivered for it, and why or why not."""
    row = fastest(settings)
    if row is settings[0] or row.best is None:
        return settings[0].setting, is_better, reason
    words = f"{row.best.verdict.ratio:.3f} times as fast {said(row.setting)} as the best {said(settings[0].setting)}"
    if row.is_better:
        return row.setting, True, f"{words}, and equal within the tolerance there"
    return row.setting, False, f"{words}; of the rewritten model: {reason}"


def _overall(on_progress: OnProgress | None, budget_s: float | None, deadline: Deadline) -> OnProgress | None:
    """Return what phases call with their progress, for one that shows how much of the whole time has passed."""
    if on_progress is None or budget_s is None:
        return on_progress
    return lambda _, text: on_progress(1.0 - deadline.left_s / budget_s, text)


def _ready(method: Any) -> Method | None:
    """The method if it is an object that optimises; None for a class or function that makes one."""
    return method if hasattr(method, "optimise") and not isinstance(method, type) else None


def _refuse_what_it_brings(name: str, **given: Any) -> None:
    """A method that is ready has its rules and options: others would be ignored without a word."""
    for argument, value in given.items():
        if value:
            raise InputError(f"{argument}= has no effect on a method that is ready ({name}): make it with these")


def _context(request: Request, sizes: Mapping[str, int]) -> CostContext:
    """The facts by which this machine is priced."""
    known = request.prices if request.prices is not None and request.prices.exists() else None
    return CostContext(
        _priced_as(request.setting), sizes, known, {} if request.pricing is None else asdict(request.pricing)
    )


def _priced_as(setting: str) -> Setting:
    """The setting of ONNX Runtime by whose prices a search goes, whatever the runtime."""
    return "as_written" if setting == YARDSTICK else "deployed"


def _shortlist(request: Request, searched_by: CostModel, context: CostContext) -> Shortlist | None:
    """None where nothing is to be measured, or everything has been, or another runtime has other prices. Nobody has run
    what a search found.
    """
    if not request.shortlist or isinstance(searched_by, MeasuredCost) or request.setting not in SETTINGS:
        return None
    return Shortlist(_priced_here(partial(measured, timer=time_batch_apart), context), request.shortlist)


def _cost_model(given: str | CostModel, context: CostContext) -> CostModel:
    if isinstance(given, type) or not (isinstance(given, str) or hasattr(given, "runtime_ms")):
        raise InputError(f"the cost model {given!r} prices no graphs: give a name or an object with `runtime_ms`")
    if not isinstance(given, str):
        return given
    if given == MEASURED:
        return _priced_here(partial(measured, timer=time_batch_apart), context)
    settings = {"processor": HERE} if given == PREDICTED else {}
    return _priced_here(COST_MODELS.get(given), replace(context, settings=settings))


def _priced_here(factory: Callable[[CostContext], T], context: CostContext) -> T:
    """Make a cost model; `InputError` if its prices are of another machine."""
    try:
        return factory(context)
    except PriceError as error:
        raise InputError(str(error)) from None


def _keep_prices(cost_model: CostModel, path: Path) -> None:
    """Save measured prices. A cache that cannot be written costs the next run some time, not this one its result."""
    if not isinstance(cost_model, MeasuredCost) or not cost_model.measuring.prices:
        return
    try:
        cost_model.price_list.save(path)
    except OSError as error:
        _LOGGER.warning("the prices could not be kept in %s (%s)", path, error)


def _figures(made: PipelineResult, cost_model: CostModel, rules: Sequence[Rule]) -> dict[str, Any]:
    """The part of the report on what the search did with these rules and on what the result assumes."""
    result, begun = made.result, made.before_passes or made.assumptions
    is_known = made.is_searched and made.refusal is None
    ratios = work_ratios(cost_model, begun.searched, result.best) if is_known else {}
    steps = (*made.steps, *(step for subgraph in made.inside for step in subgraph.steps))
    refusals = (*made.refusals, *(refusal for subgraph in made.inside for refusal in subgraph.refusals))
    mentioned = {step.rule for step in steps}.union(
        *(refusal.rules for refusal in refusals), *(racer.without for racer in made.race)
    )
    return {
        "nodes_before": len(begun.as_it_is.order),
        "nodes_after": len(made.settled.last.order),
        "cost_before_ms": made.passes.cost_before_ms if made.passes and made.passes.passes else result.start_ms,
        "cost_after_ms": result.best_ms,
        "steps": made.steps,
        "optimisation_s": result.wall_time_s,
        "effort": result.effort,
        "measured": made.measured,
        "race": made.race,
        "pinned": made.pinned,
        "pinned_for": made.pinned_for,
        "opset_before": begun.as_it_is.header.opset,
        "opset_after": made.settled.last.header.opset,
        "raised_for": made.settled.raised_for,
        "subgraphs": made.inside,
        "passes": made.passes,
        "refusals": made.refusals,
        "rule_names": {rule.id: rule.name for rule in rules if rule.id in mentioned},
        "assumptions": _assumptions([rule for rule in rules if rule.id in mentioned]),
        **ratios,
    }


def _assumptions(taken: Sequence[Rule]) -> dict[str, tuple[str, ...]]:
    """The rules that make each assumption of a model's values, by their ids, among those of the steps."""
    by_assumption = {name: tuple(rule.id for rule in taken if name in rule.assumes) for name in ASSUMPTIONS}
    return {name: ids for name, ids in by_assumption.items() if ids}
