"""Iterated local search leaves greedy search's valley, is seeded, and ends by itself."""

import pytest
from onnx import parser
from support.searches import make

from rlflow import zoo
from rlflow.cost.analytic import AnalyticConfig, AnalyticCost
from rlflow.errors import InputError
from rlflow.method import Budget
from rlflow.onnx_io import from_onnx

TWICE_TRANSPOSED = """
    <ir_version: 10, opset_import: ["" : 17]>
    twice (float[4, 8] x) => (float[4, 8] y) {
        t = Transpose<perm: ints = [1, 0]>(x)
        y = Transpose<perm: ints = [1, 0]>(t)
    }
"""


def test_a_plateau_that_stops_greedy_is_crossed(plateau):
    optimum = AnalyticCost().runtime_ms(from_onnx(zoo.optimum("tiny_scale")))
    assert make("greedy", plateau.library).optimise(plateau.graph, Budget()).best_ms > 1.1 * optimum
    found = make("iterated", plateau.library, stall=20).optimise(plateau.graph, Budget())
    assert found.best_ms == pytest.approx(optimum, rel=1e-12)


def test_a_loss_half_way_is_crossed(detour):
    """Greedy search returns the graph as it is, as the tests of chains show."""
    model = AnalyticCost(AnalyticConfig(gflops_per_s=100, gbytes_per_s=40, launch_us=2.0))
    found = make("iterated", detour.library, model, stall=5).optimise(detour.graph, Budget())
    assert found.best_ms < 0.95 * found.start_ms


def test_the_search_ends_after_kicks_without_gain(shipped, bert):
    """At a temperature of 0 nothing dearer is gone on from: the way to the best graph is never left for good."""
    short, long = (
        make("iterated", shipped, stall=stall, temperature_percent=0.0).optimise(bert, Budget()) for stall in (2, 8)
    )
    assert short.effort.prices_asked < long.effort.prices_asked
    assert long.best_ms <= short.best_ms <= make("greedy", shipped).optimise(bert, Budget()).best_ms


def test_a_graph_that_costs_nothing_in_the_end_is_no_error(shipped):
    """Of two transpositions that undo each other nothing is left to run."""
    graph = from_onnx(parser.parse_model(TWICE_TRANSPOSED))
    found = make("iterated", shipped, stall=2).optimise(graph, Budget(expansions=50))
    assert found.best_ms == 0.0 < found.start_ms


@pytest.mark.slow
def test_the_seed_decides(shipped, bert):
    def ways(seed):
        return make("iterated", shipped, stall=4, seed=seed).optimise(bert, Budget()).trajectory

    assert ways(0) == ways(0)
    searched = [make("iterated", shipped, stall=4, seed=seed).optimise(bert, Budget()).effort for seed in range(3)]
    assert len({effort.prices_asked for effort in searched}) > 1


@pytest.mark.parametrize(("dearer", "probability"), [(-1.0, 1.0), (0.0, 1.0), (0.5, 0.36788), (1.0, 0.13534)])
def test_acceptance_is_that_of_annealing(shipped, dearer, probability):
    """1/e at the temperature, its square at twice the temperature."""
    assert make("iterated", shipped, temperature_percent=0.5)._acceptance(dearer) == pytest.approx(
        probability, rel=1e-4
    )
    assert make("iterated", shipped, temperature_percent=0.0)._acceptance(dearer) == (1.0 if dearer <= 0 else 0.0)


@pytest.mark.parametrize(
    ("option", "value"),
    [("kick_steps", 0), ("stall", 0), ("temperature_percent", -0.1), ("temperature_percent", float("nan"))],
)
def test_impossible_options_are_refused(shipped, option, value):
    with pytest.raises(InputError, match=option):
        make("iterated", shipped, **{option: value})
