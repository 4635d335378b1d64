"""Environments from plain values, for `gymnasium.make`: a model instead of a graph, a name instead of a cost model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rlflow import zoo
from rlflow.cost.base import CostContext, CostModel
from rlflow.cost.models import COST_MODELS
from rlflow.environments.candidate_env import CandidateEnv
from rlflow.environments.process_env import ProcessEnv
from rlflow.environments.rewards import RewardConfig
from rlflow.environments.substitution_env import SubstitutionEnv
from rlflow.ir.graph import Graph
from rlflow.onnx_io import from_onnx
from rlflow.rules import library as rule_library
from rlflow.rules.library import Library

FORMULATIONS: dict[str, type[ProcessEnv[Any]]] = {"substitution": SubstitutionEnv, "candidates": CandidateEnv}


def process_env(
    formulation: str,
    model: Any = "tiny_chain",
    library: Library | Path | None = None,
    cost_model: CostModel | str = "analytic",
    reward: RewardConfig | str = "incremental",
    render_mode: str | None = None,
    **settings: Any,
) -> ProcessEnv[Any]:
    """`rlflow/Substitution-v0` and `rlflow/Candidates-v0`, as the name of the formulation says.

    `model` is a `Graph`, an `onnx.ModelProto`, a path, or the name of a zoo model; `library` a rule library or its
    file, the shipped one by default; `cost_model` an object or a name; `reward` a name or its settings. `settings` are
    those of `EnvironmentConfig` or of `CandidateConfig`. Raises `InputError` for what cannot be used.
    """
    if isinstance(model, str) and model in zoo.names():
        model = zoo.build(model)
    made = FORMULATIONS[formulation]
    return made(
        model if isinstance(model, Graph) else from_onnx(model),
        library if isinstance(library, Library) else rule_library.load(library),
        COST_MODELS.get(cost_model)(CostContext()) if isinstance(cost_model, str) else cost_model,
        config=made.settings(**settings),
        reward_config=RewardConfig(kind=reward) if isinstance(reward, str) else reward,
        render_mode=render_mode,
    )
