"""Classes of matches as actions: what is observed of them in both ways, what is left out, what is remembered."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from support.formulations import match_class_env

from rlflow.environments import SUBSTITUTION, MatchClassConfig, MatchClassEnv, match_class_process
from rlflow.environments.class_observations import CHOICE_FEATURES


def made(**settings: Any) -> MatchClassEnv:
    env = gymnasium.make(SUBSTITUTION, **{"model": "tiny_merge"} | settings).unwrapped
    assert isinstance(env, MatchClassEnv)
    return env


def test_a_table_in_closed_form() -> None:
    """Three MatMuls of x: of six ordered pairs, which cannot be taken beside each other, and of all three."""
    env = made(rules=["merge-2-matmuls", "merge-3-matmuls"])
    observation, info = env.reset()
    pair, triple = (dict(zip(CHOICE_FEATURES, row, strict=True)) for row in observation["choices"][:2].tolist())
    assert (pair["rule"], triple["rule"]) == (0.5, 1.0)
    assert pair["matches"] == triple["matches"] == pair["distance"] == triple["distance"] == 1.0
    assert triple["saving_percent"] == pytest.approx(17.5308642)
    assert (triple["removed"], triple["added"]) == (3 / 4, 2 / 4)
    assert (pair["removed"], pair["added"]) == (2 / 4, 2 / 4)
    assert not observation["choices"][2:].any()
    assert observation["action_mask"].tolist() == [1, 1] + [0] * 126 + [1]
    assert observation["cost"].tolist() == [100.0]
    assert info["choices_beyond_limit"] == 0
    after, reward, *_ = env.step(1)
    assert reward == pytest.approx(triple["saving_percent"])
    assert after["cost"].item() == pytest.approx(100.0 - reward)


def test_the_graph_tells_the_same_and_of_what_the_choices_take() -> None:
    """Along an episode: rows of choices, edges of the graph with their operands, and edges from what is matched."""
    table, graph = match_class_env(), match_class_env(config=MatchClassConfig(observation="graph"))
    listed, _ = table.reset()
    drawn, _ = graph.reset()
    rng, width = np.random.default_rng(0), len(CHOICE_FEATURES)
    for _ in range(5):
        present, choices = graph.graph, int(listed["action_mask"].sum()) - 1
        operators = len(present.inputs) + len(present.order)
        assert len(drawn.nodes) == operators + choices + 1
        assert (drawn.nodes[:operators, 0] > 0).all()
        assert not drawn.nodes[operators:, 0].any()
        assert np.array_equal(drawn.nodes[operators:-1, -1 - width : -1], listed["choices"][:choices])
        assert drawn.nodes[-1, -1] == listed["cost"].item()
        assert not drawn.nodes[-1, :-1].any()

        is_match = drawn.edges[:, 1] == 1.0
        identifiers = (*present.inputs, *present.order)
        expected = {
            (identifiers.index(node), operators + choice)
            for choice, match_class in enumerate(graph.process.shown(graph.state).tolist())
            for number in np.flatnonzero(graph.state.classes.token_of == match_class).tolist()
            for node in graph.state.match(number).nodes
        }
        assert {tuple(link) for link in drawn.edge_links[is_match].tolist()} == expected
        for (sender, reader), (operand, _) in zip(drawn.edge_links[~is_match], drawn.edges[~is_match], strict=True):
            read = [i for i in present.nodes[identifiers[reader]].sources if not present.nodes[i].constant]
            assert list(dict.fromkeys(read))[int(operand)] == identifiers[sender]

        action = int(rng.integers(choices))
        listed, drawn = table.step(action)[0], graph.step(action)[0]


def test_what_lies_beyond_the_limit_is_counted_and_refused() -> None:
    few, all_of_them = (match_class_env(config=MatchClassConfig(max_choices=number)) for number in (3, 500))
    _, info = few.reset()
    _, whole = all_of_them.reset()
    assert info["choices_beyond_limit"] + 3 == whole["action_mask"].sum() - 1 > 10
    assert info["action_mask"].tolist() == [1, 1, 1, 1]
    assert whole["choices_beyond_limit"] == 0
    assert few.step(3)[2]


@pytest.mark.parametrize("model", ["tiny_chain", "tiny_scale"])
def test_what_is_remembered_of_other_episodes_does_not_show(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawn episodes on a small graph, which come by the same states, with memory and as good as without."""
    remembering = made(model=model, max_steps=8)
    monkeypatch.setattr(match_class_process, "_MOST_NODES", 0)
    forgetful = made(model=model, max_steps=8)
    rng = np.random.default_rng(0)
    for _ in range(15):
        told = [env.reset()[0] for env in (remembering, forgetful)]
        ended = False
        while not ended:
            assert all(np.array_equal(told[0][name], told[1][name]) for name in told[0])
            allowed = np.flatnonzero(told[0]["action_mask"][:-1])
            action = int(rng.choice(allowed)) if allowed.size else remembering.terminate
            steps = [env.step(action) for env in (remembering, forgetful)]
            assert steps[0][1:4] == steps[1][1:4]
            told, ended = [step[0] for step in steps], steps[0][2] or steps[0][3]
        assert remembering.trajectory() == forgetful.trajectory()
    carried_out = [env.process.evaluator.effort.rewrites for env in (remembering, forgetful)]
    assert carried_out[0] < carried_out[1]
