"""Random search is seeded, starts again after an episode, and needs a budget."""

import pytest
from support.searches import make

from rlflow.errors import InputError
from rlflow.method import Budget


def test_random_search_is_seeded(shipped, bert):
    """Different seeds go different ways, of which two may have the same best part."""
    found = {
        make("random", shipped, seed=seed).optimise(bert, Budget(expansions=40)).trajectory.steps for seed in range(4)
    }
    assert len(found) >= 3


def test_random_search_starts_again_after_an_episode(shipped, bert):
    """Episodes of 3 rewrites: no way to the best graph is longer, though 60 rewrites were made."""
    result = make("random", shipped, episode_steps=3).optimise(bert, Budget(expansions=60))
    assert 1 <= len(result.trajectory.steps) <= 3


def test_random_search_without_a_budget_is_refused(shipped, bert):
    with pytest.raises(InputError, match="random search needs a budget"):
        make("random", shipped).optimise(bert, Budget())
