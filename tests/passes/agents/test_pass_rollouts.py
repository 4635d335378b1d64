"""Random episodes on words as rollouts: what they say of programs, masks and costs is what the environment says."""

import numpy as np
from support.pass_agents import EPISODE
from support.toy_compiler import SafeToyCompiler

from rlflow.passes.agents.pass_rollouts import collect
from rlflow.passes.transitions import Transitions
from rlflow.representation.rollouts import Rollouts


def collected(seed: int = 0) -> Rollouts:
    return collect(Transitions(SafeToyCompiler()), ["cc", "cab"], EPISODE, episodes=8, seed=seed)


def test_rollouts_tell_what_happened() -> None:
    """Rewards telescope to the change of the cost, and a graph has a node for each letter and the start."""
    rollouts = collected()
    assert rollouts.rule_ids == ("cancel", "swap", "expand")
    assert rollouts.num_steps == 8 * EPISODE.max_steps
    changed = unchanged = 0
    for episode in rollouts.episodes:
        assert np.allclose(np.diff(episode.cost), -episode.reward)
        nodes = np.array([rollouts.graphs[place].num_nodes for place in episode.graph_index])
        letters = nodes - 1
        assert np.allclose(100.0 * letters / letters[0], episode.cost)
        for step, (rule, location) in enumerate(episode.action):
            assert location == 0
            assert episode.counts[step, rule] == 1, "a pass that is known to change nothing is not drawn"
            if episode.graph_index[step] == episode.graph_index[step + 1]:
                assert episode.counts[step + 1, rule] == 0
                unchanged += 1
            else:
                assert (episode.counts[step + 1] == 1).all(), "another program: everything is open again"
                changed += 1
    assert changed > 0
    assert unchanged > 0


def test_the_same_seed_gives_the_same_rollouts() -> None:
    first, again, other = (np.concatenate([e.action for e in collected(seed).episodes]) for seed in (3, 3, 4))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
