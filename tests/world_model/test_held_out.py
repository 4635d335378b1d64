"""Some episodes are never trained on, always the same ones."""

from rlflow.world_model.held_out import split_episodes


def test_the_split_is_by_episode_seeded_and_disjoint() -> None:
    training, held_out = split_episodes(range(20), 0.2, seed=0)
    assert sorted(training + held_out) == list(range(20))
    assert len(held_out) == 4
    assert (training, held_out) == split_episodes(range(20), 0.2, seed=0) != split_episodes(range(20), 0.2, seed=1)
    assert split_episodes(range(2), 0.01, seed=0)[1] != []
    assert split_episodes(range(3), 0.0, seed=0)[1] == []
