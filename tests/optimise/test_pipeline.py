"""Subgraphs are rewritten like models of their own, then the model around them; a wrong rule in one is named."""

import shlex
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import GraphProto, ModelProto, numpy_helper
from support.budgeted import Clock, Recorded
from support.onnx_models import with_drawn_weights
from support.texts import LAYERS, filled
from support.wrong_rule import WRONG

import rlflow
from rlflow.cli import main
from rlflow.cli import replay as replay_command
from rlflow.cost.analytic import AnalyticCost
from rlflow.equivalence.compare import compare
from rlflow.errors import EquivalenceError
from rlflow.ir.graph import Graph
from rlflow.method import Budget, Method
from rlflow.onnx_io import from_onnx
from rlflow.optimise.clock import Deadline, Shares
from rlflow.optimise.diagnose import Derivation
from rlflow.optimise.gate import GateConfig, check
from rlflow.optimise.phases import Phases
from rlflow.optimise.pipeline import INTERRUPTED, NOTHING_FOUND, Pipeline
from rlflow.rules import library as rule_library
from rlflow.rules.library import Library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.rules.rule import rule_from_json
from rlflow.runtime.inputs import draw_inputs
from rlflow.search.greedy import Greedy

LIBRARY = rule_library.load()
GATE = GateConfig(rounds=3, runs_per_round=2)
NESTED = """
    <ir_version: 8, opset_import: ["" : 17]>
    nested (float[64, 128] x) => (float[64, 128] y)
    <float[128, 128] w, float[128, 128] v, int64 trips = {2}> {
        start = Tanh(x)
        y = Loop (trips, , start) <
            body = body (int64 i, bool go, float[64, 128] s) => (bool on, float[64, 128] r) {
                on = And(go, go)
                odd = Cast<to = 9>(i)
                n = Tanh(s)
                r = If (odd) <
                    then_branch = then () => (float[64, 128] t) { a = MatMul(n, w)  p = MatMul(a, v)  t = Add(p, x) },
                    else_branch = else () => (float[64, 128] e) { e1 = MatMul(s, v)  e = MatMul(e1, w) }
                >
            }
        >
    }
"""
"""2 nodes around 4 around 3 and 2."""
UNTYPED = """
    <ir_version: 8, opset_import: ["" : 17]>
    untyped (bool c, float[3, 4] m, float[2, 128] x) => (float[2, 128] y)
    <float[128, 128] w, float[128, 128] v, float[12, 128] u> {
        places = NonZero(m)
        p = Cast<to = 1>(places)
        y = If (c) <
            then_branch = then () => (float[2, 128] t) {
                t1 = MatMul(x, w)
                t2 = MatMul(t1, v)
                t3 = MatMul(p, u)
                t = Add(t2, t3)
            },
            else_branch = else () => (float[2, 128] e) { e1 = MatMul(x, v)  e = MatMul(e1, w) }
        >
    }
"""
"""How many places there are, a body by itself cannot tell: drawn numbers of them do not fit u."""
SUMMED = """
    <ir_version: 8, opset_import: ["" : 17]>
    summed (bool c, float[n, 128] x, float[m, 128] z) => (float[rows, 128] y)
    <float[128, 128] w> {
        y = If (c) <
            then_branch = then () => (float[k, 128] t) { a = MatMul(x, w)  b = MatMul(z, w)  t = Add(a, b) },
            else_branch = else () => (float[k, 128] e) { e = Sub(x, z) }
        >
    }
"""
"""x w + z w = (x + z) w saves a product; with one row in x and many in z, it is another sum."""
RECURRENT = """
    <ir_version: 8, opset_import: ["" : 17]>
    recurrent (float[64, 128] x) => (float[64, 128] y)
    <float[128, 128] w, float[128] b, int64 trips = {2}> {
        y = Loop (trips, , x) <
            body = body (int64 i, bool go, float[64, 128] s) => (bool on, float[64, 128] r) {
                on = Identity(go)
                p = MatMul(s, w)
                q = Add(p, b)
                r = Tanh(q)
            }
        >
    }
"""
CHAIN = """
    <ir_version: 8, opset_import: ["" : 17]>
    chain (float[64, 128] x) => (float[64, 128] y)
    <float[128, 128] w, float[128, 128] v> { p = MatMul(x, w)  y = MatMul(p, v) }
"""
BEFORE_A_LAYER = """
    <ir_version: 8, opset_import: ["" : 17]>
    before (bool c, float[64, 128] x) => (float[64, 128] y)
    <float[128, 128] w, float[128, 128] v, float[128] b> {
        h = If (c) <
            then_branch = then () => (float[64, 128] t) { t1 = MatMul(x, w)  t = MatMul(t1, v) },
            else_branch = else () => (float[64, 128] e) { e1 = MatMul(x, v)  e = MatMul(e1, w) }
        >
        p = MatMul(h, w)
        y = Add(p, b)
    }
"""


class DearerIsBetter(AnalyticCost):
    """What a search takes for good, the clock does not."""

    def runtime_ms(self, graph: Graph) -> float:
        return 1 / super().runtime_ms(graph)


def pipeline(library: Library = LIBRARY, cost: AnalyticCost | None = None, **dimensions: int) -> Pipeline:
    cost = cost or AnalyticCost()
    method = Recorded(Greedy(library, Rewriter(library.rules), cost))
    phases = Phases(method, cost, "as_written", replace(GATE, dimensions=dimensions))
    return Pipeline(phases, library, dimensions)


def with_phases(pipeline: Pipeline, **changed: Any) -> Pipeline:
    return replace(pipeline, phases=replace(pipeline.phases, **changed))


def subgraphs_of(graph: GraphProto) -> dict[str, GraphProto]:
    """Of the first node that has any, by attribute."""
    return next(found for node in graph.node if (found := {a.name: a.g for a in node.attribute if a.HasField("g")}))


def operators(graph: GraphProto) -> list[str]:
    return [node.op_type for node in graph.node]


def assert_equal(before: ModelProto, after: ModelProto) -> None:
    """Whichever branch is taken."""
    for truth in (False, True):
        report = compare(before, after, inputs=[draw_inputs(before, np.random.default_rng(0)) | {"c": np.array(truth)}])
        assert report.equivalent
        assert report.non_vacuous_draws


@pytest.mark.slow
def test_both_branches_are_rewritten_though_nothing_matches_around_them() -> None:
    model = filled(LAYERS)
    assert not any(Rewriter(LIBRARY.rules).matches(from_onnx(model)).counts)
    made = pipeline().run(model)
    assert [body.place for body in made.inside] == ["the then_branch of y", "the else_branch of y"]
    assert all(body.steps and body.cost_after_ms < body.cost_before_ms for body in made.inside)
    assert not made.steps
    assert operators(subgraphs_of(made.candidate.graph)["then_branch"]) == ["MatMul"]
    assert operators(subgraphs_of(made.candidate.graph)["else_branch"]) == ["MatMul", "Relu"]
    assert made.equivalence.non_vacuous_draws
    assert_equal(model, made.candidate)


@pytest.mark.slow
def test_a_body_of_a_body_comes_first_and_bodies_share_the_time_as_they_share_the_nodes() -> None:
    """The innermost first; the Loop's body has nothing to do but what was done inside it.

    2 nodes around 4 around 3 and 2, of which each may search for half of its time, and takes it.
    Of 22,000 s, the Loop's body gets 9/11, of that the then_branch 3/9 and the else_branch 2/6 of what is left then.
    What is not spent on searching goes on to those that come later. Beside such a budget the few seconds are nothing
    that are kept free for timing.
    """
    clock = Clock()
    shares = Shares(judging=1.0, searching=2.0, measuring=1.0, timing=1.0)
    nested = with_phases(pipeline(), shares=shares)
    method = nested.phases.method
    assert isinstance(method, Recorded)
    method.clock = clock
    made = nested.run(filled(NESTED), Deadline.after(22_000.0, now_s=clock))
    body_s = 18_000.0
    then_s = body_s * 3 / 9 / 2
    else_s = (body_s - then_s) * 2 / 6 / 2
    own_s = (body_s - then_s - else_s) / 2
    around_s = (22_000.0 - then_s - else_s - own_s) / 2
    assert method.budgets == pytest.approx([then_s, else_s, own_s, around_s], rel=0.02)
    assert [body.attribute for body in made.inside] == ["then_branch", "else_branch", "body"]
    assert [bool(body.steps) for body in made.inside] == [True, True, False]
    assert not made.inside[2].left_because
    inner = subgraphs_of(subgraphs_of(made.candidate.graph)["body"])
    assert operators(inner["else_branch"]) == ["MatMul"]
    assert operators(inner["then_branch"]) == ["MatMul", "Add"]
    assert made.equivalence.non_vacuous_draws


def test_a_search_that_would_take_minutes_ends_with_its_share_and_the_rest_is_done_in_time() -> None:
    """By a clock that the search moves on; the check had its time kept free."""
    clock = Clock()
    late = pipeline()
    method = late.phases.method
    assert isinstance(method, Recorded)
    method.clock = clock
    made = late.run(with_drawn_weights(CHAIN), Deadline.after(30.0, now_s=clock))
    assert made.steps
    assert made.equivalence.non_vacuous_draws
    assert clock.now_s < 30.0


def test_what_is_interrupted_is_checked_and_not_timed() -> None:
    """From the moment at which the search begins, as Ctrl-C would do it."""
    seen: list[str] = []
    interrupted = with_phases(pipeline(), on_progress=lambda done, text: seen.append(text))
    deadline = Deadline.after(None, is_interrupted=lambda: "searching" in seen)
    made = interrupted.run(with_drawn_weights(CHAIN), deadline)
    assert made.steps, "the method does not look at the clock"
    assert made.equivalence.non_vacuous_draws
    assert not made.latency
    assert not made.left_because


def test_nothing_is_known_of_what_is_interrupted_before() -> None:
    model = with_drawn_weights(CHAIN)
    made = pipeline().run(model, Deadline.after(None, is_interrupted=lambda: True))
    assert made.left_because == INTERRUPTED
    assert made.candidate is model


@pytest.mark.slow
def test_a_body_that_cannot_be_judged_stays_as_it_is() -> None:
    model = filled(UNTYPED)
    made = pipeline().run(model)
    left, done = made.inside
    assert done.steps
    assert left.left_because.startswith("it could not be tried here")
    before, after = (subgraphs_of(each.graph) for each in (model, made.candidate))
    assert before["then_branch"] == after["then_branch"]
    assert operators(after["else_branch"]) == ["MatMul"]
    assert_equal(model, made.candidate)


@pytest.mark.timing
def test_a_body_that_became_slower_stays_as_it_is() -> None:
    """Two products instead of one, which this cost model likes."""
    text = LAYERS.replace("t1 = MatMul(x, w)  t = MatMul(t1, v)", "t1 = Add(x, x)  t = MatMul(t1, v)")
    text = text.replace("e1 = MatMul(x, v)  e2 = MatMul(e1, w)  e = Relu(e2)", "e = Relu(x)")
    apart = rule_from_json(
        "apart",
        "linear",
        [["MatMul", ["Add", "x", "y"], "w"]],
        [["Add", ["MatMul", "x", "w"], ["MatMul", "y", "w"]]],
        {},
    )
    model = with_drawn_weights(text)
    slow = with_phases(pipeline(Library((apart,)), DearerIsBetter()), gate=GateConfig())
    made = slow.run(model)
    assert [body.left_because for body in made.inside] == ["the rewritten one was slower beyond noise", NOTHING_FOUND]
    assert made.candidate is model


def test_nothing_is_done_where_nothing_can_be_said() -> None:
    noise = "t1 = RandomNormal<shape = [64, 128]>()  t = MatMul(t1, v)"
    model = filled(LAYERS.replace("t1 = MatMul(x, w)  t = MatMul(t1, v)", noise))
    made = pipeline().run(model)
    assert made.left_because == "its outputs change from run to run, so that no other model could be compared with it"
    assert made.candidate is model
    assert not made.inside


@pytest.mark.slow
def test_sizes_that_a_body_needs_are_pinned_outside() -> None:
    """Inputs declare them, for a rule that only fires in the body; of the same model with all sizes open, nothing is
    said.
    """
    model = filled(SUMMED)
    made = pipeline(n=64, m=64).run(model)
    (done,) = (body for body in made.inside if body.steps)
    assert done.pinned_for
    assert made.pinned_for == done.pinned_for
    assert made.pinned == {"x": (64, 128), "z": (64, 128)}
    assert not made.settled.pinned_for
    shapes = [[d.dim_value for d in value.type.tensor_type.shape.dim] for value in made.candidate.graph.input]
    assert shapes == [[], [64, 128], [64, 128]]
    assert sorted(operators(subgraphs_of(made.candidate.graph)["then_branch"])) == ["Add", "MatMul"]
    assert model.graph.input[1].type.tensor_type.shape.dim[0].dim_param == "n"
    assert pipeline().run(model).left_because


def test_a_wrong_rule_in_a_body_is_named_and_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command of the reproducer replays the steps on the body, which no file of the user holds."""
    library, folder, model = Library((WRONG,)), tmp_path / "out.reproducer", filled(RECURRENT)
    made = with_phases(pipeline(library), reproducer=folder).run(model, argument="a file with a Loop")
    assert made.candidate is model
    (about,) = made.inside
    (refusal,) = about.refusals
    assert refusal.summary.startswith("In the body of y, a rewritten model computes something else and was refused")
    assert "it broke at step 1, rule lose-a-bias" in refusal.reason
    assert [value.name for value in onnx.load(folder / "model.onnx").graph.input] == ["i", "go", "s"]
    text = (folder / "README.txt").read_text()
    (command,) = (line.strip() for line in text.splitlines() if line.startswith("    rlflow replay "))
    monkeypatch.chdir(folder)
    monkeypatch.setattr(replay_command.rule_library, "load", lambda path=None: library)
    monkeypatch.setattr("sys.argv", shlex.split(command))
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 1
    assert "it broke at step 1, rule lose-a-bias" in capsys.readouterr().err


def test_a_wrong_rule_around_a_rewritten_body(tmp_path: Path) -> None:
    """The steps start from the model with the new body, which is still delivered, without the wrong rule."""
    (merging,) = (rule for rule in LIBRARY.rules if rule.id == "linear-9c80c0e8a252")
    folder, model = tmp_path / "out.reproducer", filled(BEFORE_A_LAYER)
    cost, both = AnalyticCost(), Library((merging, WRONG))

    def made_without(rules: Collection[str]) -> Method:
        return Greedy(both.without(rules), Rewriter(both.without(rules).rules), cost)

    made = with_phases(pipeline(both), reproducer=folder, made_without=made_without).run(model, argument="a file")
    (refusal,) = made.refusals
    assert refusal.reason.startswith("is not equivalent")
    assert "step 1, rule lose-a-bias" in refusal.reason
    start = onnx.load(folder / "model.onnx").graph
    assert operators(start) == ["If", "MatMul", "Add"]
    assert operators(subgraphs_of(start)["then_branch"]) == ["MatMul"]
    assert_equal(model, made.candidate)
    assert operators(made.candidate.graph) == ["If", "MatMul", "Add"]
    assert operators(subgraphs_of(made.candidate.graph)["then_branch"]) == ["MatMul"]


def test_bodies_that_are_right_alone_and_not_together() -> None:
    """What is said of a model that is wrong before the first step: here, one made of another model's body."""
    model, other = filled(BEFORE_A_LAYER), filled(BEFORE_A_LAYER)
    next(tensor for tensor in other.graph.initializer if tensor.name == "v").CopyFrom(
        numpy_helper.from_array(np.zeros((128, 128), np.float32), "v")
    )
    (merging,) = (rule for rule in LIBRARY.rules if rule.id == "linear-9c80c0e8a252")
    rewriter = Rewriter((merging,))
    start = from_onnx(other)
    work = Greedy(Library((merging,)), rewriter, AnalyticCost()).optimise(start, Budget())
    derivation = Derivation(model, other, start, work.trajectory, rewriter, other)
    with pytest.raises(
        EquivalenceError, match="it broke at import, export, passes or a subgraph's rewrites: no step changes"
    ):
        check(derivation, GATE)


@pytest.mark.slow
def test_optimise_reports_what_was_done_inside() -> None:
    """Where there were no steps before. Products of these sizes take so long that one is faster than two."""
    optimised = rlflow.optimise(filled(LAYERS), method="greedy", cost_model="analytic", shortlist=0, gate=GATE)
    document = optimised.report.to_json()
    assert document["steps"] == []
    assert [(body["attribute"], len(body["steps"])) for body in document["subgraphs"]] == [
        ("then_branch", 1),
        ("else_branch", 1),
    ]
    assert "In the then_branch of y: 1 substitution (associate-weights x1)" in optimised.report.summary()
