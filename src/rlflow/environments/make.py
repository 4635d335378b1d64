"""Environments from plain values, for `gymnasium.make`: a model, rules, prices and rewards by their names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium
from gymnasium import spaces
from gymnasium.vector import VectorEnv

from rlflow.cost.base import CostContext, CostModel
from rlflow.cost.models import COST_MODELS
from rlflow.environments.candidate_env import CandidateEnv
from rlflow.environments.match_class_env import MatchClassEnv
from rlflow.environments.process_env import ProcessEnv
from rlflow.environments.rewards import RewardConfig
from rlflow.environments.substitution_env import SubstitutionEnv
from rlflow.errors import InputError
from rlflow.plugins import unknown
from rlflow.rules.library import Library
from rlflow.rules.user_rules import library_of, load_rules
from rlflow.settings import read_config
from rlflow.step_reward import KINDS
from rlflow.zoo.named import graph_of

FORMULATIONS: dict[str, type[ProcessEnv[Any]]] = {
    "match classes": MatchClassEnv,
    "rule and location": SubstitutionEnv,
    "candidates": CandidateEnv,
}


def process_env(
    formulation: str,
    model: Any = "tiny_chain",
    rules: Sequence[str | Path] | None = None,
    library: Library | Path | str | None = None,
    cost: CostModel | str = "analytic",
    reward: RewardConfig | str = "incremental",
    render_mode: str | None = None,
    **settings: Any,
) -> ProcessEnv[Any]:
    """The environment over a process of rewriting, as the name of the formulation says.

    `model` is a `Graph`, an `onnx.ModelProto`, the path of a file, or the name of a model; `library` a rule library or
    its file, the shipped one by default; `rules` those of its rules that are used, by name, and files of others;
    `cost` a cost model or its name; `reward` a name or its settings. `settings` are those of the formulation. Raises
    `InputError` for what cannot be used, with the names nearest to one that is unknown.
    """
    if isinstance(reward, str) and reward not in KINDS:
        raise InputError(unknown("reward", reward, KINDS))
    made, whole = FORMULATIONS[formulation], library_of(library)
    return made(
        graph_of(model),
        whole if rules is None else _chosen(whole, rules),
        COST_MODELS.get(cost)(CostContext()) if isinstance(cost, str) else cost,
        config=read_config(made.settings, settings, "the environment"),
        reward_config=RewardConfig(kind=reward) if isinstance(reward, str) else reward,
        render_mode=render_mode,
    )


def make_vec(
    environment: str, num_envs: int, *, context: str | None = None, **settings: Any
) -> VectorEnv[Any, Any, Any]:
    """Make so many environments of one name, each in a process of its own, by Gymnasium's `AsyncVectorEnv`.

    Observations come through shared memory, but where they are graphs, which have no fixed size. `context` says how
    processes start, as `multiprocessing` has it; None: as the platform does. Where the caller has threads, a fork may
    wait for ever: "forkserver" starts them from another process. `settings` are those of `gymnasium.make`.
    """
    with gymnasium.make(environment, **settings) as one:
        shared = not _has_graphs(one.observation_space)
    vector_kwargs = {"shared_memory": shared, "context": context}
    return gymnasium.make_vec(environment, num_envs, "async", vector_kwargs=vector_kwargs, **settings)


def _chosen(library: Library, rules: Sequence[str | Path]) -> Library:
    """The rules by their names or ids, and all those of files, in this order."""
    if isinstance(rules, str | Path):
        raise InputError(f"rules is the text {str(rules)!r}: give a list of names or files of rules")
    chosen = Library(())
    for rule in rules:
        is_file = Path(rule).suffix in (".py", ".jsonl")
        chosen = chosen.extended(load_rules(Path(rule)) if is_file else _named(library, str(rule)))
    return chosen


def _named(library: Library, name: str) -> Library:
    names = [rule.name for rule in library.rules]
    if name not in names and name not in {rule.id for rule in library.rules}:
        raise InputError(unknown("rule", name, names))
    return library.select([name])


def _has_graphs(space: spaces.Space[Any]) -> bool:
    inner = space.spaces.values() if isinstance(space, spaces.Dict) else ()
    return isinstance(space, spaces.Graph | spaces.Sequence) or any(map(_has_graphs, inner))
