"""docs/spaces.md: what it shows runs, and what it names is there."""

import re
import subprocess
import sys
from pathlib import Path

import gymnasium
import pytest

from rlflow.cost.models import COST_MODELS
from rlflow.environments import KNOWN_OPTIMA, MatchClassConfig, RewardConfig, class_observations
from rlflow.environments.class_observations import CHOICE_FEATURES, EDGE_FEATURES, OBSERVATIONS
from rlflow.environments.process_env import RENDER_MODES
from rlflow.step_reward import KINDS

PAGE = (Path(__file__).parents[2] / "docs" / "spaces.md").read_text()


def test_every_block_of_code_runs(tmp_path: Path) -> None:
    """One after another in one program, as a reader would; the first prints the steps of an episode."""
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 3
    program = tmp_path / "page.py"
    program.write_text("\n".join(blocks))
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Step(rule=" in done.stdout


@pytest.mark.parametrize(
    "name",
    [
        *CHOICE_FEATURES,
        *EDGE_FEATURES,
        *OBSERVATIONS,
        *RENDER_MODES,
        *KINDS,
        *COST_MODELS.built_in,
        *vars(MatchClassConfig()),
    ],
)
def test_what_can_be_chosen_and_observed_is_named(name: str) -> None:
    assert f"`{name}`" in PAGE


def test_environments_and_sizes_are_those_that_there_are() -> None:
    named = {name.partition("/")[2] for name in gymnasium.registry if name.startswith("rlflow/")}
    assert {name for name in named if f"`{name}`" in PAGE or f"`rlflow/{name}`" in PAGE} == named
    assert {name for name in KNOWN_OPTIMA if name.partition("/")[2] in PAGE} == set(KNOWN_OPTIMA)
    width = class_observations.ChoiceGraph(1, 1).space.node_space.shape
    assert f"`nodes` (n, {width[0]}) float32" in PAGE
    assert f"{RewardConfig().invalid:.0f}; it counts as a step" in PAGE
