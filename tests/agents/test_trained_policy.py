"""Without a trained policy, the method says what would bring one."""

from pathlib import Path

import pytest

from rlflow.agents.trained_policy import trained_policy
from rlflow.cost.analytic import AnalyticCost
from rlflow.errors import InputError
from rlflow.rules.library import load
from rlflow.rules.matching.rewriter import Rewriter


@pytest.mark.parametrize("present", [[], ["world_models"], ["policies"]])
def test_a_folder_without_a_policy_is_refused_with_what_to_do(tmp_path: Path, present: list[str]) -> None:
    for name in present:
        (tmp_path / name).mkdir()
    library = load()
    with pytest.raises(InputError, match=r"no trained policy in .*train one with `dvc repro`, .*--method backtracking"):
        trained_policy(library, Rewriter(library.rules), AnalyticCost(), folder=tmp_path)
