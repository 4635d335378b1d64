"""What pays in one layer is repeated in all that are alike: as good as one by one, with as many looks at any depth."""

from itertools import pairwise

import pytest
from support.searches import make

from rlflow import zoo
from rlflow.cost.analytic import AnalyticConfig, AnalyticCost
from rlflow.method import Budget, Option, State, Workspace
from rlflow.onnx_io import from_onnx
from rlflow.search.alike import everywhere
from rlflow.search.greedy import enough_ms

SMALL = {"hidden": 32, "heads": 2, "intermediate": 64, "sequence": 8, "vocabulary": 50, "positions": 16}


def bert(layers):
    return from_onnx(zoo.build("bert", layers=layers, **SMALL))


def one_by_one(work: Workspace) -> State:
    """Greedy search as TASO has it: of all rewrites of each graph the one that saves most."""
    state = work.start
    while True:
        option = min(work.options(state), key=lambda option: option.runtime_ms)
        if option.runtime_ms >= enough_ms(state):
            return state
        state = work.take(state, option)


def test_greedy_finds_what_it_finds_one_by_one(shipped):
    search = make("greedy", shipped)
    found, work = search.optimise(bert(3), Budget()), search.begin(bert(3), Budget())
    single = one_by_one(work)
    assert found.best_ms == pytest.approx(single.runtime_ms, rel=1e-12)
    assert len(found.trajectory.steps) >= 12
    assert 2 * found.expansions < work.ledger.expansions, "or this saves nothing"


@pytest.mark.parametrize("method", ["greedy", "chains"])
def test_a_deeper_model_takes_no_more_looks(shipped, method):
    """From four layers on, which are as many kinds of layers as there are: first, second, inner and last."""
    model = AnalyticCost(AnalyticConfig(launch_us=0.0))
    shallow, deep = (make(method, shipped, model).optimise(bert(layers), Budget()) for layers in (5, 10))
    assert len(deep.trajectory.steps) > 1.6 * len(shallow.trajectory.steps)
    if method == "greedy":
        assert deep.expansions == shallow.expansions
    assert deep.improvement_percent > 0.9 * shallow.improvement_percent


def test_each_repeated_rewrite_saves_as_much(shipped):
    """The places of the first rewrite itself and of one that is gone are left out; nothing is taken twice."""
    work, cheapest, places = _alike(shipped)
    end = everywhere(work, work.start, work.take(work.start, cheapest), places)
    ms = [state.runtime_ms for state in end.path()]
    savings = [before - after for before, after in pairwise(ms)]
    assert 1 < len(savings) <= len(places)
    assert min(savings) >= savings[0] * (1 - 1e-6)


def test_the_budget_ends_it(shipped):
    """One rewrite is left when the first was carried out, of two that could be repeated."""
    work, cheapest, places = _alike(shipped)
    assert len(places) == 3
    first = work.take(work.start, cheapest)
    brief = work.within(work.ledger.child(rewrites=1))
    assert everywhere(brief, work.start, first, places).depth == 2
    assert everywhere(work, work.start, first, places).depth == 3


def _alike(shipped) -> tuple[Workspace, Option, list[tuple[int, ...]]]:
    """A workspace on three layers, the rewrite that saves most, and the places of all of its rule."""
    work = make("greedy", shipped).begin(bert(3), Budget())
    options = list(work.options(work.start))
    cheapest = min(options, key=lambda option: option.runtime_ms)
    return work, cheapest, [option.match.nodes for option in options if option.action.rule == cheapest.action.rule]
