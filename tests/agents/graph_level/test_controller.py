"""A controller on disk carries no code, and acts as the one that was saved."""

from pathlib import Path

import numpy as np
import pytest
import torch
from support.contents import contents

from rlflow.agents.graph_level.controller import Controller, ControllerArguments
from rlflow.agents.graph_level.controller_config import ControllerConfig
from rlflow.errors import InputError
from rlflow.settings import read_config
from rlflow.world_model.graph_level.latent_state import ObservationLayout

ARGUMENTS = ControllerArguments(
    rule_ids=("merge", "fold"),
    library_hash="abc",
    max_locations=5,
    layout=ObservationLayout(latent=2, hidden=3, num_rules=2),
    config=ControllerConfig(width=8, rule_embedding=3),
)


@pytest.fixture
def controller() -> Controller:
    torch.manual_seed(0)
    return Controller(ARGUMENTS.new_policy(), ARGUMENTS)


def observations(number: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    flat = rng.normal(size=(number, ARGUMENTS.layout.size)).astype(np.float32)
    flat[:, 5:7] = rng.integers(0, 6, (number, 2))
    return flat


def test_a_loaded_controller_acts_as_the_saved_one(controller: Controller, tmp_path: Path) -> None:
    controller.save(tmp_path)
    loaded = Controller.load(tmp_path)
    assert loaded.arguments == ARGUMENTS
    batch = observations(50)
    np.testing.assert_array_equal(loaded.act(batch), controller.act(batch))
    drawn = [c.act(batch, False, torch.Generator().manual_seed(1)) for c in (loaded, controller)]
    np.testing.assert_array_equal(drawn[0], drawn[1])
    assert (drawn[0] != controller.act(batch, False, torch.Generator().manual_seed(2))).any()


def test_one_observation_gives_one_action(controller: Controller) -> None:
    batch = observations(3)
    assert controller.act(batch[0]).shape == (2,)
    np.testing.assert_array_equal(controller.act(batch)[1], controller.act(batch[1]))


def test_the_likeliest_are_the_valid_ones_in_order_of_their_probability(controller: Controller) -> None:
    for observation in observations(20):
        counts = observation[5:7].astype(int)
        found = controller.likeliest(observation, 100)
        assert sorted(found) == [(r, i) for r in (0, 1) for i in range(min(counts[r], ARGUMENTS.max_locations))]
        flat = torch.from_numpy(observation).expand(len(found), -1)
        log_probability = controller.policy.distribution(flat).log_prob(torch.tensor(found).reshape(-1, 2))
        assert (log_probability.diff() <= 1e-6).all()
        assert controller.likeliest(observation, 3) == found[:3]


def test_drawn_rewrites_are_distinct_and_come_as_often_as_they_are_likely(controller: Controller) -> None:
    observation = observations(1)[0]
    observation[5:7] = 2
    every = controller.likeliest(observation, 4)
    flat = torch.from_numpy(observation).expand(4, -1)
    chances = controller.policy.distribution(flat).log_prob(torch.tensor(every)).softmax(dim=0).detach().numpy()
    generator, draws = torch.Generator().manual_seed(0), 2000
    drawn = [controller.likeliest(observation, 2, generator) for _ in range(draws)]
    assert all(len(set(pair)) == 2 for pair in drawn)
    firsts = np.array([sum(pair[0] == rewrite for pair in drawn) for rewrite in every]) / draws
    # five standard deviations of a share of so many draws
    np.testing.assert_allclose(firsts, chances, atol=5 * 0.5 / np.sqrt(draws))


def test_equal_controllers_are_equal_files_without_a_pickle(controller: Controller, tmp_path: Path) -> None:
    for name in ("a", "b"):
        controller.save(tmp_path / name)
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    assert contents(tmp_path / "a").keys() == {"controller.json", "controller.safetensors"}


def test_a_broken_folder_is_refused(controller: Controller, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="run train_controller"):
        Controller.load(tmp_path)
    controller.save(tmp_path)
    (tmp_path / "controller.safetensors").write_bytes(b"cbuiltins\neval\n.")
    with pytest.raises(InputError, match="run train_controller"):
        Controller.load(tmp_path)


def test_an_unknown_setting_is_refused() -> None:
    with pytest.raises(InputError, match="ControllerConfig: unknown setting gamma"):
        read_config(ControllerConfig, {"gamma": 0.9})
