"""The method finds the policy of a graph in the folder, and without one says what would bring it."""

from pathlib import Path

import pytest
import torch
from support.world_models import SMALL

from rlflow.agents.pooled.config import ControllerConfig
from rlflow.agents.pooled.controller import Controller, ControllerArguments, new_policy
from rlflow.agents.trained_policy import trained_policy
from rlflow.cost.analytic import AnalyticCost
from rlflow.errors import InputError
from rlflow.representation.features import todays_vocabulary
from rlflow.rules.library import load
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.world_model.pooled import latent_state
from rlflow.world_model.pooled.model import WorldModel, WorldModelArguments


@pytest.mark.parametrize("present", [[], ["world_models"], ["policies"]])
def test_a_folder_without_a_policy_is_refused_with_what_to_do(tmp_path: Path, present: list[str]) -> None:
    for name in present:
        (tmp_path / name).mkdir()
    library = load()
    with pytest.raises(InputError, match=r"no trained policy in .*train one with `dvc repro`, .*--method backtracking"):
        trained_policy(library, Rewriter(library.rules), AnalyticCost(), folder=tmp_path)


@pytest.fixture
def trained(tmp_path: Path) -> Path:
    """Untrained policies as `dvc repro` would leave those of three graphs; each acts with a rule of its own."""
    for place, graph in enumerate(("vit", "bert", "t5")):
        rules = load().select([load().rules[place].id])
        arguments = WorldModelArguments((rules.rules[0].id,), rules.hash, 5, todays_vocabulary(), SMALL)
        torch.manual_seed(0)
        model = WorldModel(arguments)
        layout = latent_state.layout_of(model)
        controller = ControllerArguments(arguments.rule_ids, rules.hash, 5, layout, ControllerConfig(width=8))
        model.save(tmp_path / "world_models" / graph)
        Controller(new_policy(controller), controller).save(tmp_path / "policies" / graph)
    return tmp_path


@pytest.mark.parametrize(("trained_on", "place"), [(None, 1), ("bert", 1), ("t5", 2), ("vit", 0)])
def test_the_policy_is_that_of_the_named_graph_or_of_the_first_by_name(
    trained: Path, trained_on: str | None, place: int
) -> None:
    library = load()
    policy = trained_policy(
        library, Rewriter(library.rules), AnalyticCost(), folder=trained, trained_on=trained_on, horizon=3
    )
    expected = (library.rules[place].id,)
    assert policy.controller.arguments.rule_ids == policy.world_model.arguments.rule_ids == expected
    assert [rule.id for rule in policy.library.rules] == list(expected)


def test_a_graph_on_which_none_was_trained_is_refused_with_those_that_are_there(trained: Path) -> None:
    library = load()
    with pytest.raises(InputError, match=r"no policy in .* was trained on gpt2: choose from bert, t5, vit"):
        trained_policy(library, Rewriter(library.rules), AnalyticCost(), folder=trained, trained_on="gpt2")
