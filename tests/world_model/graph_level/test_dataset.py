"""Episodes become padded tensors without losing or inventing a step."""

from itertools import pairwise

import torch

from rlflow.representation.rollouts import Rollouts
from rlflow.world_model.graph_level.dataset import pad_episodes


def test_padding_is_marked_and_repeats_the_last_state(rollouts: Rollouts) -> None:
    sequences = pad_episodes(rollouts.episodes)
    for row, episode in enumerate(rollouts.episodes):
        steps = episode.num_steps
        assert sequences.valid[row].tolist() == [t < steps for t in range(sequences.num_steps)]
        assert sequences.graph_index[row, : steps + 1].tolist() == episode.graph_index.tolist()
        assert (sequences.counts[row, steps:] == torch.from_numpy(episode.counts[-1])).all()
        assert sequences.reward[row, :steps].tolist() == episode.reward.tolist()
    assert not sequences.valid.all()


def test_transitions_are_the_differences_of_the_states(rollouts: Rollouts) -> None:
    latents = torch.randn(len(rollouts.graphs), 3)
    state, change = pad_episodes(rollouts.episodes).valid_transitions(latents)
    assert len(change.reward) == rollouts.num_steps
    first = rollouts.episodes[0]
    steps = first.num_steps
    visited = latents[torch.from_numpy(first.graph_index)]
    torch.testing.assert_close(change.latent[:steps], visited[1:] - visited[:-1])
    torch.testing.assert_close(state.z[:steps], visited[:-1])
    torch.testing.assert_close(change.counts[:steps], torch.from_numpy(first.counts).diff(dim=0).float())
    torch.testing.assert_close(change.cost[:steps], torch.from_numpy(first.cost).diff())


def test_chunks_cover_every_step_once(rollouts: Rollouts) -> None:
    sequences = pad_episodes(rollouts.episodes)
    chunks = list(sequences.chunks(4))
    assert torch.equal(torch.cat([chunk.action for chunk in chunks], dim=1), sequences.action)
    assert all(torch.equal(one.cost[:, -1], two.cost[:, 0]) for one, two in pairwise(chunks))
