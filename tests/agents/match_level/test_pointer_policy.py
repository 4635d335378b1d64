"""A pointer over kinds: the order and the number of places do not matter, and probabilities are exact."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from gymnasium import spaces
from support.gradients import check_gradients
from torch import Tensor

from rlflow.agents.match_level.pointer_config import MatchLevelControllerConfig
from rlflow.agents.match_level.pointer_policy import PointerPolicy
from rlflow.world_model.match_level.observation import TokenLayout

K, EMBEDDING = 6, 3
LAYOUT = TokenLayout(K, EMBEDDING)
UNWEIGHTED = MatchLevelControllerConfig(width=8, greedy_weight=0.0, expert_weight=0.0, terminate_bias=0.0)
COUNTS = [[2, 0, 1, 4, 0, 1], [0, 0, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1], [0, 0, 0, 7, 0, 0]]


def untrained(classes: int = K, **weights: float) -> PointerPolicy:
    layout = TokenLayout(classes, EMBEDDING)
    return PointerPolicy(
        spaces.Box(-np.inf, np.inf, (layout.size,), np.float32),
        spaces.Discrete(classes + 1),
        lambda _: 1e-3,
        embedding=EMBEDDING,
        config=replace(UNWEIGHTED, **weights),
    )


def policy(classes: int = K) -> PointerPolicy:
    """Heads far from uniform, so that a forgotten mask or place would show."""
    torch.manual_seed(0)
    built = untrained(classes)
    for parameter in built.parameters():
        torch.nn.init.normal_(parameter, std=0.7)
    return built


def observations(counts: list[list[int]] = COUNTS, seed: int = 1) -> Tensor:
    """Half of the classes near the last rewrite; empty places are 0, as a dream shows them."""
    generator = torch.Generator().manual_seed(seed)
    count = torch.tensor(counts, dtype=torch.float32)
    shape = (*count.shape, EMBEDDING + 2)
    near = torch.randint(0, 2, (*count.shape, 1), generator=generator).float()
    classes = torch.cat([torch.randn(shape, generator=generator), torch.log1p(count)[..., None], near], dim=-1)
    classes = classes * (count > 0)[..., None]
    return torch.cat([classes.flatten(1), torch.randn(len(counts), 1, generator=generator)], dim=1)


def probabilities(built: PointerPolicy, observation: Tensor) -> Tensor:
    return built.distribution(observation).log_probability.exp()


def present() -> Tensor:
    return torch.nn.functional.pad(torch.tensor(COUNTS) > 0, (0, 1), value=True)


def test_probabilities_sum_to_one_over_the_kinds_that_are_there_and_terminate():
    probability = probabilities(policy(), observations())
    torch.testing.assert_close(probability.sum(dim=-1), torch.ones(4))
    assert (probability[~present()] == 0).all()
    assert (probability[present()] > 0).all()
    assert probability[1, K] == 1


def test_samples_are_valid_and_have_these_probabilities():
    """20,000 draws a state; five standard errors."""
    built, draws = policy(), 20_000
    probability = probabilities(built, observations())
    many = observations().repeat_interleave(draws, dim=0)
    drawn = built.distribution(many).sample(torch.Generator().manual_seed(0)).reshape(4, draws)
    for row in range(4):
        frequency = torch.bincount(drawn[row], minlength=K + 1) / draws
        assert (frequency[~present()[row]] == 0).all()
        error = (probability[row] * (1 - probability[row]) / draws).sqrt()
        assert ((frequency - probability[row]).abs() <= 5 * error + 1e-7).all()


def test_kinds_in_another_order_have_the_same_probabilities_in_that_order():
    """Not vacuous: the probabilities of a state differ from class to class."""
    built, observation = policy(), observations()
    order = torch.tensor([4, 2, 0, 5, 1, 3])
    classes = LAYOUT.split(observation).classes[:, order]
    moved = torch.cat([classes.flatten(1), observation[:, -1:]], dim=1)
    before, after = probabilities(built, observation), probabilities(built, moved)
    torch.testing.assert_close(after[:, :K], before[:, order])
    torch.testing.assert_close(after[:, K], before[:, K])
    torch.testing.assert_close(built.predict_values(moved), built.predict_values(observation))
    assert before[2].unique().numel() == K + 1


@pytest.mark.parametrize("more", [1, 50])
def test_it_acts_on_more_places_than_it_was_made_for(more: int):
    """Empty ones change nothing; terminate is still the last action."""
    built, observation = policy(), observations()
    wide = torch.cat([observation[:, :-1], torch.zeros(4, more * LAYOUT.width), observation[:, -1:]], dim=1)
    before, after = probabilities(built, observation), probabilities(built, wide)
    assert after.shape == (4, K + more + 1)
    torch.testing.assert_close(torch.cat([after[:, :K], after[:, -1:]], dim=1), before)
    assert (after[:, K:-1] == 0).all()
    torch.testing.assert_close(built.predict_values(wide), built.predict_values(observation))


def test_every_part_of_a_state_matters_to_every_kind():
    """The features of another class, whether that one is near, and the cost."""
    built, observation = policy(), observations([[1, 1, 1, 1, 1, 1]])
    first = probabilities(built, observation)[0, 0] / probabilities(built, observation)[0, 1]
    for column in (LAYOUT.width * 3, LAYOUT.width * 4 - 1, LAYOUT.size - 1):
        other = observation.clone()
        other[0, column] = 1.0 - other[0, column]
        changed = probabilities(built, other)
        assert not torch.allclose(changed[0, 0] / changed[0, 1], first, rtol=1e-5), column


def test_entropy_is_that_of_the_enumerated_actions():
    probability = probabilities(policy(), observations())
    expected = -torch.where(probability > 0, probability * probability.clamp_min(1e-30).log(), 0.0).sum(dim=-1)
    distribution = policy().distribution(observations())
    torch.testing.assert_close(distribution.entropy(), expected)
    assert distribution.entropy()[1] == 0


def test_the_ratio_is_exactly_one_before_the_first_update():
    """forward, as collected; evaluate_actions, with the useless masks that the buffer hands in."""
    built, batch = policy(), observations(COUNTS * 8)
    actions, values, collected = built(batch)
    again, updated, entropy = built.evaluate_actions(batch, actions.float(), action_masks=torch.ones(32, 1))
    assert torch.equal(torch.exp(updated - collected), torch.ones(32))
    assert torch.equal(values, again)
    assert torch.equal(values, built.predict_values(batch))
    assert torch.equal(built.get_distribution(batch).log_prob(actions), collected)
    assert torch.equal(entropy, built.distribution(batch).entropy())


def test_the_deterministic_action_is_the_likeliest():
    built, batch = policy(), observations()
    actions, _ = built.predict(batch.numpy(), deterministic=True)
    assert actions.tolist() == probabilities(built, batch).argmax(dim=-1).tolist()


def test_gradients_are_finite_and_reach_every_parameter():
    built, batch = policy(), observations(COUNTS * 4)
    actions, _, _ = built(batch)
    check_gradients(built, *built.evaluate_actions(batch, actions))


def test_gradients_are_those_of_finite_differences():
    """Of what is pooled over classes too. Everything is there, since no difference may be taken across a threshold."""
    built, batch = policy().double(), observations([[1] * K] * 2).double().requires_grad_()
    assert torch.autograd.gradcheck(built.predict_values, batch)
    assert torch.autograd.gradcheck(lambda batch: built.distribution(batch).log_probability, batch)


def test_at_first_all_kinds_are_about_as_likely_and_terminate_is_as_its_bias_says():
    torch.manual_seed(0)
    probability = probabilities(untrained(terminate_bias=-2.0), observations([[1] * K]))[0]
    torch.testing.assert_close(probability[:K], probability[:K].mean().expand(K), rtol=0.1, atol=0)
    assert probability[K].item() == pytest.approx(1 / (1 + K * math.exp(2)), rel=0.1)


def test_before_it_learns_it_prefers_what_saves_most():
    """Logits are in proportion to what all matches of a class save; a loss counts as much as the best, at most."""
    torch.manual_seed(0)
    seen = observations([[1, 4, 1, 1, 0, 0]])
    classes = LAYOUT.split(seen).classes
    classes[0, :, EMBEDDING + 1] = 0.25 * torch.asinh(torch.tensor([2.0, 1.0, 0.0, -9.0, 5.0, 5.0]))
    logits = probabilities(untrained(greedy_weight=3.0), seen)[0].log()
    torch.testing.assert_close(logits[:4] - logits[2], torch.tensor([1.5, 3.0, 0.0, -3.0]), rtol=0, atol=0.1)


def test_before_it_learns_it_follows_what_experts_take():
    torch.manual_seed(0)
    seen = observations([[1, 4, 1, 1, 0, 0]])
    LAYOUT.split(seen).classes[0, :, EMBEDDING] = 0.25 * torch.tensor([2.0, 1.0, -3.0, 4.0, 9.0, 9.0])
    logits = probabilities(untrained(expert_weight=0.5), seen)[0].log().detach()
    expected = torch.tensor([-1.0, -1.5, -3.5, 0.0])
    torch.testing.assert_close(logits[:4] - logits[3], expected, rtol=0, atol=0.1)
    assert logits[K] - logits[3] == pytest.approx(0.0, abs=0.1), "terminate is beside the likeliest, by its bias"


def test_masks_of_an_environment_are_those_that_are_observed():
    """Others are refused: PPO would evaluate an action otherwise than it was sampled."""
    built, seen = policy(), observations()
    masks = present().numpy()
    expected = built.get_distribution(seen).log_probability
    assert torch.equal(built.get_distribution(seen, masks).log_probability, expected)
    assert torch.equal(built(seen, deterministic=True, action_masks=masks)[0], built(seen, deterministic=True)[0])
    masks[2, 1] = False
    with pytest.raises(ValueError, match="not those that the observation carries"):
        built.get_distribution(seen, masks)
    with pytest.raises(ValueError, match="not those that the observation carries"):
        built(seen, action_masks=masks)
