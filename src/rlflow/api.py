"""The library in one call each: a faster, checked model from a model, and whether two models are equivalent."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto

from rlflow.cost import price_list
from rlflow.cost.measured import MeasuredCost, PricingConfig, empty_price_list
from rlflow.cost.price_list import PriceList
from rlflow.cost.work_ratios import work_ratios
from rlflow.errors import InputError, PriceError, RLFlowError
from rlflow.evaluation.assumptions import Assumptions, Settled
from rlflow.evaluation.delivery import DeliveryConfig, check, is_faster, judgeable, latency_changes, time_models
from rlflow.evaluation.fault import Derivation
from rlflow.evaluation.report import LatencyChange, OptimisationReport, Step
from rlflow.ir.graph import Graph
from rlflow.ir.structural_hash import structural_hash
from rlflow.onnx_io import check_model, load_model, to_onnx
from rlflow.onnx_io.external_data import settle
from rlflow.optimiser import Budget, OnProgress, OptimisationResult, Optimiser
from rlflow.rules import library as rule_library
from rlflow.rules.library import Library
from rlflow.rules.rewriter import Rewriter
from rlflow.runtime.apart import Limits, ProcessDeath, call_apart
from rlflow.runtime.equivalence import EquivalenceReport, compare, not_equivalent
from rlflow.runtime.hardware import fingerprint
from rlflow.runtime.inputs import dimensions_of
from rlflow.runtime.session import SETTINGS, Setting, structure_of
from rlflow.runtime.tolerance import draws_at_random
from rlflow.search.backtracking import Backtracking
from rlflow.search.greedy import Greedy
from rlflow.search.random import RandomSearch
from rlflow.trajectory.record import Trajectory

_LOGGER = logging.getLogger(__name__)

METHODS = ("rlflow", "backtracking", "greedy", "random")


@dataclass(frozen=True)
class OptimiseConfig:
    """What `rlflow.optimise` takes beside the model.

    `setting` is what is optimised for: `deployed` is ONNX Runtime as people run it, `as_written` with its own
    optimisation off. `shapes` are those of inputs, by name, with which a model of open dimensions is run: what is
    faster at one size may be slower at another, and some rewrites are right at one size alone. `disabled` are ids or
    names of rules. `policy` is the folder with `world_models` and `policies` that `dvc repro` leaves behind. `prices`
    is a price list file that is read and extended. `horizon` is how many rewrites an episode of the policy may have.
    """

    method: str = "backtracking"
    budget_s: float | None = 60.0
    setting: Setting = "deployed"
    disabled: tuple[str, ...] = ()
    policy: Path = Path("data")
    horizon: int = 150
    prices: Path | None = None
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    pricing: PricingConfig = field(default_factory=PricingConfig)
    delivery: DeliveryConfig = field(default_factory=DeliveryConfig)

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise InputError(f"there is no method {self.method!r}: choose one of {', '.join(METHODS)}")
        if self.setting not in SETTINGS:
            raise InputError(f"there is no setting {self.setting!r}: choose one of {', '.join(SETTINGS)}")


@dataclass(frozen=True)
class Optimised:
    """`model` is what to use: the optimised model, or the original where that was not faster beyond noise or could
    not be judged. `latency` is empty where there was nothing to time."""

    model: ModelProto
    result: OptimisationResult
    written: str
    reason: str
    equivalence: EquivalenceReport
    latency: dict[Setting, LatencyChange]
    report: OptimisationReport


def optimise(
    model: ModelProto | Path | str,
    config: OptimiseConfig | None = None,
    *,
    output: str = "",
    on_progress: OnProgress | None = None,
) -> Optimised:
    """A model with the same interface and the same outputs within rounding that runs faster, or the original.

    The search sees the sizes that `config.shapes` names and, where the model can safely be raised to it, a newer opset.
    The result keeps its sizes open and its opset unless a rewrite needs more: then its inputs declare the sizes, at
    which alone it runs, or it has the first opset that will do, and the report says so.

    A model that cannot be judged (it does not run here, its outputs change from run to run or tell nothing, or its
    sizes are open) is returned as it is, with the reason.

    Raises `InputError` for what cannot be used (nothing is written), `EquivalenceError` naming the step, its rule and
    the values that it replaced if a result computes something else; where `output` is named, what shows the difference
    is written to the folder `<output>.reproducer`.
    """
    config = config or OptimiseConfig()
    library = rule_library.load().without(config.disabled)
    original = _load(model)
    assumptions = Assumptions.of(model, dimensions_of(original, config.shapes), library.rules)
    prices = _prices(config)
    sizes = dict(assumptions.dimensions) | dict(config.delivery.dimensions or {})
    delivery = replace(config.delivery, dimensions=sizes)
    cost_model = MeasuredCost(config.setting, prices, config.pricing, sizes)
    method = _method(config, library, cost_model)
    checked, unjudgeable = judgeable(original, delivery)
    if unjudgeable:
        result = _untouched(assumptions.searched, cost_model, library)
    else:
        result = method.optimise(assumptions.searched, Budget(time_s=config.budget_s), on_progress)
        _save_prices(prices, config)
    settled = assumptions.settled(result.trajectory, method.rewriter)
    candidate, latency, faster = original, dict[Setting, LatencyChange](), False
    if settled.trajectory.steps:
        candidate = to_onnx(settled.last)
        check_model(candidate)
        derivation = Derivation(
            original, candidate, settled.start, settled.trajectory, method.rewriter, _name(model), dimensions=sizes
        )
        checked = check(derivation, delivery, Path(f"{output}.reproducer") if output else None)
        latency = _timed(original, candidate, delivery, on_progress)
        faster = is_faster(latency, config.setting)
    reason = unjudgeable or _reason(result, faster)
    ratios: Any = {} if unjudgeable else work_ratios(cost_model, assumptions.searched, result.best)
    report = OptimisationReport(
        input="a model in memory" if isinstance(model, ModelProto) else str(model),
        output=output or "memory",
        written="optimised" if faster else "original",
        reason=reason,
        latency=latency,
        equivalence=checked,
        hardware=prices.hardware,
        **_settings(config),
        **_figures(result, settled, assumptions),
        **ratios,
    )
    result = replace(result, best=settled.last, trajectory=settled.trajectory)
    return Optimised(candidate if faster else original, result, report.written, reason, checked, latency, report)


def equivalence(
    original: ModelProto | Path | str,
    candidate: ModelProto | Path | str,
    *,
    draws: int = 3,
    seed: int = 0,
    setting: Setting = "as_written",
    shapes: Mapping[str, Sequence[int]] | None = None,
    dimensions: Mapping[str, int] | None = None,
    inputs: Sequence[Mapping[str, np.ndarray]] | None = None,
    limits: Limits | None = None,
) -> EquivalenceReport:
    """Whether `candidate` computes what `original` computes, within rounding, and what speaks for it.

    Both run on `draws` inputs drawn from `seed`, such as the original is for, or on `inputs` where these are given.
    Sizes that are open get small values, or those of `shapes` (of inputs, by name) and `dimensions` (by their names).
    The tolerance follows from the original's float type and depth; where float32 leaves a doubt, float64 decides.

    Raises `InputError` for a file that is no ONNX model, sizes that do not fit, and an original that does not run here
    or draws random numbers. A candidate that does not run is not equivalent. Both run in another process, of which
    `limits` says what it may take.
    """
    sides = [_readable(model) for model in (original, candidate)]
    structure = structure_of(sides[0])
    if draws_at_random(structure):
        raise InputError("the original draws random numbers: no other model could be compared with it")
    sizes = dimensions_of(structure, shapes or {}) | dict(dimensions or {})
    tried = partial(compare, draws=draws, seed=seed, setting=setting, dimensions=sizes, inputs=inputs)

    def compared(candidate: ModelProto | Path) -> EquivalenceReport:
        return call_apart(limits or Limits(), tried, sides[0], candidate)

    try:
        try:
            return compared(sides[1])
        except ProcessDeath as death:
            compared(sides[0])  # the original by itself: if it lives, the candidate is to blame
            return not_equivalent(f"the candidate could not be tried here: {death}", structure, draws)
    except InputError:
        raise
    except RLFlowError as error:
        raise InputError(f"the original could not be tried here: {error}") from None


def _readable(model: ModelProto | Path | str) -> ModelProto | Path:
    if isinstance(model, ModelProto):
        return model
    load_model(model)
    return Path(model)


def _name(model: ModelProto | Path | str) -> str:
    return "MODEL" if isinstance(model, ModelProto) else str(Path(model).resolve())


def _load(model: ModelProto | Path | str) -> ModelProto:
    """The model, whose weights are in memory if they fit into one file."""
    if isinstance(model, ModelProto):
        return model
    original = load_model(model)
    settle(original, Path(model).parent)
    return original


def _prices(config: OptimiseConfig) -> PriceList:
    fresh = empty_price_list(config.pricing.threads)
    if config.prices is None or not config.prices.exists():
        return fresh
    try:
        return price_list.load(config.prices, fingerprint(config.pricing.threads).key)
    except PriceError as error:
        raise InputError(str(error)) from None


def _method(config: OptimiseConfig, library: Library, cost_model: MeasuredCost) -> Optimiser:
    if config.method == "rlflow":
        return _policy(config, library, cost_model)
    rewriter = Rewriter(library.rules)
    kind = {"backtracking": Backtracking, "greedy": Greedy, "random": RandomSearch}[config.method]
    return kind(library, rewriter, cost_model)


def _policy(config: OptimiseConfig, library: Library, cost_model: MeasuredCost) -> Optimiser:
    # torch takes a second to import and only this method needs it
    from rlflow.agents.controller import Controller
    from rlflow.agents.policy_optimiser import PolicyOptimiser
    from rlflow.environments import EnvironmentConfig
    from rlflow.world_model.model import WorldModel

    try:
        world_model = WorldModel.load(config.policy / "world_models")
        controller = Controller.load(config.policy / "policies")
    except InputError as error:
        raise InputError(
            f"no trained policy in {config.policy} ({error}): train one with `dvc repro`, name its folder with "
            "--policy, or choose --method backtracking"
        ) from None
    known = [i for i in world_model.arguments.rule_ids if any(r.id == i for r in library.rules)]
    rules = library.select(known)
    environment = EnvironmentConfig(max_locations=world_model.arguments.max_locations, max_steps=config.horizon)
    return PolicyOptimiser(
        rules, Rewriter(rules.rules), cost_model, world_model, controller, environment, seed=config.delivery.seed
    )


def _untouched(graph: Graph, cost_model: MeasuredCost, library: Library) -> OptimisationResult:
    """No search at all: nothing could be said of what it finds."""
    nothing_done = Trajectory(structural_hash(graph), 0.0, cost_model.name, library.hash, ())
    return OptimisationResult(graph, 0.0, 0.0, nothing_done, wall_time_s=0.0, interactions=0)


def _save_prices(prices: PriceList, config: OptimiseConfig) -> None:
    """A cache that cannot be written costs the next run some time, not this one its result."""
    if config.prices is None:
        return
    try:
        prices.save(config.prices)
    except OSError as error:
        _LOGGER.warning("the prices could not be kept in %s (%s)", config.prices, error)


def _timed(
    original: ModelProto, candidate: ModelProto, config: DeliveryConfig, on_progress: OnProgress | None
) -> dict[Setting, LatencyChange]:
    def on_round(done: int) -> None:
        if on_progress:
            on_progress(done / config.rounds, "timing the result against the original")

    models = {"original": original, "candidate": candidate}
    return latency_changes(time_models(models, config, on_round), "original", "candidate")


def _settings(config: OptimiseConfig) -> dict[str, Any]:
    """The part of the report that was decided before."""
    delivery = config.delivery
    return {
        "method": config.method,
        "budget_s": config.budget_s,
        "threads": delivery.threads,
        "seed": delivery.seed,
    }


def _figures(result: OptimisationResult, settled: Settled, assumptions: Assumptions) -> dict[str, Any]:
    """The part of the report on what the search did and on what the result takes for granted."""
    return {
        "nodes_before": len(assumptions.as_it_is.order),
        "nodes_after": len(settled.last.order),
        "cost_before_ms": result.start_ms,
        "cost_after_ms": result.best_ms,
        "steps": tuple(Step(s.rule, s.location, s.runtime_ms) for s in settled.trajectory.steps),
        "optimisation_s": result.wall_time_s,
        "real_interactions": result.interactions,
        "pinned": assumptions.shapes if settled.pinned_for else {},
        "pinned_for": settled.pinned_for,
        "opset_before": assumptions.as_it_is.header.opset,
        "opset_after": settled.last.header.opset,
        "raised_for": settled.raised_for,
    }


def _reason(result: OptimisationResult, faster: bool) -> str:
    if not result.trajectory.steps:
        return "no sequence of rewrites lowered its predicted cost"
    if faster:
        return "faster beyond noise and equal within rounding"
    return "the rewritten model was not faster beyond noise"
