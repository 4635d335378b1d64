"""What a policy sees of classes of matches: put together and taken apart again, of any number of kinds."""

import math

import torch
from support.token_dreams import stacked, state

from rlflow.representation.token_rollouts import FAR_AWAY
from rlflow.world_model.match_level.observation import TokenLayout

LAYOUT = TokenLayout(max_kinds=3, embedding=2)
EMBEDDING = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
SAVING = torch.tensor([0.8, -1.6])


def test_every_token_has_its_look_and_an_empty_place_is_0():
    looks = LAYOUT.looks(EMBEDDING, SAVING)
    expected = [[1.0, 2.0, 0.2, 1.0, 0.0], [3.0, 4.0, -0.4, 1.0, 0.0], [0.0] * 5]
    torch.testing.assert_close(looks, torch.tensor(expected))


def test_a_policy_sees_how_many_matches_are_apart_and_what_they_save():
    """Of four matches half, of one and of two one at least; of none nothing."""
    layout = TokenLayout(max_kinds=4, embedding=2)
    looks = LAYOUT.looks(EMBEDDING, SAVING, torch.tensor([0.5, 0.1]))
    view = layout.split(layout.flatten(state([(0, 4), (1, 2), (0, 1), (1, 0)], 4), looks))
    torch.testing.assert_close(view.classes[0, :, -2], torch.log1p(torch.tensor([2.0, 1.0, 1.0, 0.0])))
    saved = [2 * math.sinh(0.8), math.sinh(-1.6), math.sinh(0.8), 0.0]
    torch.testing.assert_close(layout.saving(view.classes)[0], torch.tensor(saved))


def test_an_observation_is_taken_apart_as_it_was_put_together():
    """The first place of the second state holds a token, but no match of it."""
    states = stacked([state([(1, 3), (0, 1)], 3, unit=0.5), state([(1, 0), (0, 2)], 3)])
    near = torch.tensor([[0, 2, FAR_AWAY], [0, FAR_AWAY, 0]], dtype=torch.int8)
    states = type(states)(**{**vars(states), "near": near, "cost": states.cost - torch.tensor([2.0, 0.0])})
    observation = LAYOUT.flatten(states, LAYOUT.looks(EMBEDDING, SAVING))
    assert observation.shape == (2, LAYOUT.size)
    view = LAYOUT.split(observation)
    assert view.present.tolist() == [[True, True, False], [False, True, False]]
    expected = [
        [[3.0, 4.0, -0.4, math.log(4), 1.0], [1.0, 2.0, 0.2, math.log(2), 1 - 2 / FAR_AWAY], [0.0] * 5],
        [[0.0] * 5, [1.0, 2.0, 0.2, math.log(3), 0.0], [0.0] * 5],
    ]
    torch.testing.assert_close(view.classes, torch.tensor(expected))
    torch.testing.assert_close(view.cost, torch.tensor([[0.25 * math.asinh(4.0)], [0.0]]))


def test_an_observation_of_another_number_of_kinds_is_taken_apart_too():
    wide = TokenLayout(max_kinds=7, embedding=2)
    view = LAYOUT.split(torch.arange(2.0 * wide.size).reshape(2, -1))
    assert view.classes.shape == (2, 7, 5)
    assert view.cost.tolist() == [[wide.size - 1], [2 * wide.size - 1]]


def test_near_is_within_an_edge_of_the_last_rewrite():
    nearness = 1.0 - torch.arange(FAR_AWAY + 1) / FAR_AWAY
    classes = torch.nn.functional.pad(nearness[:, None], (LAYOUT.width - 1, 0))
    assert LAYOUT.is_near(classes).tolist() == [True, True, *[False] * (FAR_AWAY - 1)]
