"""The controller on real graphs. Its weights are as they were initialised: what is tested must hold for any policy."""

import logging
from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from support import formulations
from support.formulations import LOCATIONS, few_rules, graph_level_agent, graph_level_search

from rlflow import zoo
from rlflow.agents.graph_level.controller import Controller
from rlflow.cost.analytic import AnalyticCost
from rlflow.cost.base import Cost
from rlflow.environments import EnvironmentConfig
from rlflow.errors import InputError
from rlflow.ir.graph import Graph
from rlflow.ir.structural_hash import structural_hash
from rlflow.method import Budget
from rlflow.onnx_io import from_onnx
from rlflow.ops.registry import OPERATORS
from rlflow.processes.process import ProcessState
from rlflow.representation.features import Featuriser, todays_vocabulary
from rlflow.rules.library import Library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.trajectory.replay import replay
from rlflow.world_model.graph_level.model import GraphLevelModel


@pytest.fixture(scope="module")
def bert() -> Graph:
    return formulations.bert()


@pytest.fixture(scope="module")
def rules() -> Library:
    return few_rules()


class Watched(AnalyticCost):
    """Remembers the runtime of every graph that it priced."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def cost(self, graph):
        cost = super().cost(graph)
        self.seen.append(cost.runtime_ms)
        return cost


def test_the_best_graph_of_all_episodes_is_returned(rules, bert):
    """Not the last: with these weights the last one is dearer, so returning it would fail."""
    model = Watched()
    result = graph_level_search(rules, cost_model=model).optimise(bert, Budget())
    assert result.best_ms == min(model.seen) == AnalyticCost().runtime_ms(result.best)
    assert result.start_ms == AnalyticCost().runtime_ms(bert) > result.best_ms
    assert model.seen[-1] > result.best_ms


def test_a_rule_that_is_switched_off_is_masked(rules, bert):
    """The policy keeps its rules; the library lacks one that it would have used."""
    free = graph_level_search(rules, sampled_episodes=5).optimise(bert, Budget())
    used = {s.rule for s in free.trajectory.steps}
    off = next(iter(sorted(used)))
    without = rules.without([off])
    result = graph_level_search(without, trained_on=rules, sampled_episodes=5).optimise(bert, Budget())
    assert result.effort.rewrites > 0
    assert off not in {s.rule for s in result.trajectory.steps}
    *_, last = replay(bert, result.trajectory, Rewriter(without.rules))
    assert structural_hash(last) == structural_hash(result.best)


def test_a_rule_that_was_never_seen_is_masked_with_a_warning(rules, bert, caplog):
    known = rules.without([rules.get("linear-to-gemm").id])
    with caplog.at_level(logging.WARNING):
        result = graph_level_search(rules, trained_on=known, sampled_episodes=5).optimise(bert, Budget())
    unseen = rules.get("linear-to-gemm").id
    assert unseen not in {s.rule for s in result.trajectory.steps}
    assert sum(unseen in record.getMessage() for record in caplog.records) == 1


def test_a_saved_agent_acts_the_same_after_an_operator_is_added(rules, bert, tmp_path, monkeypatch):
    """Same actions, and the same values to the bit. Not vacuous: read by today's numbers, the graph looks different."""
    before = graph_level_search(rules, sampled_episodes=2)
    arrays = Featuriser().arrays(bert)
    z = before.world_model.encoder.encode([arrays])
    result = before.optimise(bert, Budget())
    before.world_model.save(tmp_path)
    before.controller.save(tmp_path)
    monkeypatch.setitem(OPERATORS, "Abacus", replace(OPERATORS["Relu"], name="Abacus"))
    loaded, today = GraphLevelModel.load(tmp_path), Featuriser().arrays(bert)
    embedded = len(loaded.encoder.operator.weight)
    assert embedded == len(todays_vocabulary().operators) - 1
    assert torch.equal(loaded.encoder.encode([Featuriser(loaded.arguments.vocabulary).arrays(bert)]), z)
    assert not torch.equal(loaded.encoder.encode([replace(today, op=today.op.clip(max=embedded - 1))]), z)
    after = replace(
        graph_level_search(rules, sampled_episodes=2), world_model=loaded, controller=Controller.load(tmp_path)
    )
    again = after.optimise(bert, Budget())
    assert again.trajectory == result.trajectory
    assert (again.best_ms, again.effort.rewrites) == (result.best_ms, result.effort.rewrites)
    assert len(result.trajectory.steps) > 1


def test_an_agent_that_reads_a_feature_that_is_gone_is_refused(rules, bert):
    world_model, controller = graph_level_agent(rules)
    vocabulary = todays_vocabulary()
    renamed = replace(vocabulary, features=("age", *vocabulary.features[1:]))
    aged = GraphLevelModel(replace(world_model.arguments, vocabulary=renamed)).eval()
    with pytest.raises(InputError, match=r"feature age.*fit it again"):
        replace(graph_level_search(rules), world_model=aged, controller=controller).optimise(bert, Budget())


def test_rules_in_another_order_mean_the_same_rules(rules, bert):
    """By id, not by position: reversed, the same policy goes the same way."""
    backwards = rules.select([r.id for r in reversed(rules.rules)])
    straight = graph_level_search(rules).optimise(bert, Budget())
    other = graph_level_search(backwards, trained_on=rules).optimise(bert, Budget())
    assert straight.trajectory.steps == other.trajectory.steps
    assert len(straight.trajectory.steps) > 1


def test_a_controller_of_other_rules_is_refused(rules, bert):
    world_model, _ = graph_level_agent(rules)
    _, controller = graph_level_agent(rules.without([rules.rules[0].id]))
    mixed = replace(graph_level_search(rules), world_model=world_model, controller=controller)
    with pytest.raises(InputError, match="trained on different rules: train them together"):
        mixed.optimise(bert, Budget())


def test_it_starts_from_the_graph_that_was_given(rules, bert):
    """Training starts episodes behind random rewrites; an optimisation must not."""
    environment = EnvironmentConfig(max_locations=LOCATIONS, max_steps=12, start_rewrites=6)
    for seed in range(3):
        result = graph_level_search(rules, environment=environment, seed=seed).optimise(bert, Budget())
        assert result.start_ms == AnalyticCost().runtime_ms(bert)
        assert result.trajectory.start_hash == structural_hash(bert)


def test_a_graph_without_matches_is_returned_as_it_is(rules):
    graph = from_onnx(zoo.optimum("tiny_transpose"))
    result = graph_level_search(rules).optimise(graph, Budget())
    assert result.best is graph
    assert result.effort.rewrites == 0


class ArbitraryCost(AnalyticCost):
    """No two graphs cost the same, so that every choice of a location shows."""

    def runtime_ms(self, graph: Graph) -> float:
        return 1.0 + int(structural_hash(graph)[:6], 16) / 16**6

    def cost(self, graph: Graph) -> Cost:
        return replace(super().cost(graph), runtime_ms=self.runtime_ms(graph))


@pytest.mark.parametrize("weights", range(4))
def test_of_the_candidates_the_cheapest_is_taken(rules, bert, weights):
    """With all rewrites as candidates this is greedy search, until nothing saves any more: then the policy decides."""
    cost_model, rewriter = ArbitraryCost(), Rewriter(rules.rules)
    every = LOCATIONS * len(rules.rules)
    method = graph_level_search(rules, cost_model=cost_model, candidates=every, weights=weights)
    work = method.begin(bert, Budget())
    player, visited = method.player(work, work.start), list[ProcessState]()
    observe = player.process.observe
    player.process = player.process.observed_by(lambda state: visited.append(state) or observe(state))
    player.play(None, every)
    chosen = declined = 0
    dearest = 0.0
    for before, after in pairwise(visited):
        matches = [m for found in rewriter.matches(before.graph) for m in found[:LOCATIONS]]
        costs = [cost_model.runtime_ms(rewriter.apply(before.graph, m)) for m in matches]
        if min(costs) < before.runtime_ms:
            chosen += 1
            assert after.runtime_ms == min(costs)
            dearest = max(dearest, max(costs) - min(costs))
        else:
            declined += 1
    assert chosen > 2
    assert declined > 0
    assert dearest > 0
