"""What a controller sees of a real graph is what a dream shows of the same state."""

import numpy as np
import pytest
import torch
from support.token_worlds import SMALL, small_process, small_token_rollouts

from rlflow.agents.token_collection import state_of
from rlflow.agents.tokens.real_observation import RealObserver
from rlflow.representation.token_rollouts import FAR_AWAY, TokenEpisode, TokenStep
from rlflow.representation.token_shards import TokenBank
from rlflow.world_model.tokens.model import TokenModelArguments, TokenWorldModel
from rlflow.world_model.tokens.observation import TokenLayout
from rlflow.world_model.tokens.starts import visited_states
from rlflow.world_model.tokens.token_batch import TokenTable


@pytest.fixture(scope="module")
def model() -> TokenWorldModel:
    rollouts = small_token_rollouts()
    torch.manual_seed(0)
    return TokenWorldModel(TokenModelArguments(rollouts.vocabulary, rollouts.library_hash, SMALL)).eval()


def test_it_is_the_dream_s_view_of_the_states_of_an_episode(model: TokenWorldModel) -> None:
    """The kinds may come in another order. Not vacuous: after its first step some kinds of the episode are near."""
    process, observer, bank = small_process(), RealObserver(model), TokenBank()
    situations, steps = [process.start()], list[TokenStep]()
    seen = [observer.first(situations[0])]
    for _ in range(4):
        situation, step = process.step(situations[-1], len(situations) % 3)
        situations.append(situation)
        steps.append(step)
        seen.append(observer.after(seen[-1], step, situation))
    states = tuple(state_of(situation, bank) for situation in situations)
    episode = TokenEpisode(0, process.unit_percent, states, tuple(steps), terminated=True)

    reading = model.encoder.read(TokenTable(bank.tokens))
    layout = TokenLayout(200, SMALL.encoder_width)
    dreamt = layout.flatten(visited_states([episode], 200).states, layout.looks(reading.embedding, reading.saving))
    for place in range(len(steps)):
        view = layout.split(dreamt[place])
        observation = torch.from_numpy(observer.observation(seen[place], process.unit_percent))
        real = TokenLayout(len(seen[place].token), SMALL.encoder_width).split(observation)
        np.testing.assert_allclose(_rows(real.kinds), _rows(view.kinds[view.present]), atol=1e-4)
        assert place or real.cost == view.cost  # a dream that begins later counts from there
    assert (seen[1].near < FAR_AWAY).any()


def test_no_kind_is_near_before_the_first_step(model: TokenWorldModel) -> None:
    seen = RealObserver(model).first(small_process().start())
    assert len(seen.token) > 3
    assert (seen.near == FAR_AWAY).all()
    assert seen.cost == seen.begun


def test_tokens_keep_their_numbers_from_episode_to_episode(model: TokenWorldModel) -> None:
    process, observer = small_process(), RealObserver(model)
    situation = process.start()
    first = observer.first(situation)
    after, step = process.step(situation, 0)
    observer.after(first, step, after)
    again = observer.first(situation)
    np.testing.assert_array_equal(first.token, again.token)
    assert len(set(first.token.tolist())) == len(first.token)


def _rows(kinds: torch.Tensor) -> np.ndarray:
    """The rows of kinds, in an order that does not depend on theirs."""
    rows = np.round(kinds.detach().numpy().astype(np.float64), 4)
    return rows[np.lexsort(rows.T)]
