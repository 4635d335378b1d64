"""Candidates as they are observed: graphs without padding, and the number of rewrites that are none."""

import numpy as np
from support.formulations import candidate_env
from support.token_worlds import small_graph
from support.walks import REWRITER

from rlflow.environments import CandidateConfig


def test_what_is_observed_says_what_there_is() -> None:
    env, rng = candidate_env(), np.random.default_rng(0)
    observation, _ = env.reset(seed=0)
    for _ in range(4):
        state = env.process.at(env.graph)
        assert len(observation["candidates"]) == len(state.candidates) == env.action_masks().sum() - 1
        shown = [observation["current"], *observation["candidates"]]
        for graph, instance in zip([env.graph, *state.graphs], shown, strict=True):
            assert len(instance.nodes) == len(graph.inputs) + len(graph.order)
            assert len(instance.edges) == len(instance.edge_links) == len(graph.layout.operands)
        observation, *_ = env.step(int(rng.choice(np.flatnonzero(env.action_masks()[:-1]))))


def test_what_is_cut_off_is_counted() -> None:
    """K = 3 of many, and K enough for all; a merged rewrite is counted as alike."""
    few, all_of_them = (candidate_env(config=CandidateConfig(max_candidates=number)) for number in (3, 5000))
    counts = sum(REWRITER.matches(small_graph()).counts)
    for env in (few, all_of_them):
        _, info = env.reset()
        shown = int(env.action_masks().sum()) - 1
        assert shown + info["matches_beyond_limit"] + info["matches_alike"] == counts
    assert few.reset()[1]["matches_beyond_limit"] > 0
    assert all_of_them.reset()[1]["matches_beyond_limit"] == 0
