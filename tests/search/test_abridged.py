"""What is found in three layers is carried over to all that are alike, as rewrites of the whole graph."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from support.rewrites import assert_same_outputs
from support.searches import make

from rlflow import zoo
from rlflow.cost.analytic import AnalyticCost
from rlflow.ir.graph import Graph
from rlflow.ir.structural_hash import structural_hash
from rlflow.ir.validate import validate
from rlflow.method import Budget
from rlflow.onnx_io import from_onnx
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.search.abridged import abridged, carried_over, in_short
from rlflow.search.equality_saturation import equality_saturation
from rlflow.trajectory.replay import replay
from rlflow.zoo.builder import GraphBuilder

SMALL = {"hidden": 64, "heads": 2, "intermediate": 256, "sequence": 64, "vocabulary": 50, "positions": 64}
WHOLE_NODES = 160  # more than four layers


def bert(layers: int) -> Graph:
    return from_onnx(zoo.build("bert", layers=layers, **SMALL))


def residual(layers: int, *, outputs_of_layers: bool = False, reads_all: bool = False) -> Graph:
    """Layers x + Relu(T(T(x w))); with an output each, or all read at the end."""
    b = GraphBuilder("residual", seed=0, opset=17)
    x, made = b.input("x", (4, 8)), []
    for layer in range(layers):
        scope = f"layer_{layer}"
        product = b.node("MatMul", x, b.parameter(f"{scope}/w", (8, 8), std=0.1), scope=scope)
        for _ in range(2):
            product = b.node("Transpose", product, scope=scope, perm=[1, 0])
        x = b.node("Add", x, b.node("Relu", product, scope=scope), scope=scope)
        made.append(x)
    end = b.node("Concat", *made, scope="end", axis=0) if reads_all else b.node("Tanh", x, scope="end")
    b.output("y", end, (4 * layers if reads_all else 4, 8))
    if outputs_of_layers:
        for layer, value in enumerate(made[:-1]):
            b.output(f"y_{layer}", value, (4, 8))
    return from_onnx(b.finish())


def test_graphs_of_any_depth_are_the_same_in_short():
    """But for their weights, which types stand for here: as many nodes, and a right graph."""
    shallow, deep = (abridged(bert(layers)) for layers in (8, 16))
    assert len(shallow.graph.order) == len(deep.graph.order) < len(bert(5).order)
    assert len(deep.images) == len(shallow.images) + 8
    for short in (shallow, deep):
        validate(short.graph)


@pytest.mark.parametrize(
    "graph",
    [
        pytest.param(residual(3), id="three copies are kept"),
        pytest.param(residual(8, reads_all=True), id="what is left out would be read"),
        pytest.param(from_onnx(zoo.build("mlp")), id="nothing repeats"),
    ],
)
def test_what_cannot_be_told_in_short_is_left_as_it_is(graph):
    assert abridged(graph) is None


def test_outputs_of_layers_that_are_left_out_are_left_out():
    """As a decoder has, for its cache. Not vacuous: the ones of the layers that stay are there."""
    graph = residual(8, outputs_of_layers=True)
    short = abridged(graph)
    validate(short.graph)
    assert 3 <= len(short.graph.outputs) < len(graph.outputs) == 8


def test_chains_find_as_much_in_short(shipped):
    """What is found is a trajectory of the whole graph, which computes the same.

    Not vacuous: greedy search finds less.
    """
    graph = bert(8)
    whole, brief, greedy = (
        make(name, shipped, **options).optimise(graph, Budget())
        for name, options in (
            ("chains", {"whole_nodes": None}),
            ("chains", {"whole_nodes": WHOLE_NODES}),
            ("greedy", {}),
        )
    )
    assert greedy.best_ms > whole.best_ms * 1.005
    assert brief.best_ms == pytest.approx(whole.best_ms, rel=1e-9)
    *_, last = replay(graph, brief.trajectory, Rewriter(shipped.rules))
    assert structural_hash(last) == structural_hash(brief.best)
    assert_same_outputs(graph, last, np.random.default_rng(0))


def test_each_layer_saves_the_same_by_as_many_rewrites(shipped):
    """Depth costs nothing but the rewrites themselves."""
    found = [make("chains", shipped, whole_nodes=WHOLE_NODES).optimise(bert(n), Budget()) for n in (7, 10, 13)]
    saved_ms = [result.start_ms - result.best_ms for result in found]
    steps = [len(result.trajectory.steps) for result in found]
    assert np.diff(saved_ms)[0] == pytest.approx(np.diff(saved_ms)[1], rel=1e-6)
    assert np.diff(steps)[0] == np.diff(steps)[1] > 3 * 4
    assert saved_ms[0] > 2 * np.diff(saved_ms)[0], "seven layers save more than six do"
    looks = [result.expansions for result in found]
    assert looks[0] == looks[2]


def test_equality_saturation_finds_in_short_what_its_e_graph_has_no_room_for(shipped):
    """Without it the limit leaves the e-graph of twelve layers no room: what greedy search found is all.

    A layer then saves more than by greedy search, and nothing is proven of all.
    """
    graph = bert(12)
    settings = {"rounds": 1, "exploration": {"max_nodes": 800, "multi_root_rounds": 0}}

    def found(whole_nodes):
        method = equality_saturation(
            shipped, Rewriter(shipped.rules), AnalyticCost(), whole_nodes=whole_nodes, **settings
        )
        return method.optimise(graph, Budget())

    whole, brief = found(None), found(WHOLE_NODES)
    assert brief.best_ms < whole.best_ms * 0.99
    assert brief.optimality is not None
    assert (brief.optimality.proven, brief.optimality.bound_ms) == (False, 0.0)
    assert brief.optimality.limited_by == "nodes"
    prices_ms = [reached.runtime_ms for reached in brief.milestones]
    assert prices_ms[0] == brief.start_ms, "the graph in short is no milestone"
    assert prices_ms[-1] == brief.best_ms
    assert found(WHOLE_NODES).trajectory == brief.trajectory


def _carried(shipped, graph, **budget):
    """A workspace, what greedy search finds in short, and the graph in short."""
    search, short = make("greedy", shipped), abridged(graph)
    way = search.optimise(short.graph, Budget()).trajectory
    return search.begin(graph, Budget(**budget)), short, way


def test_every_copy_gets_the_rewrites_of_the_second(shipped):
    work, short, way = _carried(shipped, residual(9))
    state, refused = carried_over(work, work.start, short, way)
    assert refused == 0
    assert state.runtime_ms == pytest.approx(make("greedy", shipped).optimise(residual(9), Budget()).best_ms)
    assert state.depth > len(way.steps) >= 3
    assert work.ledger.effort.rewrites == state.depth


def test_what_fits_nowhere_is_left_out(shipped):
    """Nothing is known of what values are in the copies between the first and the last but one."""
    work, short, way = _carried(shipped, residual(9))
    known = [image if copy in (0, len(short.images) - 1) else {} for copy, image in enumerate(short.images)]
    complete, _ = carried_over(work, work.start, short, way)
    state, refused = carried_over(work, work.start, replace(short, images=tuple(known)), way)
    assert refused > 0
    assert state.depth == complete.depth - refused


def test_it_ends_with_the_budget(shipped):
    work, short, way = _carried(shipped, residual(9), rewrites=4)
    state, refused = carried_over(work, work.start, short, way)
    assert (state.depth, work.is_spent) == (4, True)
    assert refused > 0


def test_a_budget_that_ends_on_the_way_costs_nothing(shipped):
    """What saves something is done in all copies, then the budget ends at the first copy of what makes it dearer."""
    graph = bert(7)
    short = abridged(graph)
    copies, most = len(short.images), [10**6]
    budget = Budget(is_called_off=lambda: work.ledger.effort.rewrites >= most[0])
    work = make("chains", shipped).begin(graph, Budget())
    work = work.within(replace(work.ledger, limits=budget))

    def astray(inside, state):
        for choose in (min, max):
            options = [option for option in inside.options(state) if option.match.roots[0].node in short.second]
            state = inside.take(state, choose(options, key=lambda option: option.runtime_ms))
        assert state.runtime_ms > state.parent.runtime_ms < inside.start.runtime_ms
        most[0] = work.ledger.effort.rewrites + copies + 1
        return state

    found = in_short(work, work.start, WHOLE_NODES, astray)
    assert (found.depth, work.is_spent) == (copies, True)
    assert found.runtime_ms < work.start.runtime_ms


def test_a_long_way_keeps_hashes_and_no_orders(shipped):
    """Each graph on the way would keep arrays as long as the graph. Hashes are those of orders derived anew."""
    graph = bert(7)
    work = make("chains", shipped, whole_nodes=WHOLE_NODES).begin(graph, Budget())
    short = abridged(graph)
    way = make("greedy", shipped).optimise(short.graph, Budget()).trajectory
    state, _ = carried_over(work, work.start, short, way)
    path = state.path()
    assert len(path) > 20
    assert not any("_depth_first" in vars(before.graph) for before in path[:-1])
    hashes = [before.hash for before in path]
    assert hashes == [structural_hash(before.graph) for before in path]
    assert all(after.parent is before for before, after in pairwise(path))
