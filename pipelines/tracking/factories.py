"""Objects that several stages work with, made from their sections of the configuration: graph, rules, prices."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from onnx import ModelProto

from rlflow import zoo
from rlflow.cost.analytic import AnalyticCost
from rlflow.cost.base import CostContext, CostModel
from rlflow.cost.measured import MeasuredCost, empty_price_list
from rlflow.cost.models import COST_MODELS
from rlflow.cost.predicted.cost import PredictedCost
from rlflow.ir.graph import Graph
from rlflow.onnx_io import from_onnx, save_model
from rlflow.rules import library
from rlflow.rules.library import Library
from rlflow.search.rule_selection import RuleSet
from tracking.stage import Stage

T = TypeVar("T")
Section = Mapping[str, Any]
PricedWork = Callable[[Stage, CostModel, Callable[[], None]], T]
"""Work on one graph by a cost model, with the function that keeps its prices."""


def model_of(graph: Section) -> ModelProto | Path:
    """The model of section `graph`: its file, or one that the zoo builds."""
    if graph["kind"] == "file":
        return Path(graph["path"])
    return zoo.build(graph["entry"], **graph["settings"])


def graph_of(graph: Section) -> Graph:
    """The graph of the model of section `graph`."""
    return from_onnx(model_of(graph))


def selection_graph_of(graph: Section) -> Graph:
    """The graph on which rules are chosen: the model itself, or the smaller one of its kind that `selection` names."""
    if graph["kind"] == "file":
        return graph_of(graph)
    return graph_of({**graph, "settings": {**graph["settings"], **graph.get("selection", {})}})


def model_file_of(graph: Section, place: Path) -> Path:
    """The file of the model of section `graph`, which is written to `place` if there is none."""
    model = model_of(graph)
    if isinstance(model, Path):
        return model
    save_model(model, place)
    return place


def cost_model_of(cost: Section, prices: Path | None = None) -> CostModel:
    """Make the cost model of section `cost`; what is missing from the prices of this machine in a file is measured."""
    kind, context = cost_context_of(cost, prices)
    return COST_MODELS.get(kind)(context)


def cost_context_of(cost: Section, prices: Path | None = None) -> tuple[str, CostContext]:
    """Return the kind of that cost model, and what it is made from."""
    settings = dict(cost)
    kind, setting, published = settings.pop("kind"), settings.pop("setting", "deployed"), settings.pop("prices", None)
    return kind, CostContext(setting, prices=prices, settings=settings, published=published and Path(published))


def priced(stage: Stage, start: Path | None = None) -> tuple[CostModel, Callable[[], None]]:
    """The cost model of a stage, and a function that keeps its prices among the checkpoints.

    It begins with the prices that a killed process has kept, or else with those of the file `start`.
    """
    kept = stage.checkpoint / "prices.json"
    cost_model = cost_model_of(stage.settings["cost"], kept if kept.exists() else start)
    return cost_model, partial(save_prices, cost_model, kept)


def each_priced_graph(stage: Stage, start: Path, end: Path, work: PricedWork[T]) -> dict[str, T]:
    """Call `work` for all graphs of a stage with a cost model; its results by the graph's name.

    It begins with the prices in the file `start`, and leaves all that it knows in the file `end`. Graphs are worked on
    at once, by a cost model each, if no price and no reward is measured; who measures must be alone.
    """
    cost_model, keep_prices = priced(stage, start)
    rewards_are_measured = stage.settings.get("reward", {}).get("kind") == "end_to_end"
    if isinstance(cost_model, AnalyticCost | PredictedCost) and not rewards_are_measured:
        found = stage.graphs_at_once(partial(_with_own_prices, start=start, work=work))
    else:
        found = stage.each_graph(lambda on_graph: work(on_graph, cost_model, keep_prices))
    save_prices(cost_model, end)
    return found


def _with_own_prices(stage: Stage, start: Path, work: PricedWork[T]) -> T:
    return work(stage, *priced(stage, start))


def save_prices(cost_model: CostModel, path: Path) -> None:
    """All prices that the model knows; a model that measures nothing leaves an empty list."""
    listed = cost_model.price_list if isinstance(cost_model, MeasuredCost) else empty_price_list(threads=1)
    listed.save(path)


def agent_rules(folder: Path, graph: str) -> Library:
    """The rules that agents act with on that graph, as generate_rules chose them."""
    return RuleSet.load(folder / graph / "rule_set.json").rules(library.load(folder / "library.jsonl"))
