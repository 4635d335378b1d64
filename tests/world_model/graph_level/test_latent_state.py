"""One observation, whether dreamt or real."""

import numpy as np
import torch
from support.token_env import TokenEnv

from rlflow.representation.rollouts import Rollouts
from rlflow.world_model.graph_level.dream_env import visited_states
from rlflow.world_model.graph_level.latent_state import ObservationLayout, advance, begin, layout_of
from rlflow.world_model.graph_level.mdn_rnn import State
from rlflow.world_model.graph_level.model import GraphLevelModel


def test_split_undoes_flatten() -> None:
    layout = ObservationLayout(latent=2, hidden=3, num_rules=4)
    state = State(torch.randn(5, 2), torch.rand(5, 4), torch.rand(5))
    h = torch.randn(5, 3)
    flat = layout.flatten(state, (h, torch.randn(5, 3)))
    assert flat.shape == (5, layout.size) == (5, 10)
    z, hidden, counts, cost = layout.split(flat)
    for got, expected in ((z, state.z), (hidden, h), (counts, state.counts), (cost[:, 0], state.cost)):
        assert torch.equal(got, expected)


def test_walking_a_real_episode_gives_the_dreams_start_states(world_model: GraphLevelModel, rollouts: Rollouts) -> None:
    """The tracker on the real graph and the replay behind `GraphLevelDreamEnv` must be one thing: same z, h, counts,
    cost. A second and later state has h != 0, so a memory that is never advanced would be noticed."""
    starts, layout = visited_states(world_model, rollouts), layout_of(world_model)
    dreamt = layout.flatten(starts.state, starts.hidden).numpy()
    lengths = [episode.num_steps for episode in rollouts.episodes]
    number = int(np.argmax(lengths))
    longest, offset = rollouts.episodes[number], sum(lengths[:number])
    assert longest.num_steps > 5
    visited = [rollouts.graphs[i] for i in longest.graph_index]
    real = begin(world_model, visited[0], longest.counts[0], float(longest.cost[0]))
    for time in range(longest.num_steps):
        np.testing.assert_allclose(real.observation(layout), dreamt[offset + time], rtol=1e-4, atol=1e-4)
        rule, location = longest.action[time]
        real = advance(
            world_model,
            real,
            (int(rule), int(location)),
            visited[time + 1],
            longest.counts[time + 1],
            float(longest.cost[time + 1]),
        )
    assert np.abs(dreamt[offset + 1, layout.latent : layout.latent + layout.hidden]).max() > 0


def test_matches_beyond_l_are_capped(world_model: GraphLevelModel) -> None:
    env = TokenEnv(layers=2, max_locations=8)
    env.reset()
    state = begin(world_model, env.arrays(), np.full(len(env.rules), 99), 100.0)
    assert state.state.counts.max() == 8
