"""A controller over match tokens on disk carries no code, and acts as the one that was saved."""

from pathlib import Path

import numpy as np
import pytest
import torch
from support.contents import contents

from rlflow.agents.match_level.controller import MatchLevelController, MatchLevelControllerArguments
from rlflow.agents.match_level.pointer_config import CmaEsConfig, MatchLevelControllerConfig
from rlflow.errors import InputError
from rlflow.world_model.match_level.observation import TokenLayout

EMBEDDING = 3


@pytest.fixture(params=[MatchLevelControllerConfig(width=8), CmaEsConfig(population=6)], ids=["pointer", "linear"])
def controller(request: pytest.FixtureRequest) -> MatchLevelController:
    torch.manual_seed(0)
    arguments = MatchLevelControllerArguments(EMBEDDING, "abc", 3, request.param)
    policy = arguments.new_policy()
    for parameter in policy.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return MatchLevelController(policy, arguments)


def observations(number: int, classes: int = 5) -> np.ndarray:
    layout, rng = TokenLayout(classes, EMBEDDING), np.random.default_rng(0)
    seen = rng.normal(size=(number, classes, layout.width)).astype(np.float32)
    seen[..., -2] = np.log1p(rng.integers(0, 3, (number, classes)))
    seen[..., -1] = rng.integers(0, 2, (number, classes))
    seen *= seen[..., -2:-1] > 0
    return np.concatenate([seen.reshape(number, -1), rng.normal(size=(number, 1)).astype(np.float32)], axis=1)


def test_a_loaded_controller_acts_as_the_saved_one(controller: MatchLevelController, tmp_path: Path) -> None:
    controller.save(tmp_path)
    loaded = MatchLevelController.load(tmp_path)
    assert loaded.arguments == controller.arguments
    assert type(loaded.policy) is type(controller.policy)
    assert not any(parameter.requires_grad for parameter in loaded.policy.parameters())
    batch = observations(50)
    np.testing.assert_array_equal(loaded.act(batch), controller.act(batch))
    drawn = [c.act(batch, False, torch.Generator().manual_seed(1)) for c in (loaded, controller)]
    np.testing.assert_array_equal(drawn[0], drawn[1])
    assert (drawn[0] != controller.act(batch, False, torch.Generator().manual_seed(2))).any()


@pytest.mark.parametrize("classes", [1, 5, 40])
def test_actions_are_kinds_that_are_there_or_terminate(controller: MatchLevelController, classes: int) -> None:
    batch = observations(30, classes)
    view = TokenLayout(classes, EMBEDDING).split(torch.from_numpy(batch))
    valid = torch.nn.functional.pad(view.present, (0, 1), value=True).numpy()
    for actions in (controller.act(batch), controller.act(batch, False, torch.Generator().manual_seed(0))):
        assert actions.shape == (30,)
        assert valid[np.arange(30), actions].all()
    one = controller.act(batch[0])
    assert one.shape == ()
    assert one == controller.act(batch)[0]


def test_equal_controllers_are_equal_files_without_a_pickle(controller: MatchLevelController, tmp_path: Path) -> None:
    for name in ("a", "b"):
        controller.save(tmp_path / name)
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    assert contents(tmp_path / "a").keys() == {"controller.json", "controller.safetensors"}


def test_a_folder_without_a_controller_is_refused(controller: MatchLevelController, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="run train_controller"):
        MatchLevelController.load(tmp_path)
    controller.save(tmp_path)
    text = (tmp_path / "controller.json").read_text()
    (tmp_path / "controller.json").write_text(text.replace("trained_by", "trained_with"))
    with pytest.raises(InputError, match="run train_controller"):
        MatchLevelController.load(tmp_path)
