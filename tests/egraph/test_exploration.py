"""An exploration uses what pays, a little that does not, and ends as it says."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from support.egraph_values import assert_members_agree
from support.strategies import graphs, source, weight

from rlflow import zoo
from rlflow.cost.analytic import AnalyticCost
from rlflow.egraph.exploration import TENSAT, Exploration, ExplorationConfig, explore
from rlflow.egraph.matching import EMatcher
from rlflow.egraph.model_egraph import ModelEGraph
from rlflow.egraph.prices import NodePrices
from rlflow.errors import InputError
from rlflow.ir import Graph, Header, Ref, make_graph
from rlflow.onnx_io import from_onnx
from rlflow.ops import registry
from rlflow.rules import library
from rlflow.rules.rule import rule_from_json

DECLARED = [rule for rule in library.load().rules if rule.is_declared]
SMALL_BERT = {"layers": 1, "hidden": 32, "heads": 2, "intermediate": 64, "sequence": 8, "vocabulary": 50}


def matcher(rules=DECLARED, header: Header | None = None) -> EMatcher:
    header = header or Header(17)
    return EMatcher(rules, header, NodePrices(AnalyticCost(), header))


ALL = matcher()


@pytest.fixture(scope="module")
def bert() -> Graph:
    return from_onnx(zoo.build("bert", **SMALL_BERT, positions=16, head="cls"))


@pytest.fixture(scope="module")
def matches(bert: Graph) -> EMatcher:
    return matcher(header=bert.header)


@pytest.fixture(scope="module")
def explored(bert: Graph, matches: EMatcher) -> tuple[ModelEGraph, Exploration]:
    """The e-graph without any limit that ends it, and the report."""
    egraph = ModelEGraph.from_graph(bert)
    return egraph, explore(egraph, matches, ExplorationConfig())


def rule(source: list, target: list):
    return rule_from_json("drawn up", "test", source, target)


def one_relu() -> ModelEGraph:
    nodes = [source((2, 2), "x")]
    nodes.append(registry.apply("Relu", {}, [(Ref(0), nodes[0].types[0], False)]))
    return ModelEGraph.from_graph(make_graph(dict(enumerate(nodes)), [0], [Ref(1)], ["y"], Header(17)))


def test_a_detour_is_taken_if_it_costs_no_more_than_the_slack() -> None:
    """Neg twice costs a launch, 2 us, more than Relu, and the traffic of one; three times is a launch more again."""
    dearer = rule([["Relu", "a"]], [["Neg", ["Neg", "a"]]])
    pays_then = rule([["Neg", ["Neg", "a"]]], [["Tanh", "a"]])
    for slack_us, uses in ((1.9, 0), (2.1, 2), (None, 2)):
        explored = explore(one_relu(), matcher([dearer, pays_then]), ExplorationConfig(slack_us=slack_us))
        assert sum(explored.uses.values()) == uses
        assert not explored.limited_by
        assert explored.nodes == 2 + (3 if uses else 0)


def test_no_more_of_a_rule_in_one_wide_pass_than_allowed() -> None:
    """All are taken in the end, the cheapest first."""
    nodes = [source((size, 2), f"x{size}") for size in (3, 1, 2)]
    nodes += [registry.apply("Relu", {}, [(Ref(i), nodes[i].types[0], False)]) for i in range(3)]
    graph = make_graph(dict(enumerate(nodes)), [0, 1, 2], [Ref(3), Ref(4), Ref(5)], list("abc"), Header(17))
    dearer = rule([["Relu", "a"]], [["Neg", ["Neg", "a"]]])
    egraph = ModelEGraph.from_graph(graph)
    explored = explore(egraph, matcher([dearer]), ExplorationConfig(per_rule=1))
    assert (explored.rounds, explored.passes) == (3, 3)
    sizes = [egraph.type_of(use.roots[0]).shape[0] for use in egraph.uses]
    assert sizes == [1, 2, 3]


def test_operators_are_put_in_another_order_only_in_wide_passes() -> None:
    """Otherwise associativity alone would fill an e-graph."""
    nodes = [source((2, 2), name) for name in "xyz"]
    for operands in ((1, 2), (0, 3)):
        nodes.append(registry.apply("Add", {}, [(Ref(i), nodes[i].types[0], False) for i in operands]))
    graph = make_graph(dict(enumerate(nodes)), [0, 1, 2], [Ref(4)], ["s"], Header(17))
    associate = rule([["Add", "a", ["Add", "b", "c"]]], [["Add", ["Add", "a", "b"], "c"]])
    explored = explore(ModelEGraph.from_graph(graph), matcher([associate]), ExplorationConfig(per_rule=1))
    assert explored.passes == 1
    assert explored.rounds == 2, "the second time nothing new comes of it"


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"max_nodes": 60}, "nodes"),
        ({"max_passes": 2}, "passes"),
        ({"max_uses": 7}, "uses"),
        ({"is_over": True}, "time"),
    ],
)
def test_a_limit_ends_it_and_is_told(bert: Graph, matches: EMatcher, limits: dict, expected: str) -> None:
    is_over = "is_over" in limits
    config = replace(ExplorationConfig(), **{name: limit for name, limit in limits.items() if name != "is_over"})
    egraph = ModelEGraph.from_graph(bert)
    explored = explore(egraph, matches, config, lambda: is_over)
    assert explored.limited_by == expected
    assert explored.nodes == len(egraph)
    assert sum(explored.uses.values()) == len(egraph.uses)


@pytest.mark.parametrize("most", [0, 1, 7])
def test_rules_are_used_so_often_and_no_more(
    bert: Graph, matches: EMatcher, explored: tuple[ModelEGraph, Exploration], most: int
) -> None:
    """Without the limit they would be used more often."""
    limited = explore(ModelEGraph.from_graph(bert), matches, ExplorationConfig(max_uses=most))
    assert sum(limited.uses.values()) == most < sum(explored[1].uses.values())


def test_saturated_means_that_nothing_new_is_left_within_the_slack(
    matches: EMatcher, explored: tuple[ModelEGraph, Exploration]
) -> None:
    egraph, report = explored
    config = ExplorationConfig()
    assert not report.limited_by
    assert report.nodes == len(egraph)
    left = [m for m in matches.everywhere(egraph) if m.pays or m.extra_ms <= config.slack_us / 1e3]
    assert left
    assert not [match.rule.name for match in left if match.applied(egraph)]
    again = explore(egraph, matches, replace(config, multi_root_rounds=0))
    assert (again.uses, again.limited_by) == ({}, "")


def test_rules_with_several_roots_are_used_in_the_first_rounds_alone() -> None:
    """And what one has led to is not merged again in the same round: three products are merged at most once."""
    nodes = [source((2, 2), "x")]
    nodes += [weight(np.full((2, 2), i, np.float32)) for i in range(3)]
    nodes += [
        registry.apply("MatMul", {}, [(Ref(0), nodes[0].types[0], False), (Ref(i), nodes[i].types[0], True)])
        for i in (1, 2, 3)
    ]
    graph = make_graph(dict(enumerate(nodes)), [0], [Ref(4), Ref(5), Ref(6)], list("abc"), Header(17))
    merges = [r for r in DECLARED if r.name in ("merge-2-matmuls", "merge-3-matmuls")]
    uses = []
    for rounds in (0, 1, 2):
        egraph = ModelEGraph.from_graph(graph)
        explored = explore(egraph, matcher(merges), ExplorationConfig(multi_root_rounds=rounds, max_nodes=500))
        uses.append(sum(explored.uses.values()))
    assert uses[0] == 0
    assert uses[1] == 4, "three pairs and all three"
    assert uses[2] > uses[1]


def test_the_same_exploration_gives_the_same_e_graph(bert: Graph, explored: tuple[ModelEGraph, Exploration]) -> None:
    first, report = explored
    second = ModelEGraph.from_graph(bert)
    assert explore(second, matcher(header=bert.header), ExplorationConfig()).nodes_by_pass == report.nodes_by_pass
    assert report.passes > 3

    def written(egraph: ModelEGraph) -> list:
        return [(number, *egraph.node(number)[1:], egraph.find(number)) for number in egraph.applications()]

    assert written(first) == written(second)
    assert [use[1:] for use in first.uses] == [use[1:] for use in second.uses]


@given(graphs())
@settings(max_examples=15)
def test_the_members_of_a_class_compute_the_same(graph: Graph) -> None:
    egraph = ModelEGraph.from_graph(graph)
    explore(egraph, ALL, ExplorationConfig(max_nodes=150))
    assert_members_agree(egraph, graph, np.random.default_rng(0))


def test_the_members_of_a_class_compute_the_same_in_a_model() -> None:
    graph = from_onnx(zoo.build("tiny_merge"))
    egraph = ModelEGraph.from_graph(graph)
    explore(egraph, matcher(header=graph.header), ExplorationConfig(slack_us=50.0))
    assert len(egraph.uses) > 3
    assert assert_members_agree(egraph, graph, np.random.default_rng(0)) > len(graph.order)


def test_a_model_with_a_loop_is_explored_around_it() -> None:
    graph = from_onnx(zoo.build("loop"))
    egraph = ModelEGraph.from_graph(graph)
    explored = explore(egraph, matcher(header=graph.header), ExplorationConfig(slack_us=50.0))
    assert explored.uses
    assert not explored.limited_by


def test_tensats_settings_use_every_match_and_keep_no_cycle() -> None:
    """Five launches for one are too many for the guard; a value in terms of itself is a cycle."""
    dear = rule([["Relu", "a"]], [["Neg", ["Neg", ["Neg", ["Neg", ["Neg", "a"]]]]]])
    circular = rule([["Relu", "a"]], [["Relu", ["Relu", "a"]]])
    guarded, free = one_relu(), one_relu()
    assert not explore(guarded, matcher([dear]), ExplorationConfig()).uses
    explored = explore(free, matcher([dear, circular]), TENSAT)
    assert not explored.limited_by
    assert set(explored.uses) == {dear.id, circular.id}
    assert len(free.filtered) == 1


@pytest.mark.parametrize(
    "setting",
    [
        {"slack_us": -1.0},
        {"per_rule": 0},
        {"multi_root_rounds": -1},
        {"max_nodes": 0},
        {"max_passes": 0},
        {"max_uses": -1},
    ],
)
def test_a_setting_out_of_range_is_refused(setting: dict) -> None:
    with pytest.raises(InputError, match=next(iter(setting))):
        ExplorationConfig(**setting)
