"""How `rlflow.optimise` is carried out: method, prices and checks put together, and the report."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from onnx import ModelProto

from rlflow.cost import price_list
from rlflow.cost.base import CostModel
from rlflow.cost.measured import MeasuredCost, PricingConfig, empty_price_list
from rlflow.cost.price_list import PriceList
from rlflow.cost.work_ratios import work_ratios
from rlflow.equivalence.compare import EquivalenceReport
from rlflow.errors import InputError, PriceError
from rlflow.onnx_io import load_model
from rlflow.onnx_io.external_data import settle
from rlflow.optimise.gate import DeliveryConfig, is_faster
from rlflow.optimise.pipeline import NOTHING_FOUND, Rewriting, Rewritten
from rlflow.optimise.report import LatencyChange, OptimisationReport
from rlflow.optimiser import OnProgress, OptimisationResult, Optimiser
from rlflow.rules import library as rule_library
from rlflow.rules.library import Library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.runtime.hardware import fingerprint
from rlflow.runtime.inputs import dimensions_of
from rlflow.runtime.session import SETTINGS, Setting
from rlflow.search.backtracking import Backtracking
from rlflow.search.greedy import Greedy
from rlflow.search.random import RandomSearch

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


def optimise_model(
    model: ModelProto | Path | str, config: OptimiseConfig, output: str, on_progress: OnProgress | None
) -> Optimised:
    """Carry out `rlflow.optimise`."""
    library = rule_library.load().without(config.disabled)
    original = _load(model)
    dimensions = dimensions_of(original, config.shapes)
    sizes = dimensions | dict(config.delivery.dimensions or {})
    prices = _prices(config)
    cost_model = MeasuredCost(config.setting, prices, config.pricing, sizes)
    rewriting = Rewriting(
        method=_method(config, library, cost_model),
        cost_model=cost_model,
        library=library,
        setting=config.setting,
        delivery=replace(config.delivery, dimensions=sizes),
        dimensions=dimensions,
        reproducer=Path(f"{output}.reproducer") if output else None,
        on_progress=on_progress,
    )
    made = rewriting.of(original, config.budget_s, _name(model))
    if not made.unjudgeable:
        _save_prices(prices, config)
    faster = bool(made.latency) and is_faster(made.latency, config.setting)
    reason = made.unjudgeable or _reason(made, faster)
    report = OptimisationReport(
        input="a model in memory" if isinstance(model, ModelProto) else str(model),
        output=output or "memory",
        written="optimised" if faster else "original",
        reason=reason,
        latency=made.latency,
        equivalence=made.equivalence,
        hardware=prices.hardware,
        **_settings(config),
        **_figures(made, cost_model),
    )
    result = replace(made.result, best=made.settled.last, trajectory=made.settled.trajectory)
    best = made.candidate if faster else original
    return Optimised(best, result, report.written, reason, made.equivalence, made.latency, report)


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


def _save_prices(prices: PriceList, config: OptimiseConfig) -> None:
    """A cache that cannot be written costs the next run some time, not this one its result."""
    if config.prices is None:
        return
    try:
        prices.save(config.prices)
    except OSError as error:
        _LOGGER.warning("the prices could not be kept in %s (%s)", config.prices, error)


def _settings(config: OptimiseConfig) -> dict[str, Any]:
    """The part of the report that was decided before."""
    delivery = config.delivery
    return {
        "method": config.method,
        "budget_s": config.budget_s,
        "threads": delivery.threads,
        "seed": delivery.seed,
    }


def _figures(made: Rewritten, cost_model: CostModel) -> dict[str, Any]:
    """The part of the report on what the search did and on what the result takes for granted."""
    result, header = made.result, made.assumptions.as_it_is.header
    ratios = {} if made.unjudgeable else work_ratios(cost_model, made.assumptions.searched, result.best)
    return {
        "nodes_before": len(made.assumptions.as_it_is.order),
        "nodes_after": len(made.settled.last.order),
        "cost_before_ms": result.start_ms,
        "cost_after_ms": result.best_ms,
        "steps": made.steps,
        "optimisation_s": result.wall_time_s,
        "real_interactions": result.interactions,
        "pinned": made.pinned,
        "pinned_for": made.pinned_for,
        "opset_before": header.opset,
        "opset_after": made.settled.last.header.opset,
        "raised_for": made.settled.raised_for,
        "bodies": made.inside,
        **ratios,
    }


def _reason(made: Rewritten, faster: bool) -> str:
    if not made.latency:
        return NOTHING_FOUND
    if faster:
        return "faster beyond noise and equal within rounding"
    return "the rewritten model was not faster beyond noise"
