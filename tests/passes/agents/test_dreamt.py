"""The world model of substitutions on words: its dream is enough to find the way that greedy search cannot see."""

from dataclasses import replace

import pytest
import torch
from support.pass_agents import DREAMT, EPISODE, dreamt

from rlflow.passes import search
from rlflow.passes.agents.playing import PlayConfig, play


@pytest.mark.slow
def test_what_was_learned_in_the_dream_holds_on_words() -> None:
    """On a word that no rollout began with, where greedy search removes nothing; no real step is taken for C.

    One seed of three is enough, since processors round otherwise and PPO may settle for less.
    """
    left = []
    for seed in range(3):
        transitions, agent = dreamt(seed)
        steps = transitions.hits + transitions.misses
        assert steps <= DREAMT.episodes * EPISODE.max_steps, "all real steps are those of the random episodes"
        start = transitions.start("ccc")
        assert search.greedy(transitions, start, max_passes=6).facts.operations == 3
        found = play(agent, transitions, "ccc", PlayConfig(), seed=0)
        assert search.sequence(transitions, start, found.passes).facts == found.facts
        assert agent.curve[-1] > agent.curve[0]
        left.append(found.facts.operations)
        if found.facts.operations == 0:
            break
    assert min(left) == 0


@pytest.mark.slow
def test_the_dream_is_judged_beside_the_last_known_state() -> None:
    _, agent = dreamt()
    nearest = agent.open_loop[1]
    assert nearest["cases"] > 0
    assert nearest["cost"] < nearest["cost_copy"], "it foresees what a pass does to the operation count"


def test_the_same_seed_gives_the_same_agent() -> None:
    brief = replace(
        DREAMT,
        episodes=6,
        world_model=replace(DREAMT.world_model, encoder_epochs=1, epochs=1),
        controller=replace(DREAMT.controller, total_steps=256),
    )

    def weights(seed: int) -> torch.Tensor:
        _, agent = dreamt(seed, brief)
        parts = (*agent.model.state_dict().values(), *agent.controller.policy.state_dict().values())
        return torch.cat([part.flatten().float() for part in parts])

    first = weights(1)
    assert torch.equal(first, weights(1))
    assert not torch.equal(first, weights(2))
