"""A controller asks its policy, with any shape of a batch."""

import numpy as np
import torch
from torch import Tensor

from rlflow.agents.pointing import PointerDistribution
from rlflow.agents.policy_controller import PolicyController


class Logits:
    """The observation is the logits of choices; terminate has 0."""

    def distribution(self, observation: Tensor) -> PointerDistribution:
        present = torch.ones(observation.shape, dtype=torch.bool)
        return PointerDistribution.of(observation, torch.zeros(len(observation), 1), present)


def test_it_acts_on_one_and_on_many() -> None:
    observation = np.array([[[1.0, 2.0], [-1.0, -2.0]], [[5.0, 2.0], [0.5, 0.0]]], np.float32)
    controller = PolicyController(Logits(), None)
    assert controller.act(observation).tolist() == [[1, 2], [0, 0]]
    assert controller.choose(observation[0, 0]) == controller.act(observation[0, 0]).item() == 1
    drawn = {controller.choose(observation[1, 1], torch.Generator().manual_seed(seed)) for seed in range(40)}
    assert drawn == {0, 1, 2}


def test_the_likeliest_are_choices_alone() -> None:
    assert PolicyController(Logits(), None).likeliest(np.array([-1.0, 2.0, 0.5], np.float32), 2) == [1, 2]
