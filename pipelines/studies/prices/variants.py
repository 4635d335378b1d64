"""The graphs whose regions are priced: models, what searches find in them, and what random walks make of them.

    for name, graph in variants(Configuration("bert", "bert", {"layers": 2}).graph(), VariantsConfig(), seed=0):
        ...                     # "original", "predicted, round 1", "gpu, round 1", "walk 0, 12 steps"

Searches lead to where prices are wrong in their favour, and walks to where no search goes: a model needs both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from onnx import helper

from rlflow import zoo
from rlflow.cost.analytic import AnalyticCost, GpuConfig
from rlflow.cost.base import CostModel
from rlflow.cost.models import HERE
from rlflow.cost.predicted.cost import PredictedConfig, PredictedCost
from rlflow.cost.predicted.price_model import load
from rlflow.ir.graph import Graph
from rlflow.method import Budget
from rlflow.onnx_io import from_onnx
from rlflow.onnx_io.model_file import load_model
from rlflow.onnx_io.opset_upgrade import upgraded
from rlflow.rules import library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.search.chains import Chains
from rlflow.trajectory.replay import replay
from studies.walks import rewritten

ORIGINAL, WALK = "original", "walk"
_ROUND = ", round "
CLAIMED = 1.01
"""The price model claims to know a faster graph if it tells that to be so many times as fast as the original."""


@dataclass(frozen=True)
class Configuration:
    """A model, and the family by which it is known.

    `entry` names one of the zoo, which has `settings`, or a file. `domains` are versions of domains ("" is ai.onnx)
    whose operators rewrites may use in it, where these are not its own.
    """

    family: str
    entry: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    domains: Mapping[str, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        domains = {domain or "ai.onnx": version for domain, version in self.domains.items()}
        named = (f"{key}={value}" for key, value in {**self.settings, **domains}.items())
        return " ".join([Path(self.entry).stem, *named])

    def graph(self) -> Graph:
        """Return the model as a graph. Raises what `zoo.build` or `load_model` does."""
        is_file = self.entry.endswith(".onnx")
        model = load_model(Path(self.entry)) if is_file else zoo.build(self.entry, **self.settings)
        known = {"", *(opset.domain for opset in model.opset_import)}
        others = ((domain, version) for domain, version in self.domains.items() if domain not in known)
        model.opset_import.extend(helper.make_opsetid(*other) for other in others)
        graph = from_onnx(model)
        return upgraded(graph, self.domains[""]) or graph if "" in self.domains else graph


@dataclass(frozen=True)
class VariantsConfig:
    """`expansions` of each search; `walks` from the original, looked at after each of so many `stops`.

    `round` counts how often prices have been learned from what searches by the last ones found.
    """

    expansions: int = 20
    walks: int = 3
    stops: tuple[int, ...] = (3, 12, 48)
    round: int = 1


def original_of(number: int) -> str:
    """Return how the original is called that ran in a round: each round has its own, as machines change with time."""
    return ORIGINAL if number == 1 else f"{ORIGINAL}{_ROUND}{number}"


def round_of(variant: str) -> int:
    """Return the round in which a variant ran, by its name."""
    return int(variant.partition(_ROUND)[2] or 1)


def variants(graph: Graph, config: VariantsConfig, seed: int) -> Iterator[tuple[str, Graph]]:
    """Yield the original and what became of it, by the name of the way that led there."""
    yield original_of(config.round), graph
    rules = library.load()
    rewriter = Rewriter(rules.rules)
    for cost_model in _cost_models():
        found = Chains(rules, rewriter, cost_model).optimise(graph, Budget(expansions=config.expansions))
        if found.trajectory.steps:
            *_, end = replay(graph, found.trajectory, rewriter)
            yield f"{cost_model.name}{_ROUND}{config.round}", end
    for walk in range(config.walks):
        rng, walked, steps = np.random.default_rng((seed, walk)), graph, 0
        for stop in config.stops:
            walked, steps = rewritten(rewriter, walked, stop - steps, rng), stop
            yield f"{WALK} {walk}, {stop} steps", walked


def _cost_models() -> list[CostModel]:
    """Return the prices that were learned last, and those of a machine on which launches count: they lead elsewhere."""
    return [PredictedCost(load(), PredictedConfig(HERE)), AnalyticCost(GpuConfig(), name="gpu")]
