"""The types of the sections of conf/, by which a wrong setting is refused as soon as it is composed.

    check_types(config)      # temperature=hot: InputError, temperature: Expected `float`, got `str`, and it is 'hot'

A section has a plain type, or is what the library makes of it, the dataclass of its settings. Tables name dataclasses
by import strings, so that a project without these sections imports none of them.

The invariant: no section needs PyTorch to be checked.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pkgutil import resolve_name
from typing import Any, Literal

from omegaconf import DictConfig, OmegaConf

from rlflow import zoo
from rlflow.settings import typed


@dataclass(frozen=True)
class ZooGraph:
    """A model that the zoo builds; `selection` are the settings of a smaller one, on which rules are chosen."""

    kind: Literal["zoo"]
    entry: str
    settings: dict[str, Any] = field(default_factory=dict)
    selection: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for settings in (self.settings, self.selection):
            zoo.check_settings(self.entry, settings)


@dataclass(frozen=True)
class FileGraph:
    """A model of the user's own."""

    kind: Literal["file"]
    path: str
    sha256: str = ""


@dataclass(frozen=True)
class Contender:
    """A method of the evaluation, and what it may spend."""

    method: str
    options: dict[str, Any]
    time_s: float | None
    expansions: int | None


TYPES: Mapping[str, Any] = {
    "seed": int,
    "worker": int,
    "workers": int,
    "processes": int,
    "aside": bool,
    "stages": list[str] | None,
    "temperature": float,
    "model": str,
    "pretrained": Literal["shipped", None],
    "rules.generation.families": dict[str, int],
    "rules.generation.declared": list[str] | None,
    "rules.generation.trials": int,
    "rules.verification": "rlflow.rules.verification.verify:VerificationConfig",
    "rules.selection": "rlflow.search.rule_selection:SelectionConfig",
    "reward": "rlflow.environments:RewardConfig",
    "environment": "rlflow.environments:EnvironmentConfig",
    "controller.training_share": float,
    "controller.cma_es": "rlflow.agents.match_level.pointer_config:CmaEsConfig",
    "evaluation.deliver_if_faster": Literal["deployed", "as_written"],
    "evaluation.longest_s": float,
    "evaluation.gate": "rlflow.optimise.gate:GateConfig",
    "sweep.temperatures": list[float],
    "sweep.seeds": list[int],
    "sweep.training_share": float,
}
OF_FORMULATION: Mapping[str, Mapping[str, str]] = {
    "match_level": {
        "world_model": "rlflow.world_model.match_level.match_level_config:MatchLevelModelConfig",
        "rollouts": "rlflow.agents.token_collection:TokenCollectionConfig",
        "controller.dream": "rlflow.world_model.match_level.match_level_config:MatchLevelDreamConfig",
        "controller.ppo": "rlflow.agents.match_level.pointer_config:MatchLevelControllerConfig",
        "controller.real": "rlflow.agents.match_level.pointer_config:RealEpisodesConfig",
    },
    "graph_level": {
        "world_model": "rlflow.world_model.graph_level.graph_level_config:GraphLevelModelConfig",
        "rollouts": "rlflow.agents.collection:CollectionConfig",
        "controller.dream": "rlflow.world_model.graph_level.graph_level_config:GraphLevelDreamConfig",
        "controller.ppo": "rlflow.agents.graph_level.controller_config:ControllerConfig",
    },
}
OF_GRAPH: Mapping[str, Any] = {"zoo": ZooGraph, "file": FileGraph}
OF_COST: Mapping[str, str] = {
    "analytic": "rlflow.cost.analytic:AnalyticConfig",
    "gpu": "rlflow.cost.analytic:GpuConfig",
    "predicted": "rlflow.cost.predicted.cost:PredictedConfig",
    "measured": "rlflow.cost.pricing:PricingConfig",
}
"""By kind; a cost model of another package says itself what it takes."""
_OF_EVERY_COST = ("kind", "setting", "prices")
_ABSENT = object()


def check_types(config: DictConfig) -> None:
    """Raise InputError, with its place, for the first setting that is unknown in its section or of another type."""
    for place, kind in {**TYPES, **OF_FORMULATION.get(config.get("formulation"), {})}.items():
        _check(place, kind, OmegaConf.select(config, place, default=_ABSENT))
    for name, graph in config.get("graphs", {}).items():
        _check(f"graphs.{name}", OF_GRAPH[graph.kind], graph)
    for name, method in (OmegaConf.select(config, "evaluation.methods") or {}).items():
        _check(f"evaluation.methods.{name}", Contender, method)
    _check("evaluation.agent", Contender, OmegaConf.select(config, "evaluation.agent", default=_ABSENT))
    if (cost := config.get("cost", {})).get("kind") in OF_COST:
        _check("cost", OF_COST[cost.kind], {name: value for name, value in cost.items() if name not in _OF_EVERY_COST})


def _check(place: str, kind: Any, section: Any) -> None:
    if section is not _ABSENT:
        plain = OmegaConf.to_container(section, resolve=True) if OmegaConf.is_config(section) else section
        typed(resolve_name(kind) if isinstance(kind, str) else kind, plain, place)
