"""What a controller sees of a real graph is what a dream shows of the same state."""

import numpy as np
import torch
from support.formulations import token_model
from support.token_worlds import SMALL, small_process

from rlflow.agents.match_level.match_level_process import MatchLevelProcess
from rlflow.agents.token_collection import state_of
from rlflow.representation.token_batch import TokenTable
from rlflow.representation.token_rollouts import FAR_AWAY, TokenEpisode, TokenStep
from rlflow.representation.token_shards import TokenBank
from rlflow.world_model.match_level.observation import TokenLayout
from rlflow.world_model.match_level.starts import visited_states


def test_it_is_the_dream_s_view_of_the_states_of_an_episode() -> None:
    """The classes may come in another order. Not vacuous: after its first step some classes of the episode are near."""
    process, seen, bank = small_process(), MatchLevelProcess(small_process(), token_model()), TokenBank()
    visited, steps, observed = [process.start()], list[TokenStep](), [seen.start()]
    for place in (1, 2, 0, 1):
        state, step, _ = process.step(visited[-1], place)
        visited.append(state)
        steps.append(step)
        observed.append(seen.step(observed[-1], place))
    states = tuple(state_of(state, bank) for state in visited)
    episode = TokenEpisode(0, process.unit_percent, states, tuple(steps), terminated=True)

    reading = token_model().encoder.read(TokenTable(bank.tokens))
    layout = TokenLayout(200, SMALL.encoder_width)
    dreamt = visited_states([episode], 200).states
    for place, state in enumerate(episode.states[:-1]):
        share = torch.ones(len(bank.tokens))
        share[torch.from_numpy(state.token)] = torch.from_numpy(state.apart / state.count).float()
        looks = layout.looks(reading, share)
        view, choices = (
            layout.split(layout.flatten(dreamt.rows(torch.tensor([place])), looks)[0]),
            seen.choices(observed[place]),
        )
        real = TokenLayout(len(choices), SMALL.encoder_width).split(torch.from_numpy(seen.observe(observed[place])))
        np.testing.assert_allclose(_rows(real.classes), _rows(view.classes[view.present]), atol=1e-4)
        assert place or real.cost == view.cost  # a dream that begins later counts from there
    assert (observed[1].memory.near < FAR_AWAY).any()


def test_no_kind_is_near_before_the_first_step() -> None:
    start = MatchLevelProcess(small_process(), token_model()).start()
    assert len(start.memory.token) > 3
    assert (start.memory.near == FAR_AWAY).all()
    assert start.percent == start.memory.begun


def test_tokens_keep_their_numbers_from_episode_to_episode() -> None:
    process = MatchLevelProcess(small_process(), token_model())
    first = process.start()
    again, other = (process.step(first, place).memory.token for place in (0, 0))
    np.testing.assert_array_equal(again, other)
    assert len({*first.memory.token.tolist()}) == len(first.memory.token)


def test_of_many_kinds_those_next_to_the_last_rewrite_are_shown() -> None:
    """A policy that sees eight classes sees eight of the nearest; of the others it can do none."""
    process, checked = MatchLevelProcess(small_process(), token_model(), max_kinds=8), 0
    layout = TokenLayout(8, SMALL.encoder_width)
    state = process.start()
    for place in range(6):
        state = process.step(state, place)
        near, shown = state.memory.near, process.shown(state)
        present = layout.split(torch.from_numpy(process.observe(state))).present
        assert present.sum() == len(shown) == min(8, len(near))
        assert sorted(near[shown]) == sorted(near)[:8]
        checked += len(near) > 8
    assert checked > 3


def _rows(classes: torch.Tensor) -> np.ndarray:
    """The rows of classes, in an order that does not depend on theirs."""
    rows = np.round(classes.detach().numpy().astype(np.float64), 4)
    return rows[np.lexsort(rows.T)]
