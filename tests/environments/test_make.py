"""Environments are made by `gymnasium.make` from names."""

import subprocess
import sys

import gymnasium

from rlflow.environments import CANDIDATES, SUBSTITUTION, CandidateEnv, SubstitutionEnv


def test_it_is_registered_and_takes_names():
    env = gymnasium.make(SUBSTITUTION, model="tiny_merge", reward="terminal", max_locations=5, render_mode="ansi")
    assert isinstance(env.unwrapped, SubstitutionEnv)
    env.reset(seed=0)
    assert "MatMul" in env.render()
    assert env.unwrapped.actions.max_locations == 5
    assert env.unwrapped.reward_config.kind == "terminal"


def test_candidates_are_registered_and_take_names():
    env = gymnasium.make(CANDIDATES, model="tiny_merge", reward="terminal", max_candidates=5, render_mode="ansi")
    assert isinstance(env.unwrapped, CandidateEnv)
    env.reset(seed=0)
    assert "gives" in env.render()
    assert env.unwrapped.terminate == 5
    assert env.unwrapped.reward.config.kind == "terminal"


def test_gymnasium_alone_finds_it():
    """In a process that imports nothing else, as a researcher would, by naming the module (Gymnasium 1 has no
    plug-ins).
    """
    script = "import gymnasium; env = gymnasium.make('rlflow.environments:rlflow/Substitution-v0', model='tiny_merge');"
    script += "env.reset(seed=0); print(env.unwrapped.graph_hash())"
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    assert len(answer.stdout.strip()) == 16
