"""What a policy sees of classes of matches: put together and taken apart again, of any number of kinds."""

import math

import torch
from support.token_dreams import stacked, state

from rlflow.representation.token_rollouts import FAR_AWAY
from rlflow.world_model.match_level.observation import TokenLayout
from rlflow.world_model.match_level.token_encoder import TokenReading

LAYOUT = TokenLayout(max_kinds=3, embedding=2)
READING = TokenReading(
    embedding=torch.tensor([[1.0, 2.0], [3.0, 4.0]]),
    saving=torch.tensor([0.8, -1.6]),
    sigma=torch.tensor([0.1, 0.2]),
    taken=torch.tensor([-2.0, 6.0]),
    gain=torch.tensor([0.3, 0.4]),
)


def test_every_token_has_its_look_and_an_empty_place_is_0():
    looks = LAYOUT.looks(READING)
    expected = [[1.0, 2.0, -0.5, 0.2, 1.0, 0.0], [3.0, 4.0, 1.5, -0.4, 1.0, 0.0], [0.0] * 6]
    torch.testing.assert_close(looks, torch.tensor(expected))


def test_a_policy_sees_how_many_matches_are_apart_what_they_save_and_what_experts_take():
    """Of four matches half, of one and of two one at least; of none nothing."""
    layout = TokenLayout(max_kinds=4, embedding=2)
    looks = LAYOUT.looks(READING, torch.tensor([0.5, 0.1]))
    view = layout.split(layout.flatten(state([(0, 4), (1, 2), (0, 1), (1, 0)], 4), looks))
    torch.testing.assert_close(view.classes[0, :, -2], torch.log1p(torch.tensor([2.0, 1.0, 1.0, 0.0])))
    saved = [2 * math.sinh(0.8), math.sinh(-1.6), math.sinh(0.8), 0.0]
    torch.testing.assert_close(layout.saving(view.classes)[0], torch.tensor(saved))
    torch.testing.assert_close(layout.taken(view.classes)[0], torch.tensor([-2.0, 6.0, -2.0, 0.0]))


def test_an_observation_is_taken_apart_as_it_was_put_together():
    """The first place of the second state holds a token, but no match of it."""
    states = stacked([state([(1, 3), (0, 1)], 3, unit=0.5), state([(1, 0), (0, 2)], 3)])
    near = torch.tensor([[0, 2, FAR_AWAY], [0, FAR_AWAY, 0]], dtype=torch.int8)
    states = type(states)(**{**vars(states), "near": near, "cost": states.cost - torch.tensor([2.0, 0.0])})
    observation = LAYOUT.flatten(states, LAYOUT.looks(READING))
    assert observation.shape == (2, LAYOUT.size)
    view = LAYOUT.split(observation)
    assert view.present.tolist() == [[True, True, False], [False, True, False]]
    expected = [
        [[3.0, 4.0, 1.5, -0.4, math.log(4), 1.0], [1.0, 2.0, -0.5, 0.2, math.log(2), 1 - 2 / FAR_AWAY], [0.0] * 6],
        [[0.0] * 6, [1.0, 2.0, -0.5, 0.2, math.log(3), 0.0], [0.0] * 6],
    ]
    torch.testing.assert_close(view.classes, torch.tensor(expected))
    torch.testing.assert_close(view.cost, torch.tensor([[0.25 * math.asinh(4.0)], [0.0]]))


def test_an_observation_of_another_number_of_kinds_is_taken_apart_too():
    wide = TokenLayout(max_kinds=7, embedding=2)
    view = LAYOUT.split(torch.arange(2.0 * wide.size).reshape(2, -1))
    assert view.classes.shape == (2, 7, 6)
    assert view.cost.tolist() == [[wide.size - 1], [2 * wide.size - 1]]


def test_near_is_within_an_edge_of_the_last_rewrite():
    nearness = 1.0 - torch.arange(FAR_AWAY + 1) / FAR_AWAY
    classes = torch.nn.functional.pad(nearness[:, None], (LAYOUT.width - 1, 0))
    assert LAYOUT.is_near(classes).tolist() == [True, True, *[False] * (FAR_AWAY - 1)]
