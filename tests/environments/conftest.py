"""Small graphs and environments on them."""

from collections.abc import Callable
from typing import Any

import pytest
from support import formulations
from support.walks import LIBRARY

from rlflow.cost.analytic import AnalyticCost
from rlflow.environments import EnvironmentConfig, SubstitutionEnv
from rlflow.ir.graph import Graph
from rlflow.rules.library import Library


@pytest.fixture(scope="session")
def shipped() -> Library:
    return LIBRARY


@pytest.fixture(scope="session")
def bert() -> Graph:
    return formulations.bert()


@pytest.fixture
def make_env(bert: Graph) -> Callable[..., SubstitutionEnv]:
    def make(graph: Graph | None = None, library: Library = LIBRARY, **settings: Any) -> SubstitutionEnv:
        config = EnvironmentConfig(**{"max_locations": 20, "max_steps": 30, **settings})
        return SubstitutionEnv(graph or bert, library, AnalyticCost(), config=config)

    return make
