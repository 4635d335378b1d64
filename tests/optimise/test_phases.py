"""What phases foresee, in closed form."""

import math
from dataclasses import replace

import pytest
from support.budgeted import Clock, Recorded

from rlflow import zoo
from rlflow.cost.analytic import AnalyticCost
from rlflow.cost.measured import MeasuredCost, empty_price_list
from rlflow.cost.pricing import PricingConfig
from rlflow.equivalence.report import EquivalenceReport
from rlflow.onnx_io import from_onnx
from rlflow.optimise.clock import Deadline, Shares
from rlflow.optimise.gate import GateConfig, Judgement, Pace
from rlflow.optimise.phases import Phases, sizes_of
from rlflow.optimise.shortlist import Shortlist
from rlflow.rules.library import Library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.runtime.sizes import Size
from rlflow.runtime.timing.sequential import SequentialTest
from rlflow.search.greedy import Greedy

EQUAL = EquivalenceReport(True, "", 0.0, 0.0, 1e-5, draws=1, non_vacuous_draws=1)


@pytest.fixture
def phases() -> Phases:
    nothing = Library(())
    return Phases(Greedy(nothing, Rewriter(()), AnalyticCost()), AnalyticCost(), "deployed", GateConfig())


@pytest.mark.parametrize(("proof", "sessions"), [(None, 16), (SequentialTest(), 32)])
def test_a_check_and_the_rounds_that_decide_are_kept_free(
    phases: Phases, proof: SequentialTest | None, sessions: int
) -> None:
    """Of a small model: the 2 s of judging for the check, 4 rounds of 4 sessions, in each of which it runs 4 times; a
    proof takes 8 rounds.
    """
    phases = replace(phases, gate=replace(phases.gate, proof=proof))
    deadline = Deadline.after(60.0, now_s=Clock())
    judgement = Judgement(EQUAL, paces={"deployed": Pace(opening_s=0.2, running_s=0.01)}, wall_s=2.0)
    assert phases.gate.runs_per_round == 3
    assert phases.before_check(judgement, deadline).left_s == pytest.approx(60.0 - 2.0 - sessions * 0.24)


@pytest.mark.parametrize(("left_s", "runs"), [(19.5, 3), (19.0, 2), (15.5, 1), (3.3, 1), (3.1, 0), (math.inf, 3)])
def test_there_are_fewer_runs_rather_than_fewer_rounds(phases: Phases, left_s: float, runs: int) -> None:
    """Of 4 sessions that open in 0.4 s and run in 0.2 s, of which one run is not timed: 4 rounds of 3 runs take 19.2 s,
    of 2 runs 16 s, of 1 run 12.8 s, and a single one 3.2 s.
    """
    judgement = Judgement(EQUAL, paces={"deployed": Pace(opening_s=0.4, running_s=0.2)}, wall_s=2.0)
    assert phases.runs_per_round(judgement, left_s) == runs


@pytest.fixture
def racing(phases: Phases) -> Phases:
    """Three racers: 2 sessions of each and of the original, then of two; 14 in all."""
    prices = MeasuredCost("deployed", empty_price_list(1), PricingConfig())
    assert phases.gate.racers == 3
    return replace(phases, shortlist=Shortlist(prices))


@pytest.mark.parametrize(("left_s", "may"), [(11.4, False), (11.6, True), (math.inf, True)])
def test_whole_models_race_where_that_takes_half_of_the_time_at_most(racing: Phases, left_s: float, may: bool) -> None:
    """Each session opens in 0.2 s and runs twice in 0.07 s: 4.76 s, twice that after the check of 2 s."""
    judgement = Judgement(EQUAL, paces={"deployed": Pace(opening_s=0.2, running_s=0.07)}, wall_s=2.0)
    assert racing.may_race(judgement, Deadline(left_s, Clock())) is may
    alone = replace(racing, gate=replace(racing.gate, racers=1))
    assert not alone.may_race(judgement, Deadline(left_s, Clock()))


def test_a_race_alone_tells_of_a_runtime_that_has_no_prices(phases: Phases) -> None:
    """Whatever was measured beforehand, or may be afterwards: that is ONNX Runtime."""
    judgement, endless = Judgement(EQUAL), Deadline(math.inf, Clock())
    assert not phases.may_race(judgement, endless)
    assert replace(phases, setting="openvino").may_race(judgement, endless)
    assert phases.gainless == frozenset()


def test_a_race_is_kept_free_besides(racing: Phases, phases: Phases) -> None:
    """Each of its 14 sessions runs 4 times."""
    judgement = Judgement(EQUAL, paces={"deployed": Pace(opening_s=0.2, running_s=0.05)}, wall_s=2.0)
    deadline = Deadline(60.0, Clock())
    kept_free_s = phases.before_check(judgement, deadline).left_s - racing.before_check(judgement, deadline).left_s
    assert kept_free_s == pytest.approx(14 * 0.4)


def test_at_most_half_of_what_is_left_is_kept_free_for_timing(phases: Phases) -> None:
    """Of a large model, that would be 48 s of 52."""
    deadline = Deadline.after(60.0, now_s=Clock())
    judgement = Judgement(EQUAL, paces={"deployed": Pace(opening_s=1.0, running_s=0.5)}, wall_s=8.0)
    assert phases.before_check(judgement, deadline).left_s == pytest.approx((60.0 - 8.0) / 2)


def test_without_a_budget_nothing_has_to_be_kept_free(phases: Phases) -> None:
    judgement = Judgement(EQUAL, paces={"deployed": Pace(opening_s=1.0, running_s=0.5)}, wall_s=8.0)
    assert phases.before_check(judgement, Deadline.after(None)).budget().time_s is None


@pytest.mark.parametrize(
    ("foreseen_s", "searching_s"), [(10.0, 60.0 * 0.4 / 0.65), (28.0, 32.0), (37.0, 60.0 * 0.4 / 0.65)]
)
def test_what_measuring_takes_is_kept_free_if_it_is_not_too_much(
    phases: Phases, foreseen_s: float, searching_s: float
) -> None:
    """Of 60 s, a search may take its share, unless 28 s are needed afterwards. 37 s would be more than the three fifths
    that are given to measuring at most.
    """
    graph = from_onnx(zoo.build("tiny_chain"))
    shortlist = Shortlist(MeasuredCost("deployed", empty_price_list(threads=1), pricing=None))
    running_s = (foreseen_s / shortlist.foreseen_s(graph, 1.0) - 0.03) / 0.5
    judgement = Judgement(EQUAL, paces={"deployed": Pace(running_s=running_s)})
    method = Recorded(phases.method)
    timed = replace(
        phases, method=method, shortlist=shortlist, shares=Shares(searching=0.4, measuring=0.15, timing=0.1)
    )
    timed.search(graph, judgement, Deadline.after(60.0, now_s=Clock()))
    assert method.budgets == [pytest.approx(searching_s)]


def test_a_subgraph_has_its_own_sizes_and_says_where_it_is(phases: Phases) -> None:
    told: list[str] = []
    outer = Phases(
        phases.method,
        phases.cost_model,
        phases.setting,
        GateConfig(dimensions={"n": 3, "m": 4}),
        on_progress=lambda done, text: told.append(text),
    )
    inner = outer.inside("the body of y", ["m"])
    assert inner.gate.dimensions == {"m": 4} == sizes_of(["m", "k"], {"n": 3, "m": 4})
    assert inner.on_progress is not None
    inner.on_progress(0.5, "searching")
    assert told == ["the body of y: searching"]


def test_rounds_are_kept_free_at_each_size(phases: Phases) -> None:
    """The check of both takes as long as judging both did; a session of the second size takes twice as long."""
    deadline = Deadline.after(60.0, now_s=Clock())
    first, second = ({"deployed": Pace(opening_s=0.2, running_s=running_s)} for running_s in (0.01, 0.07))
    judgement = Judgement(EQUAL, paces=first, wall_s=2.0, elsewhere=(Judgement(EQUAL, paces=second),))
    assert phases.before_check(judgement, deadline).left_s == pytest.approx(60.0 - 2.0 - 16 * (0.24 + 0.48))


def test_each_size_has_its_own_phases(phases: Phases) -> None:
    sizes = tuple(Size({"x": (rows, 4)}, {"n": rows}) for rows in (1, 8))
    several = replace(phases, gate=GateConfig(dimensions=sizes[0].dimensions, sizes=sizes))
    judgement = Judgement(EQUAL, elsewhere=(Judgement(EQUAL, "too large"),))
    found = list(several.at_each_size(judgement))
    assert [each.gate.dimensions for each, _ in found] == [{"n": 1}, {"n": 8}]
    assert [each.gate.where for each, _ in found] == [" at x=1x4", " at x=8x4"]
    assert [own.unjudgeable for _, own in found] == ["", "too large"]
    assert [list(each.at_each_size(own)) for each, own in found] == [[pair] for pair in found], "none inside a size"
    assert several.inside("the body of y", ["n"]).gate.at_each_size[0].dimensions == {"n": 1}
    assert [each.gate.where for each, _ in phases.at_each_size(Judgement(EQUAL))] == [""]
