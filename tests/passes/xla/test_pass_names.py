"""The names of XLA's passes against the compiler that is installed."""

import os
import re
import subprocess
import sys

import pytest

from rlflow.passes.xla.pass_names import (
    ACTIONS,
    AFTER_SCATTER,
    GATHER,
    NORMALIZATION,
    NORMALIZER,
    SIMPLIFICATION,
    SIMPLIFIERS,
    disabled_for,
    members,
)

_COMPILE = """
from rlflow.passes.xla import dataset
from rlflow.passes.xla.compiler import compiled
for name in ("mlp/step?layers=1", "update"):
    compiled(dataset.stablehlo(name))
"""


@pytest.mark.slow
def test_every_name_is_one_that_the_compiler_runs() -> None:
    """XLA ignores names that it does not know, so that only its log can tell."""
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "0", "TF_CPP_VMODULE": "hlo_pass_pipeline=2"}
    log = subprocess.run(
        [sys.executable, "-c", _COMPILE], env=environment, capture_output=True, text=True, check=True, errors="replace"
    ).stderr
    passes = set(re.findall(r"\]   +HLO pass (.+)", log))
    pipelines = set(re.findall(r"HLO pass pipeline on module \S+: (.+)", log))
    assert {member for action in ACTIONS for member in members(action)} <= passes
    assert {SIMPLIFICATION, AFTER_SCATTER, NORMALIZATION} <= pipelines

    known = set(disabled_for((), pipelines=()).split(","))
    assert passes - known == {SIMPLIFICATION, "apply-xla-transforms"}, "anything else would run within every action"


def test_an_action_leaves_its_own_passes_on() -> None:
    for action in ACTIONS:
        off = disabled_for((action,)).split(",")
        assert set(disabled_for(()).split(",")) - set(off) >= set(members(action))
        assert not set(members(action)) & set(off)


def test_unsafe_passes_run_with_what_they_need_or_not_at_all() -> None:
    assert members(GATHER) == (NORMALIZER, "gather_simplifier")
    for unsafe in ("gather_simplifier", "scatter_simplifier", "copy-insertion", "reshape-decomposer"):
        assert unsafe not in ACTIONS
        assert unsafe in disabled_for(("algsimp", "dce")).split(",")


def test_simplifiers_are_actions() -> None:
    assert set(SIMPLIFIERS) < set(ACTIONS)
    assert len(set(ACTIONS)) == len(ACTIONS) == 45
