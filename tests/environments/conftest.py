"""Small graphs and environments on them."""

from collections.abc import Callable
from typing import Any

import pytest

from rlflow import zoo
from rlflow.cost.analytic import AnalyticCost
from rlflow.environments import EnvironmentConfig, RewardConfig, SubstitutionEnv
from rlflow.ir.graph import Graph
from rlflow.onnx_io import from_onnx
from rlflow.rules import library as rule_library
from rlflow.rules.library import Library

SMALL_BERT = {"layers": 1, "hidden": 32, "heads": 2, "intermediate": 64, "sequence": 8, "vocabulary": 50}


@pytest.fixture(scope="session")
def shipped() -> Library:
    return rule_library.load()


@pytest.fixture(scope="session")
def bert() -> Graph:
    return from_onnx(zoo.build("bert", **SMALL_BERT, positions=16))


@pytest.fixture
def make_env(bert: Graph, shipped: Library) -> Callable[..., SubstitutionEnv]:
    def make(
        graph: Graph | None = None, library: Library | None = None, reward: str = "incremental", **settings: Any
    ) -> SubstitutionEnv:
        return SubstitutionEnv(
            graph or bert,
            library or shipped,
            AnalyticCost(),
            config=EnvironmentConfig(**{"max_locations": 20, "max_steps": 30, **settings}),
            reward_config=RewardConfig(kind=reward),
            render_mode="ansi",
        )

    return make
