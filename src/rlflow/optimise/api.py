"""The steps behind `rlflow.optimise`: names become objects, the pipeline runs, and a report says what came of it."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnx import ModelProto

from rlflow.cost.analytic import AnalyticCost
from rlflow.cost.base import CostContext, CostModel
from rlflow.cost.measured import MeasuredCost
from rlflow.cost.models import COST_MODELS
from rlflow.cost.pricing import PricingConfig
from rlflow.cost.work_ratios import work_ratios
from rlflow.equivalence.compare import EquivalenceReport
from rlflow.errors import InputError, PriceError
from rlflow.onnx_io import save_model
from rlflow.optimise import DEFAULT_COST_MODEL
from rlflow.optimise.gate import GateConfig, is_faster
from rlflow.optimise.methods import METHODS
from rlflow.optimise.pipeline import NOTHING_FOUND, Pipeline, PipelineResult
from rlflow.optimise.report import LatencyChange, OptimisationReport
from rlflow.optimise.source import Source
from rlflow.optimiser import OnProgress, OptimisationResult, Optimiser
from rlflow.rules import library as rule_library
from rlflow.rules.library import Library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.rules.rule import Rule
from rlflow.rules.user_rules import load_rules
from rlflow.runtime.hardware import fingerprint
from rlflow.runtime.inputs import dimensions_of
from rlflow.runtime.session import SETTINGS, Setting
from rlflow.search.making import make_search

if TYPE_CHECKING:
    from rlflow.optimise.methods import MethodFactory

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True)
class Optimised:
    """The result of `rlflow.optimise`.

    `model` is what to use: the optimised model, or the original where that was not faster beyond noise or could not be
    judged; `written` says which, and `reason` why. `latency` is empty where there was nothing to time.
    """

    model: ModelProto
    result: OptimisationResult
    written: str
    reason: str
    equivalence: EquivalenceReport
    latency: dict[Setting, LatencyChange]
    report: OptimisationReport
    source: Source

    def save(self, path: Path | str) -> None:
        """Write `model` to a file, whole or not at all; beyond protobuf's 2 GB its weights go to `<name>.data` beside
        it. An original that came from one file is copied byte for byte.

        `InputError` if the folder does not exist or may not be written.
        """
        if self.written == "optimised":
            save_model(self.model, path)
        else:
            self.source.save(path)


def optimise_model(
    model: ModelProto | Path | str,
    *,
    method: str | Optimiser | MethodFactory,
    options: Mapping[str, Any],
    library: Library | Path | str | None,
    disabled: Sequence[str],
    cost_model: str | CostModel,
    pricing: PricingConfig | None,
    prices: Path | None,
    budget_s: float | None,
    setting: Setting,
    shapes: Mapping[str, Sequence[int]],
    gate: GateConfig,
    reproducer: Path | None,
    on_progress: OnProgress | None,
) -> Optimised:
    """Carry out `rlflow.optimise`."""
    if setting not in SETTINGS:
        raise InputError(f"there is no setting {setting!r}: choose one of {', '.join(SETTINGS)}")
    if isinstance(disabled, str):
        raise InputError(f"disabled is the text {disabled!r}: give a list of ids or names of rules")
    factory: Any = METHODS.get(method) if isinstance(method, str) else method
    source = Source.of(model)
    dimensions = dimensions_of(source.model, shapes)
    sizes = dimensions | dict(gate.dimensions or {})

    ready = _ready(factory)
    if ready is not None:
        chosen = cost_model if isinstance(cost_model, str) and cost_model != DEFAULT_COST_MODEL else None
        _refuse_what_it_brings(
            ready.name,
            options=options,
            library=library,
            disabled=disabled,
            cost_model=chosen,
            pricing=pricing,
            prices=prices,
        )
        optimiser = ready
        rules = Library(ready.rewriter.rules)
        pricer: CostModel = AnalyticCost() if isinstance(cost_model, str) else cost_model
    else:
        rules = _library(library).without(disabled)
        pricer = _cost_model(cost_model, setting, sizes, prices, pricing)
        parts = (rules, Rewriter(rules.rules), pricer)
        optimiser = make_search(factory, parts, options, f"the method {getattr(factory, '__name__', factory)}")

    pipeline = Pipeline(
        method=optimiser,
        cost_model=pricer,
        library=rules,
        setting=setting,
        gate=replace(gate, dimensions=sizes),
        dimensions=dimensions,
        reproducer=reproducer,
        on_progress=on_progress,
    )
    made = pipeline.run(source.model, budget_s, source.argument)
    if prices is not None and not made.unjudgeable:
        _keep_prices(pricer, prices)

    faster = bool(made.latency) and is_faster(made.latency, setting)
    reason = made.unjudgeable or _reason(made, faster)
    report = OptimisationReport(
        input=source.name,
        output=None,
        method=optimiser.name,
        written="optimised" if faster else "original",
        reason=reason,
        latency=made.latency,
        equivalence=made.equivalence,
        hardware=fingerprint(gate.threads).key,
        budget_s=budget_s,
        threads=gate.threads,
        seed=gate.seed,
        **_figures(made, pricer, optimiser.rewriter.rules),
    )
    result = replace(made.result, best=made.settled.last, trajectory=made.settled.trajectory)
    best = made.candidate if faster else source.model
    return Optimised(best, result, report.written, reason, made.equivalence, made.latency, report, source)


def _ready(method: Any) -> Optimiser | None:
    """The method if it is an object that optimises; None for a class or function that makes one."""
    return method if hasattr(method, "optimise") and not isinstance(method, type) else None


def _refuse_what_it_brings(name: str, **given: Any) -> None:
    """An optimiser that is ready has its rules and options: others would be ignored without a word."""
    for argument, value in given.items():
        if value:
            raise InputError(f"{argument}= has no effect on an optimiser that is ready ({name}): make it with these")


def _library(given: Library | Path | str | None) -> Library:
    """The library itself, that of a file, or the shipped one. Each kind of file that holds rules is told apart here."""
    if isinstance(given, Library):
        return given
    return rule_library.load() if given is None else load_rules(Path(given))


def _cost_model(
    given: str | CostModel,
    setting: Setting,
    sizes: Mapping[str, int],
    prices: Path | None,
    pricing: PricingConfig | None,
) -> CostModel:
    if isinstance(given, type) or not (isinstance(given, str) or hasattr(given, "runtime_ms")):
        raise InputError(f"the cost model {given!r} prices no graphs: give a name or an object with `runtime_ms`")
    if not isinstance(given, str):
        return given
    known_prices = prices if prices is not None and prices.exists() else None
    settings = {} if pricing is None else asdict(pricing)
    try:
        return COST_MODELS.get(given)(CostContext(setting, sizes, known_prices, settings))
    except PriceError as error:
        raise InputError(str(error)) from None


def _keep_prices(cost_model: CostModel, path: Path) -> None:
    """Save measured prices. A cache that cannot be written costs the next run some time, not this one its result."""
    if not isinstance(cost_model, MeasuredCost):
        return
    try:
        cost_model.price_list.save(path)
    except OSError as error:
        _LOGGER.warning("the prices could not be kept in %s (%s)", path, error)


def _figures(made: PipelineResult, cost_model: CostModel, rules: Sequence[Rule]) -> dict[str, Any]:
    """The part of the report on what the search did with these rules and on what the result assumes."""
    result, header = made.result, made.assumptions.as_it_is.header
    ratios = {} if made.unjudgeable else work_ratios(cost_model, made.assumptions.searched, result.best)
    steps = (*made.steps, *(step for subgraph in made.inside for step in subgraph.steps))
    mentioned = {step.rule for step in steps}
    return {
        "nodes_before": len(made.assumptions.as_it_is.order),
        "nodes_after": len(made.settled.last.order),
        "cost_before_ms": result.start_ms,
        "cost_after_ms": result.best_ms,
        "steps": made.steps,
        "optimisation_s": result.wall_time_s,
        "effort": result.effort,
        "pinned": made.pinned,
        "pinned_for": made.pinned_for,
        "opset_before": header.opset,
        "opset_after": made.settled.last.header.opset,
        "raised_for": made.settled.raised_for,
        "subgraphs": made.inside,
        "rule_names": {rule.id: rule.name for rule in rules if rule.id in mentioned},
        **ratios,
    }


def _reason(made: PipelineResult, faster: bool) -> str:
    if not made.latency:
        return NOTHING_FOUND
    if faster:
        return "faster beyond noise and equal within rounding"
    return "the rewritten model was not faster beyond noise"
