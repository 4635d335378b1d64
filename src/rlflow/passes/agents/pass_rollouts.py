"""Random episodes of pass ordering in the form in which the paper's world model reads episodes of substitutions.

    rollouts = collect(transitions, sources, episode, episodes=96, seed=0)
    model = fit_world_model(rollouts, GraphLevelModelConfig(), seed=0)

A pass stands where a rule does, and has one location: a program as a whole. It "matches" as long as it is not known to
change nothing, as the environment masks it. The cost is the operation count in percent of the start's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import blake2b

import numpy as np

from rlflow.agents.random_agent import RandomAgent, Stepped, play
from rlflow.passes.environment.pass_ordering_env import PassOrderingConfig, PassOrderingEnv
from rlflow.passes.transitions import Transitions
from rlflow.representation.action_space import ActionSpace
from rlflow.representation.rollouts import Episode, GraphBank, Rollouts


def collect(
    transitions: Transitions,
    sources: Sequence[str],
    episode: PassOrderingConfig,
    *,
    episodes: int,
    seed: int,
    on_progress: Callable[[float, str], None] | None = None,
) -> Rollouts:
    """Play random episodes to their horizon, each from a source that is drawn; the same seed gives the same ones."""
    env = PassOrderingEnv(transitions, sources, config=replace(episode, observation=("progress",)))
    actions = ActionSpace(len(env.passes), max_locations=1)
    agent, draw = RandomAgent(actions), np.random.default_rng(seed)
    bank, played = GraphBank(), list[Episode]()
    for number in range(episodes):
        played.append(_played(env, agent, bank, draw))
        if on_progress is not None:
            on_progress((number + 1) / episodes, f"{len(bank.graphs)} programs")
    return Rollouts(
        graphs=tuple(bank.graphs),
        episodes=tuple(played),
        action_space=actions,
        rule_ids=env.passes,
        vocabulary=env.vocabulary,
        library_hash=blake2b(repr((env.catalogue.name, env.passes)).encode(), digest_size=16).hexdigest(),
    )


def counts_of(env: PassOrderingEnv) -> np.ndarray:
    """The matches of each pass, (R,) int64: 1, or 0 where it is known to change nothing."""
    return env.action_masks()[:-1].astype(np.int64)


def cost_percent(env: PassOrderingEnv) -> float:
    """The present operation count in percent of the start's."""
    return 100.0 * env.facts.operations / max(env.start_facts.operations, 1)


def _played(env: PassOrderingEnv, agent: RandomAgent, bank: GraphBank, draw: np.random.Generator) -> Episode:
    """Play one episode, and add its programs to the bank."""

    def observe() -> tuple[int, np.ndarray, float]:
        return bank.place(env.facts.key, env.graph_arrays), counts_of(env), cost_percent(env)

    def step(action: tuple[int, int]) -> Stepped:
        _, reward, terminated, truncated, _ = env.step(action[0])
        return Stepped(reward, terminated, truncated)

    env.reset(seed=int(draw.integers(2**31)))
    return play(agent, agent.draw_rule_weights(draw), observe, step, draw)
