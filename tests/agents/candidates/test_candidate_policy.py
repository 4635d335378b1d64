"""The policy over candidates: what is shared is read as if it were not, and order and company do not matter."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from gymnasium import spaces
from support.candidate_agents import EPISODES, NETWORK, small_candidates, untaught
from torch import Tensor

from rlflow.agents.candidates.candidate_policy import CandidatePolicy, Encoded
from rlflow.agents.candidates.controller import NAMES, CandidateController
from rlflow.agents.candidates.memory import PriceScale
from rlflow.agents.pointing import PointerDistribution
from rlflow.environments.candidate_process import Candidate, CandidateProcess, CandidateState

SEVERAL_LAYERS = replace(NETWORK, attention_layers=3, greedy_weight=1.5)


def walk(process: CandidateProcess, steps: int = 3) -> list[CandidateState]:
    rng, states = np.random.default_rng(0), [process.start()]
    for _ in range(steps):
        states.append(process.step(states[-1], int(rng.integers(len(states[-1].candidates)))))
    return states


def changed(state: CandidateState, candidates: tuple[Candidate, ...]) -> CandidateState:
    """The state with other candidates, by another hash, since a memory knows states by their hashes."""
    other = replace(state, candidates=candidates)
    vars(other)["hash"] = state.hash[::-1]
    return other


def named(controller: CandidateController, states: list[CandidateState], scale: PriceScale | None) -> Tensor:
    memory = controller.policy.memory
    return torch.tensor([[memory.keep(state, scale)] for state in states])


def distribution(
    controller: CandidateController, states: list[CandidateState], scale: PriceScale
) -> PointerDistribution:
    return controller.policy.distribution(named(controller, states, scale))


def encoded_with_copies_of(reach: int) -> Encoded:
    """Sums and changes in float64, by three layers, where candidates are copied as far as the reach."""
    process, controller = small_candidates(), untaught(SEVERAL_LAYERS)
    controller.policy.memory.writer.reach = reach
    batch, _ = controller.policy.memory.batch(named(controller, walk(process), PriceScale.of(process)), 10)
    wide = replace(batch, features=batch.features.double(), kinds=batch.kinds.double())
    return controller.policy.encoder.double()(wide)


@pytest.mark.slow
def test_what_is_written_once_is_read_as_if_every_graph_were_whole() -> None:
    """Not vacuous: with copies of one step less, three layers read something else."""
    shared, whole, short = (encoded_with_copies_of(reach) for reach in (3, 1000, 2))
    torch.testing.assert_close(shared.whole, whole.whole, rtol=0, atol=1e-12)
    torch.testing.assert_close(shared.change, whole.change, rtol=0, atol=1e-12)
    assert (short.change - whole.change).abs().max() > 1e-6
    assert whole.change.abs().max() > 0.01


def test_candidates_in_another_order_have_their_logits_in_that_order() -> None:
    process, controller = small_candidates(), untaught()
    state, scale = walk(process)[2], PriceScale.of(process)
    order = np.random.default_rng(1).permutation(len(state.candidates))
    assert (order != np.arange(len(order))).any()
    mixed = changed(state, tuple(state.candidates[place] for place in order))
    (one, other) = distribution(controller, [state, mixed], scale).log_probability
    torch.testing.assert_close(other[: len(order)], one[torch.from_numpy(order)], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(other[-1], one[-1], rtol=1e-4, atol=1e-5)


def test_masks_are_the_candidates_that_there_are() -> None:
    """With room for a thousand; what is masked is never drawn."""
    roomy = replace(EPISODES, max_candidates=1000)
    process, controller = small_candidates(episodes=roomy), untaught(episodes=roomy)
    states, scale = walk(process), PriceScale.of(process)
    found = distribution(controller, states, scale)
    for row, state in zip(found.log_probability, states, strict=True):
        assert torch.isfinite(row).sum() == len(state.candidates) + 1
        assert torch.isfinite(row[[0, len(state.candidates) - 1, -1]]).all()
    torch.testing.assert_close(found.log_probability.exp().sum(dim=1), torch.ones(len(states)))
    drawn = torch.stack([found.sample(torch.Generator().manual_seed(seed)) for seed in range(50)])
    assert torch.isfinite(found.log_prob(drawn[0])).all()
    assert ((drawn == 1000) | (drawn < torch.tensor([len(state.candidates) for state in states]))).all()


def test_log_probabilities_at_sampling_are_those_of_the_update() -> None:
    """A rollout's states one by one, and then all together, some of them twice, as a minibatch has them."""
    process, controller = small_candidates(), untaught()
    states, policy = walk(process), controller.policy
    names = named(controller, states, PriceScale.of(process))
    sampled = [policy(name[None]) for name in names]
    actions, values, log_probabilities = (torch.cat(parts) for parts in zip(*sampled, strict=True))
    again = torch.tensor([3, 0, 2, 0, 1])
    found_values, found, entropy = policy.evaluate_actions(names[again], actions[again])
    torch.testing.assert_close(found, log_probabilities[again], rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(found_values, values[again], rtol=1e-5, atol=1e-5)
    assert (entropy > 0).all()


def test_it_begins_as_greedy_search_and_learns_everywhere() -> None:
    """Untrained, the best saving is the likeliest; after one backward pass no parameter is without a gradient."""
    process = small_candidates()
    controller = untaught()
    arguments = controller.arguments
    torch.manual_seed(0)
    memory = controller.policy.memory
    policy = CandidatePolicy(
        NAMES, spaces.Discrete(11), lambda _: 1e-3, memory=memory, config=replace(arguments.network, greedy_weight=5.0)
    )
    states = walk(process)
    names = named(controller, states, PriceScale.of(process))
    mode = policy.get_distribution(names).mode()
    gaining = [place for place, state in enumerate(states) if state.saving_ms.max() > 0.5 * states[0].saving_ms.max()]
    assert gaining
    assert all(states[place].saving_ms[mode[place]] == states[place].saving_ms.max() for place in gaining)

    values, log_probability, entropy = policy.evaluate_actions(names, mode)
    (values.sum() + log_probability.sum() + entropy.sum()).backward()
    silent = [name for name, p in policy.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0]
    assert silent == []


def test_without_prices_the_graphs_alone_are_seen() -> None:
    """Two processes that price in opposite ways look alike."""
    process, controller = small_candidates(), untaught(replace(NETWORK, priced=False))
    assert controller.scale(process) is None
    states = walk(process)
    blind = controller.policy.distribution(named(controller, states, None)).log_probability
    batch, _ = controller.policy.memory.batch(named(controller, states, None), 10)
    assert (batch.saving == 0).all()
    assert (batch.cost == 0).all()
    seeing = distribution(controller, states, PriceScale.of(process)).log_probability
    assert not torch.allclose(blind, seeing)


@pytest.mark.parametrize("steps", [0, 2])
def test_where_nothing_can_be_done_it_stops(steps: int) -> None:
    process, controller = small_candidates(), untaught()
    state = changed(walk(process)[steps], ())
    found = distribution(controller, [state], PriceScale.of(process))
    assert found.mode().tolist() == [10]
    assert found.log_probability[0, -1] == 0.0
