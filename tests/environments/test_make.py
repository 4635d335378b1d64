"""Environments are made by `gymnasium.make` from names, every combination of which Gymnasium's checker accepts."""

import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AsyncVectorEnv
from hypothesis import given, settings
from hypothesis import strategies as st

from rlflow import zoo
from rlflow.cost.analytic import AnalyticCost
from rlflow.cost.models import COST_MODELS
from rlflow.environments import (
    CANDIDATES,
    KNOWN_OPTIMA,
    RULE_AND_LOCATION,
    SUBSTITUTION,
    CandidateEnv,
    MatchClassEnv,
    SubstitutionEnv,
    make_vec,
)
from rlflow.environments.class_observations import CHOICE_FEATURES, OBSERVATIONS
from rlflow.environments.process_env import RENDER_MODES
from rlflow.errors import InputError
from rlflow.method import Budget
from rlflow.onnx_io import from_onnx
from rlflow.rules import library
from rlflow.rules.matching.sharing import SharingRewriter
from rlflow.search.equality_saturation import EqualitySaturation
from rlflow.step_reward import KINDS

EXAMPLE = Path(__file__).parents[2] / "examples" / "own_rules.py"
MADE = {
    SUBSTITUTION: (MatchClassEnv, {"max_choices": 5}),
    RULE_AND_LOCATION: (SubstitutionEnv, {"max_locations": 5}),
    CANDIDATES: (CandidateEnv, {"max_candidates": 5}),
}
NAMED = {
    "model": zoo.names_with_optimum(),
    "rules": [None, ["merge-2-matmuls", "merge-3-matmuls", "associate-weights", "cancel-transposes"]],
    "cost": [name for name in COST_MODELS.names() if name != "measured"],
    "reward": [name for name in KINDS if name != "end_to_end"],
    "render_mode": [None, *RENDER_MODES],
    "max_steps": [3, 20],
}
"""What can be chosen by name; what is measured wants a quiet machine, and has tests of its own."""


@pytest.mark.parametrize("name", MADE)
def test_they_are_registered_and_take_names(name: str) -> None:
    made, limit = MADE[name]
    env = gymnasium.make(name, model="tiny_merge", reward="terminal", render_mode="ansi", **limit).unwrapped
    assert type(env) is made
    assert {name: getattr(env.config, name) for name in limit} == limit
    assert env.reward.config.kind == "terminal"
    env.reset(seed=0)
    assert env.render()


@settings(max_examples=12, deadline=None)
@given(
    st.sampled_from([*MADE]),
    st.fixed_dictionaries({name: st.sampled_from(of) for name, of in NAMED.items()}),
    st.data(),
)
def test_the_checker_of_gymnasium_accepts_every_combination(
    name: str, chosen: dict[str, Any], data: st.DataObject
) -> None:
    """Every warning but those on bounds: features are logarithms and prices, without a natural one."""
    chosen |= MADE[name][1]
    if name == SUBSTITUTION:
        chosen["observation"] = data.draw(st.sampled_from([*OBSERVATIONS]))
    env = gymnasium.make(name, **chosen)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_env(env.unwrapped)
    assert [text for text in (str(one.message) for one in caught) if "infinity" not in text] == []


def test_gymnasium_alone_finds_it() -> None:
    """In a process that imports nothing else, as a researcher would, by naming the module (Gymnasium 1 has no
    plug-ins).
    """
    script = "import gymnasium; env = gymnasium.make('rlflow.environments:rlflow/Substitution-v0', model='tiny_merge');"
    script += "env.reset(seed=0); print(env.unwrapped.state.hash)"
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    assert len(answer.stdout.strip()) == 16


def test_rules_are_chosen_by_name_and_id_and_from_files() -> None:
    first, second = (rule for rule in library.load().rules if rule.name in ("merge-2-matmuls", "merge-3-matmuls"))
    env = gymnasium.make(SUBSTITUTION, model="tiny_merge", rules=[second.name, first.id, str(EXAMPLE)]).unwrapped
    assert [rule.id for rule in env.library.rules[:2]] == [second.id, first.id]
    assert len(env.library.rules) == 3
    assert gymnasium.make(SUBSTITUTION, library=EXAMPLE).unwrapped.library.rules == env.library.rules[2:]


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ({"model": "tiny_marge"}, "no model 'tiny_marge': did you mean tiny_merge"),
        ({"cost": "analitic"}, "no cost model 'analitic': did you mean analytic"),
        ({"rules": ["merge-3-linear"]}, "no rule 'merge-3-linear': did you mean merge-3-linears"),
        ({"rules": "merge-3-linears"}, "give a list of names"),
        ({"reward": "incremntal"}, "no reward 'incremntal': did you mean incremental"),
        ({"observation": "grpah"}, "no observation 'grpah': did you mean graph"),
        ({"max_stps": 3}, "unknown setting max_stps; the settings are max_choices, max_steps, observation"),
        ({"max_steps": 0}, "max_steps must be at least 1, not 0"),
    ],
)
def test_a_wrong_name_is_answered_with_the_nearest(argument: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        gymnasium.make(SUBSTITUTION, **argument)


@pytest.mark.parametrize("name", KNOWN_OPTIMA)
def test_a_threshold_is_what_saturation_proves_to_be_the_most_and_an_episode_reaches_it(name: str) -> None:
    """The steps of its trajectory are taken in the environment of single rewrites, and pay as much together."""
    model, percent = KNOWN_OPTIMA[name]
    env = gymnasium.make(name)
    assert env.spec is not None
    assert env.spec.reward_threshold == percent
    rules, cost_model, graph = library.load(), AnalyticCost(), from_onnx(zoo.build(model))
    found = EqualitySaturation(rules, SharingRewriter(rules.rules), cost_model).optimise(graph, Budget(time_s=60.0))
    assert found.optimality is not None
    assert found.optimality.proven
    saved = 100.0 * (1.0 - cost_model.runtime_ms(found.best) / cost_model.runtime_ms(graph))
    assert percent <= saved < percent + 0.001
    assert best_return(env) == pytest.approx(saved)


def best_return(env: gymnasium.Env[Any, Any], depth: int = 5) -> float:
    """The most that an episode of few steps earns, by trying all of them."""
    env.reset(seed=0)
    begun: Any = env.unwrapped
    most, waiting, seen = 0.0, [(begun.fork(), 0.0)], set()
    for _ in range(depth):
        ahead = []
        for state, earned in waiting:
            for action in np.flatnonzero(state.action_masks()[:-1]):
                after = state.fork()
                _, reward, *_ = after.step(action)
                if after.state.hash not in seen:
                    seen.add(after.state.hash)
                    ahead.append((after, earned + reward))
        most, waiting = max([most, *(earned for _, earned in ahead)]), ahead
    return most


def test_many_side_by_side_share_memory_and_go_the_same_ways() -> None:
    envs = make_vec(SUBSTITUTION, 2, context="forkserver", model="tiny_merge", max_choices=6)
    try:
        assert isinstance(envs, AsyncVectorEnv)
        assert envs.shared_memory
        alone = gymnasium.make(SUBSTITUTION, model="tiny_merge", max_choices=6)
        observation, info = envs.reset(seed=[3, 4])
        wanted, told = alone.reset(seed=3)
        for _ in range(3):
            assert all(np.array_equal(observation[name][0], part) for name, part in wanted.items())
            assert np.array_equal(info["action_mask"][0], told["action_mask"])
            action = int(told["action_mask"].argmax())
            observation, rewards, *_, info = envs.step(np.array([action, action]))
            wanted, reward, *_, told = alone.step(action)
            assert rewards.tolist() == [reward, reward]
        assert observation["choices"].shape == (2, 6, len(CHOICE_FEATURES))
    finally:
        envs.close()


def test_graphs_side_by_side_are_handed_over_as_they_are() -> None:
    envs = make_vec(SUBSTITUTION, 2, context="forkserver", model="tiny_merge", observation="graph")
    try:
        assert not envs.shared_memory
        observation, _ = envs.reset(seed=0)
        assert len(observation) == 2
        assert np.array_equal(observation[0].nodes, observation[1].nodes)
    finally:
        envs.close()
