"""Environments are made by `gymnasium.make` from names."""

import subprocess
import sys
from typing import Any

import gymnasium
import pytest

from rlflow.environments import CANDIDATES, SUBSTITUTION, CandidateEnv, SubstitutionEnv


@pytest.mark.parametrize(
    ("name", "made", "settings"),
    [(SUBSTITUTION, SubstitutionEnv, {"max_locations": 5}), (CANDIDATES, CandidateEnv, {"max_candidates": 5})],
)
def test_they_are_registered_and_take_names(name: str, made: type, settings: dict[str, Any]) -> None:
    env = gymnasium.make(name, model="tiny_merge", reward="terminal", render_mode="ansi", **settings).unwrapped
    assert type(env) is made
    assert {name: getattr(env.config, name) for name in settings} == settings
    assert env.reward.config.kind == "terminal"
    env.reset(seed=0)
    assert env.render()


def test_gymnasium_alone_finds_it() -> None:
    """In a process that imports nothing else, as a researcher would, by naming the module (Gymnasium 1 has no
    plug-ins).
    """
    script = "import gymnasium; env = gymnasium.make('rlflow.environments:rlflow/Substitution-v0', model='tiny_merge');"
    script += "env.reset(seed=0); print(env.unwrapped.state.hash)"
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    assert len(answer.stdout.strip()) == 16
