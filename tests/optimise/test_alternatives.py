"""Results without what a search relied on: they replay, differ, and one of them wins where a price flatters."""

from collections.abc import Collection
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from onnx import ModelProto, TensorProto, helper

from rlflow import zoo
from rlflow.cost.analytic import AnalyticCost
from rlflow.cost.measured import MeasuredCost, empty_price_list
from rlflow.cost.pricing import PricingConfig
from rlflow.equivalence.report import EquivalenceReport
from rlflow.ir.graph import Graph
from rlflow.ir.structural_hash import structural_hash
from rlflow.method import Budget, Method, OptimisationResult
from rlflow.onnx_io import from_onnx
from rlflow.optimise.alternatives import alternatives
from rlflow.optimise.clock import Deadline
from rlflow.optimise.gate import GateConfig, Judgement
from rlflow.optimise.phases import Phases
from rlflow.optimise.pipeline import Pipeline
from rlflow.optimise.shortlist import Shortlist
from rlflow.rules import library as rule_library
from rlflow.rules.library import Library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.rules.rule import rule_from_json
from rlflow.runtime.timing.belief import prior_of
from rlflow.runtime.timing.latency import Round
from rlflow.runtime.timing.sequential import SequentialTest
from rlflow.search.greedy import Greedy
from rlflow.trajectory.replay import replay

NEGATION = rule_from_json("double-negation", "algebra", [["Neg", ["Neg", "x"]]], ["x"], {})
DETOUR = rule_from_json(
    "relu-on-its-side",
    "movement",
    [["Relu", ["Tanh", "x"]]],
    [["Transpose", {"perm": [1, 0]}, ["Relu", ["Transpose", {"perm": [1, 0]}, ["Tanh", "x"]]]]],
    {},
)
"""Right, and far slower."""


class Flattered(AnalyticCost):
    """Prices as they are, but that a transpose earns a second."""

    def runtime_ms(self, graph: Graph) -> float:
        return super().runtime_ms(graph) + 2000.0 - 1000.0 * sum(n.op == "Transpose" for n in graph.nodes.values())


class Free(AnalyticCost):
    """A model without negations costs nothing."""

    def runtime_ms(self, graph: Graph) -> float:
        return float(sum(n.op == "Neg" for n in graph.nodes.values()))


@pytest.fixture(scope="module")
def found() -> tuple[Graph, OptimisationResult, Rewriter]:
    library = rule_library.load()
    rewriter = Rewriter(library.rules)
    graph = from_onnx(zoo.build("bert", layers=2, sequence=16, hidden=64, heads=2, intermediate=128, vocabulary=50))
    return graph, Greedy(library, rewriter, AnalyticCost()).optimise(graph, Budget()), rewriter


def test_alternatives_do_without_what_saves_most(found: tuple[Graph, OptimisationResult, Rewriter]) -> None:
    start, result, rewriter = found
    saved = {rule: 0.0 for rule in (step.rule for step in result.trajectory.steps)}
    prices = (result.start_ms, *(step.runtime_ms for step in result.trajectory.steps))
    for step, (before, after) in zip(result.trajectory.steps, pairwise(prices), strict=True):
        saved[step.rule] += before - after
    others = list(alternatives(start, result, rewriter, AnalyticCost(), most=3))
    assert others, "not vacuous"
    assert others[0].without[0] == max(saved, key=lambda rule: saved[rule])


def test_what_gains_nothing_in_a_runtime_is_left_out_first_and_together(
    found: tuple[Graph, OptimisationResult, Rewriter],
) -> None:
    start, result, rewriter = found
    taken = list(dict.fromkeys(step.rule for step in result.trajectory.steps))
    gainless = {taken[0], taken[-1], "a rule that took no step"}
    assert len(gainless) == 3 < 1 + len(taken)
    first, *others = alternatives(start, result, rewriter, AnalyticCost(), most=2, gainless=gainless)
    assert gainless & {*taken} <= {*first.without} <= {*taken}
    assert len(others) <= 1
    (alone,) = alternatives(start, result, rewriter, AnalyticCost(), most=1)
    assert {*alone.without} != {*first.without}, "not vacuous"


def test_alternatives_are_results_like_others(found: tuple[Graph, OptimisationResult, Rewriter]) -> None:
    start, result, rewriter = found
    others = list(alternatives(start, result, rewriter, AnalyticCost(), most=3))
    ends = {structural_hash(result.best)}
    for other in others:
        *_, last = replay(start, other.result.trajectory, rewriter)
        assert structural_hash(last) == structural_hash(other.result.best)
        assert not {step.rule for step in other.result.trajectory.steps} & set(other.without)
        assert result.best_ms <= other.result.best_ms == AnalyticCost().runtime_ms(last) < result.start_ms
        ends.add(structural_hash(last))
    assert len(ends) == 1 + len(others)


def test_there_is_none_without_the_only_rule() -> None:
    graph = from_onnx(chain(8, "Neg", "Neg", "Relu"))
    library = Library((NEGATION,))
    rewriter = Rewriter(library.rules)
    only = Greedy(library, rewriter, AnalyticCost()).optimise(graph, Budget())
    assert only.trajectory.steps
    assert not list(alternatives(graph, only, rewriter, AnalyticCost(), most=3))


def chain(wide: int, *operators: str) -> ModelProto:
    values = ["x", *(f"v{place}" for place in range(len(operators) - 1)), "y"]
    nodes = [
        helper.make_node(op, [before], [after]) for op, (before, after) in zip(operators, pairwise(values), strict=True)
    ]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [wide, wide]) for name in "xy")
    return helper.make_model(
        helper.make_graph(nodes, "chain", [x], [y]), ir_version=10, opset_imports=[helper.make_opsetid("", 17)]
    )


def pipeline(cost: AnalyticCost, **gate: Any) -> Pipeline:
    library = Library((NEGATION, DETOUR))

    def made_without(left_out: Collection[str]) -> Method:
        kept = Library(tuple(rule for rule in library.rules if rule.id not in left_out))
        return Greedy(kept, Rewriter(kept.rules), cost)

    phases = Phases(
        method=made_without(()),
        made_without=made_without,
        cost_model=cost,
        setting="as_written",
        gate=replace(GateConfig(runs_per_round=1), **gate),
        shortlist=Shortlist(MeasuredCost("as_written", empty_price_list(1), PricingConfig())),
    )
    return Pipeline(phases, library, {})


def test_a_race_finds_out_what_a_price_flatters() -> None:
    """Of two rules, one makes a model slower by far, and is said to save most: the other's result wins and is taken."""
    model = chain(1024, "Neg", "Neg", "Tanh", "Relu")
    made = pipeline(Flattered()).run(model)
    assert [node.op_type for node in made.candidate.graph.node] == ["Tanh", "Relu"]
    first, *others = made.race
    assert first.without == (DETOUR.id,)
    assert {racer.without for racer in others} == {(), (NEGATION.id,)}
    assert first.ratio > max(racer.ratio for racer in others)
    assert made.latency["as_written"].verdict.decision == "faster"
    assert made.latency["as_written"].verdict.rounds >= first.rounds
    assert [step.rule for step in made.steps] == [NEGATION.id]


def test_without_a_race_nothing_comes_of_it() -> None:
    """So that the test above is not vacuous: its parts are measured, and all of it is given up."""
    model = chain(1024, "Neg", "Neg", "Tanh", "Relu")
    made = pipeline(Flattered(), racers=1).run(model)
    assert made.candidate is model
    assert (made.race, made.steps) == ((), ())


def test_a_model_that_comes_to_cost_nothing_may_race() -> None:
    """Its price cannot be divided by."""
    made = pipeline(Free()).run(chain(64, "Neg", "Neg", "Tanh", "Relu"))
    assert made.predicted_ratio == 1000.0
    assert made.equivalence.equivalent


def test_a_proof_counts_no_rounds_of_a_race() -> None:
    """At best of three, chance wins more often."""
    made = pipeline(Flattered(), proof=SequentialTest()).run(chain(1024, "Neg", "Neg", "Tanh", "Relu"))
    assert made.race
    assert made.latency["as_written"].verdict.decision == "faster"
    assert made.latency["as_written"].verdict.rounds >= 4


def test_rounds_of_a_race_are_not_lost_where_no_time_is_left() -> None:
    phases = pipeline(Flattered()).phases
    times_ms = {"original": 2.0, "original again": 2.0, "candidate": 1.0, "candidate again": 1.0}
    judgement = Judgement(EquivalenceReport(True, "", 0.0, 0.0, 1e-5, draws=1, non_vacuous_draws=1))
    over, nowhere = Deadline(end_s=0.0), Path("nowhere")
    latency = phases.time(nowhere, nowhere, prior_of(10.0), judgement, over, [Round(times_ms)] * 3)
    assert latency["as_written"].verdict.decision == "faster"
    assert phases.time(nowhere, nowhere, prior_of(10.0), judgement, over) == {}
