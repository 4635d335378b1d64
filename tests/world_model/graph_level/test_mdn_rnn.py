"""M's single step and its sequence are one; its memory goes in and comes out, and is reset where asked."""

from dataclasses import fields, is_dataclass
from typing import Any

import torch
from support.memories import B, R, T, actions, memory, states
from torch import Tensor

from rlflow.world_model.graph_level.mdn_rnn import Change, State


def at(record: Any, time: int) -> Any:
    """The record of (B, T, ...) tensors at one time."""
    values = (getattr(record, entry.name) for entry in fields(record))
    return type(record)(*(at(value, time) if is_dataclass(value) else value[:, time] for value in values))


def tensors(record: Any) -> list[Tensor]:
    values = [getattr(record, entry.name) for entry in fields(record)]
    return [part for value in values for part in (tensors(value) if is_dataclass(value) else [value])]


def test_stepping_equals_the_sequence_also_across_resets() -> None:
    model, reset = memory(), torch.rand(B, T, generator=torch.Generator().manual_seed(3)) < 0.4
    assert 0 < reset.sum() < B * T
    together, last, trace = model.sequence(states(B, T), actions(B, T), model.initial_hidden(B), reset=reset)
    hidden = model.initial_hidden(B)
    for time in range(T):
        alone, hidden = model.step(at(states(B, T), time), actions(B, T)[:, time], hidden, reset=reset[:, time])
        torch.testing.assert_close(tensors(alone), tensors(at(together, time)), rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(trace[:, time, 0], hidden[0])
    torch.testing.assert_close(last, hidden)


def test_a_reset_forgets_and_its_absence_remembers() -> None:
    """A prototype kept the recurrent state for ever. The second half says the first is not vacuous."""
    model, state, action = memory(), states(B), actions(B)
    far = (torch.randn(B, 8), torch.randn(B, 8))
    fresh, _ = model.step(state, action, model.initial_hidden(B))
    reset, _ = model.step(state, action, far, reset=torch.ones(B, dtype=torch.bool))
    kept, _ = model.step(state, action, far, reset=torch.zeros(B, dtype=torch.bool))
    torch.testing.assert_close(reset.reward, fresh.reward)
    assert not torch.allclose(kept.reward, fresh.reward)


def test_nothing_of_a_call_stays_on_the_module() -> None:
    model = memory()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    first, _ = model.step(states(B), actions(B), model.initial_hidden(B))
    again, _ = model.step(states(B), actions(B), model.initial_hidden(B))
    torch.testing.assert_close(tensors(first), tensors(again), rtol=0, atol=0)
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


def test_recall_is_the_memory_before_each_step() -> None:
    model = memory()
    h, c = model.recall(states(B, T), actions(B, T))
    assert not h[:, 0].any()
    assert not c[:, 0].any()
    _, hidden = model.step(at(states(B, T), 0), actions(B, T)[:, 0], model.initial_hidden(B))
    torch.testing.assert_close(h[:, 1], hidden[0])
    torch.testing.assert_close(c[:, 1], hidden[1])


def test_rule_and_location_reach_every_prediction() -> None:
    model, state = memory(), State(torch.zeros(1, 4), torch.full((1, R), 5.0), torch.full((1,), 90.0))
    hidden = model.initial_hidden(1)
    first, _ = model.step(state, torch.tensor([[0, 0]]), hidden)
    for action in ([1, 0], [0, 4]):
        other, _ = model.step(state, torch.tensor([action]), hidden)
        for one, two in zip(tensors(first), tensors(other), strict=True):
            assert not torch.allclose(one, two, atol=1e-7)


def test_scales_and_priors_come_from_the_rollouts() -> None:
    """Rule 0 always gains 2 and removes one match of its own; rule 1 gains 1 or 3 and does nothing to counts."""
    model = memory()
    counts = torch.zeros(4, R)
    counts[:2, 0] = -1
    change = Change(
        latent=torch.randn(4, 4),
        reward=torch.tensor([2.0, 2.0, 1.0, 3.0]),
        terminated=torch.zeros(4, dtype=torch.bool),
        counts=counts,
        cost=torch.tensor([-2.0, -2.0, -1.0, -3.0]),
        rule=torch.tensor([0, 0, 1, 1]),
    )
    state = states(4)
    model.set_scale(state, change)
    assert model.reward_mean.tolist() == [2, 2, 0, 0]
    assert model.reward_scale[1] == 1
    assert 0 < model.reward_scale[0] < 0.1
    assert (model.reward_low[1], model.reward_high[1]) == (1, 3)
    assert (model.reward_low[2], model.reward_high[2]) == (0, 0)
    table = model.count_table.weight.unflatten(-1, (R, 5))
    assert table[0, 0].argmax() - model.max_change == -1
    assert table[1, 0].argmax() - model.max_change == 0
    assert (model.terminated_table.weight[:2] < 0).all()


def test_inputs_are_clamped_to_what_was_visited() -> None:
    """Far outside the rollouts M answers as at their edge; inside it does tell states apart."""
    model, state = memory(), states(4)
    change = Change(
        torch.randn(4, 4), torch.randn(4), torch.zeros(4), torch.zeros(4, R), torch.randn(4), torch.tensor([0, 1, 2, 3])
    )
    model.set_scale(state, change)
    action, hidden = torch.tensor([[3, 0]]), model.initial_hidden(1)

    def reward(cost: float) -> Tensor:
        return model.step(State(state.z[:1], state.counts[:1], torch.tensor([cost])), action, hidden)[0].reward

    low = state.cost.min().item()
    torch.testing.assert_close(reward(low - 50), reward(low))
    assert not torch.allclose(reward(low), reward(state.cost.max().item()), atol=1e-7)


def test_a_separate_reward_head_shares_nothing_with_the_memory() -> None:
    for head, shared in (("separate", False), ("shared", True)):
        model = memory(reward_head=head)
        prediction, _ = model.step(states(B), actions(B), model.initial_hidden(B))
        prediction.reward.sum().backward()
        assert (model.lstm.weight_ih.grad is not None) == shared
