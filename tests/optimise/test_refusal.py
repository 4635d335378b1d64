"""A candidate that fails, in whatever phase, costs nothing but itself: the next best has its turn, or the original."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper
from support.derivations import LOSE_A_RELU
from support.wrong_rule import WRONG

from rlflow.cost.analytic import AnalyticCost
from rlflow.cost.measured import MeasuredCost, empty_price_list
from rlflow.cost.pricing import PricingConfig
from rlflow.equivalence.compare import compare
from rlflow.errors import InputError, ReplayError, RLFlowError
from rlflow.ir.graph import Graph
from rlflow.method import Budget, Method, OnProgress, OptimisationResult
from rlflow.optimise.gate import GateConfig
from rlflow.optimise.phases import Phases
from rlflow.optimise.pipeline import Pipeline, PipelineResult
from rlflow.optimise.refusal import Refusal, Refused, of_candidate
from rlflow.optimise.shortlist import Shortlist
from rlflow.rules import library as rule_library
from rlflow.rules.library import Library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.rules.rule import Rule, rule_from_json
from rlflow.runtime.isolation import Limits
from rlflow.runtime.session import SETTINGS, Setting
from rlflow.runtime.timing.belief import Belief
from rlflow.runtime.timing.sequential import SequentialTest
from rlflow.search.greedy import Greedy

SHIPPED = rule_library.load()
GATE = GateConfig(rounds=2, runs_per_round=1, limits=Limits(longest_s=60.0))
RIGHT = rule_from_json("double-negation", "algebra", [["Neg", ["Neg", "x"]]], ["x"], {})
_NOTHING = ["Mul", "x", ["Constant", {"value_float": 0.0}]]
_LEAST = ["Cast", {"to": "int64"}, ["Add", _NOTHING, ["Constant", {"value_float": -(2.0**63)}]]]
_ONE = ["Cast", {"to": "int64"}, ["Add", _NOTHING, ["Constant", {"value_float": -1.0}]]]
DEADLY = rule_from_json("overflow", "algebra", [["Neg", "x"]], [["Cast", {"to": "float32"}, ["Div", _LEAST, _ONE]]], {})
"""No processor divides the least whole number by -1: it kills the process."""
REFUSED_WHEN_FUSED = SHIPPED.get("slice-before-relu")
"""Right, but ONNX Runtime 1.31 refuses Relu beside Clip in float64 as deployed."""


def chain(kind: int, *operators: str, weights: dict[str, Any] | None = None, wide: int = 64) -> ModelProto:
    """One operator after another on x; those named "A:w" have a weight for a second operand."""
    nodes, value = [], "x"
    for place, operator in enumerate(operators):
        op, _, operand = operator.partition(":")
        result = "y" if place == len(operators) - 1 else f"v{place}"
        nodes.append(helper.make_node(op, [value, *filter(None, operand.split(","))], [result], name=f"n{place}"))
        value = result
    stored = [numpy_helper.from_array(np.asarray(array), name) for name, array in (weights or {}).items()]
    x = helper.make_tensor_value_info("x", kind, [wide, wide])
    y = helper.make_tensor_value_info("y", kind, None)
    graph = helper.make_graph(nodes, "chain", [x], [y], stored)
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)])
    inferred = onnx.shape_inference.infer_shapes(model)
    onnx.checker.check_model(inferred, full_check=True)
    return inferred


def negations(kind: int = TensorProto.FLOAT, *more: str) -> ModelProto:
    return chain(kind, "Neg", "Neg", *more)


def biased() -> ModelProto:
    rng = np.random.default_rng(0)
    weights = {"w": rng.standard_normal((64, 64), np.float32), "c": rng.standard_normal(64, np.float32)}
    return chain(TensorProto.FLOAT, "Neg", "Neg", "MatMul:w", "Add:c", weights=weights)


def pipeline(*rules: Rule, again: bool = True, cost: AnalyticCost | None = None, **phases: Any) -> Pipeline:
    """Greedy search over these rules, that can be made again without some unless told otherwise."""
    cost = cost or AnalyticCost()

    def made_without(left_out: Collection[str]) -> Method:
        kept = Library(tuple(rule for rule in rules if rule.id not in left_out))
        return Greedy(kept, Rewriter(kept.rules), cost)

    parts = {"method": made_without(()), "made_without": made_without if again else None, "setting": "as_written"}
    return Pipeline(Phases(cost_model=cost, **parts | {"gate": GATE} | phases), Library(rules), {})


def operators(model: ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node]


def is_right(model: ModelProto, made: PipelineResult) -> bool:
    return compare(model, made.candidate).equivalent


def test_a_wrong_rule_is_left_out_and_the_right_one_still_has_its_turn(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = biased()
    made = pipeline(RIGHT, WRONG, reproducer=tmp_path / "r").run(model)
    (refusal,) = made.refusals
    assert (refusal.phase, refusal.differs, refusal.rules) == ("the check", True, (WRONG.id,))
    assert "rule lose-a-bias" in refusal.reason
    assert refusal.reproducer == tmp_path / "r"
    assert (tmp_path / "r/README.txt").exists()
    assert operators(made.candidate) == ["MatMul", "Add"]
    assert is_right(model, made)
    assert made.latency, "the next best is timed like any other"
    assert "computes something else and was refused" in caplog.text


def test_two_wrong_rules_have_a_reproducer_each(tmp_path: Path) -> None:
    """The second does not write over what shows the first, and both are left out of the next search."""
    model = chain(TensorProto.FLOAT, "Neg", "Relu", "MatMul:w", "Add:c", weights=_weights())
    made = pipeline(WRONG, LOSE_A_RELU, reproducer=tmp_path / "r").run(model)
    assert {refusal.rules[0] for refusal in made.refusals} == {WRONG.id, LOSE_A_RELU.id}
    folders = [refusal.reproducer for refusal in made.refusals]
    assert folders == [tmp_path / "r", tmp_path / "r.2"]
    for refusal, folder in zip(made.refusals, folders, strict=True):
        name = "lose-a-bias" if refusal.rules == (WRONG.id,) else "lose-a-relu"
        assert name in (folder / "README.txt").read_text()
    assert made.candidate is model


def test_where_the_search_cannot_be_made_again_the_steps_before_the_wrong_one_are_taken() -> None:
    """Greedy search cancels the negations and loses the bias; the order is that of what each saves."""
    model = biased()
    made = pipeline(RIGHT, WRONG, again=False).run(model)
    (refusal,) = made.refusals
    if refusal.step == 1:
        pytest.skip("by these prices the wrong step came first: nothing is left of its way")
    assert operators(made.candidate) == ["MatMul", "Add"]
    assert [step.rule for step in made.steps] == [RIGHT.id]
    assert made.result.best_ms == made.steps[-1].cost_ms
    assert is_right(model, made)


def test_where_nothing_is_left_the_original_comes_back_with_the_reason() -> None:
    model = chain(TensorProto.FLOAT, "MatMul:w", "Add:c", weights=_weights())
    made = pipeline(WRONG).run(model)
    assert made.candidate is model
    assert made.left_because.startswith("a rewritten model was refused, and without what made it, no sequence")
    alone = pipeline(WRONG, again=False).run(model)
    assert alone.candidate is model
    assert alone.left_because.startswith("the rewritten model is not equivalent: output 'y' differs")


def _weights() -> dict[str, Any]:
    return {"w": np.ones((64, 64), np.float32), "c": np.ones(64, np.float32)}


class DearerIsBetter(AnalyticCost):
    """Prices by which a rule pays that makes more work."""

    def runtime_ms(self, graph: Graph) -> float:
        return 1 / super().runtime_ms(graph)


def test_a_candidate_that_kills_its_process(tmp_path: Path) -> None:
    """The rule is found by running each step in a process of its own, and the whole model is kept as it was."""
    model = chain(TensorProto.FLOAT, "Neg", "Exp")
    made = pipeline(DEADLY, cost=DearerIsBetter(), reproducer=tmp_path / "r").run(model)
    (refusal,) = made.refusals
    assert (refusal.differs, refusal.rules, refusal.step) == (False, (DEADLY.id,), 1)
    assert "could not be run: the process that ran it was ended (SIGFPE)" in refusal.reason
    assert made.candidate is model
    assert "Div" in operators(onnx.load(tmp_path / "r/after.onnx"))


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_candidate_that_does_not_load_as_deployed(setting: Setting) -> None:
    """Also where the model is timed as written: people will run it as they run models."""
    weights = {"b": [0], "e": [1], "ax": [0], "lo": np.float64(-1), "hi": np.float64(1)}
    model = chain(TensorProto.DOUBLE, "Relu", "Slice:b,e,ax", "Clip:lo,hi", weights=weights, wide=512)
    made = pipeline(REFUSED_WHEN_FUSED, setting=setting).run(model)
    (refusal,) = made.refusals
    assert (refusal.differs, refusal.rules) == (False, (REFUSED_WHEN_FUSED.id,))
    assert refusal.fusions == ("FuseReluClip",)
    assert made.candidate is model


HIDING = {
    "rows": (SHIPPED.get("join-of-2-parts"), "h, i = Split <axis = 0> ({of}, half) r = Concat <axis = 0> (h, i)"),
    "columns": (SHIPPED.get("join-of-2-parts"), "h, i = Split <axis = 1> ({of}, half) r = Concat <axis = 1> (h, i)"),
    "signs": (RIGHT, "h = Neg({of}) r = Neg(h)"),
}
"""Rules, and nodes which change nothing, hide a pattern from ONNX Runtime and are taken away by the rule."""
NORM = (
    "q = Pow(d, two) {hidden} v = ReduceMean <axes = [-1], keepdims = 0> (r) e = Add(v, small) s = Sqrt(e) "
    "n = Div(d, s) y = Mul(n, g)"
)
HIDDEN = {
    "centred": "m = ReduceMean <axes = [-1], keepdims = 0> (x) d = Sub(x, m) " + NORM,
    "plain": "d = Identity(x) " + NORM,
    "quantised": "w = DequantizeLinear <axis = 0, block_size = 16> (whole, scales) {hidden} y = MatMul(x, r)",
}
"""What scales columns by norms of rows, which ONNX Runtime takes for a norm, and a product that it makes of 8 bits."""


def hidden(name: str, hiding: str) -> ModelProto:
    nodes = HIDDEN[name].format(hidden=hiding.format(of="w" if name == "quantised" else "q"))
    made = onnx.parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : 17]> hidden (float[64, 64] x) => (float[64, 64] y) {{{nodes}}}'
    )
    rng = np.random.default_rng(0)
    scales = np.abs(rng.standard_normal((4, 64), np.float32))
    weights = {"two": np.float32(2), "small": np.float32(1e-5), "g": rng.standard_normal(64, np.float32)}
    weights |= {"half": np.array([32, 32]), "scales": scales}
    named = {value for node in made.graph.node for value in node.input}
    made.graph.initializer.extend(numpy_helper.from_array(weights[name], name) for name in weights if name in named)
    if "whole" in named:
        made.opset_import[0].version = 21
        whole = helper.make_tensor("whole", TensorProto.INT4, [64, 64], rng.integers(-8, 8, 64 * 64).tolist())
        made.graph.initializer.append(whole)
    onnx.checker.check_model(made, full_check=True)
    return made


@pytest.mark.parametrize(
    ("name", "by", "setting"),
    [(name, by, SETTINGS[(i + j) % 2]) for i, name in enumerate(HIDDEN) for j, by in enumerate(HIDING)],
)
def test_what_lets_a_wrong_or_lossy_fusion_in_is_refused(name: str, by: str, setting: Setting) -> None:
    """The rule is right, and so is what it makes, as written; the fusion is named beside it."""
    rule, hiding = HIDING[by]
    model = hidden(name, hiding)
    assert not compare(model, model).differs_by_setting
    made = pipeline(rule, setting=setting).run(model)
    (refusal,) = made.refusals
    assert refusal.differs
    assert refusal.reason.endswith(f"through ONNX Runtime's {' and '.join(refusal.fusions)}")
    assert "as deployed" in refusal.reason
    expected = "QDQSelectorActionTransformer" if name == "quantised" else "SimplifiedLayerNormFusion"
    assert expected in refusal.fusions
    assert made.candidate is model


def test_an_original_whose_fusion_is_lossy_is_told_and_still_optimised() -> None:
    """Nothing that is delivered is farther off; the error as deployed is that of the original."""
    model = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 21]> lossy (float[64, 64] x) => (float[64, 64] y) '
        "{ a = Neg(x) b = Neg(a) w = DequantizeLinear <axis = 0, block_size = 16> (whole, scales) y = MatMul(b, w) }"
    )
    model.graph.initializer.extend(hidden("quantised", HIDING["signs"][1]).graph.initializer)
    made = pipeline(RIGHT, setting="deployed").run(model)
    assert operators(made.candidate) == ["DequantizeLinear", "MatMul"]
    report = made.equivalence
    assert report.differs_by_setting
    assert report.by_setting["as_written"].max_relative_error <= report.tolerance
    assert report.tolerance < report.by_setting["deployed"].max_relative_error <= report.own_error


class Failing:
    """A method whose search ends in an error."""

    name = "failing"

    def __init__(self, error: Exception) -> None:
        self.error, self.rewriter = error, Rewriter((RIGHT,))

    def optimise(self, graph: Graph, budget: Budget, on_progress: OnProgress | None = None) -> OptimisationResult:
        raise self.error


@dataclass(frozen=True)
class Unmeasurable(Shortlist):
    def best(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("no fragment of it runs")


FAULTS = [ReplayError("the way is lost"), RuntimeError("out of range"), MemoryError("too much"), KeyError("v3")]


@pytest.mark.parametrize("error", FAULTS, ids=lambda error: type(error).__name__)
def test_a_search_that_fails(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    """What is no error of ours is a fault of ours, and is logged with its traceback."""
    model = negations()
    made = pipeline(RIGHT, method=Failing(error), again=False).run(model)
    assert made.candidate is model
    assert made.left_because.startswith("the rewritten model failed in the search (")
    assert str(error.args[0]) in made.left_because
    is_ours = isinstance(error, RLFlowError)
    assert is_ours == ("please report it" not in caplog.text)


def test_what_the_user_cannot_do_is_an_error() -> None:
    with pytest.raises(InputError, match="no such policy"):
        pipeline(RIGHT, method=Failing(InputError("no such policy"))).run(negations())


def test_what_cannot_be_measured_is_checked_all_the_same(caplog: pytest.LogCaptureFixture) -> None:
    model = negations(TensorProto.FLOAT, "Exp")
    prices = MeasuredCost("as_written", empty_price_list(1), PricingConfig())
    made = pipeline(RIGHT, shortlist=Unmeasurable(prices), gate=replace(GATE, racers=1)).run(model)
    assert operators(made.candidate) == ["Exp"]
    assert made.measured is None
    assert "is checked unmeasured" in caplog.text


class FailingTest(SequentialTest):
    """Fails here; in other processes, which cannot import it, it is an ordinary one."""

    @property
    def bar(self) -> float:
        raise RuntimeError("the session is gone")

    def __reduce__(self) -> tuple[Any, ...]:
        return SequentialTest, (0.1,)


def test_a_candidate_that_cannot_be_timed() -> None:
    """The check has passed, and yet nothing is delivered."""
    model = negations(TensorProto.FLOAT, "Exp")
    assert operators(pipeline(RIGHT).run(model).candidate) == ["Exp"], "else the next would show nothing"
    made = pipeline(RIGHT, gate=replace(GATE, belief=Belief(test=FailingTest(error=0.1)))).run(model)
    assert made.candidate is model
    assert made.left_because == "the rewritten model failed in timing (RuntimeError: the session is gone)"


def test_all_that_a_candidate_raises_is_a_refusal_but_an_interrupt() -> None:
    with pytest.raises(Refused, match="failed in timing \\(KeyError: 'x'\\)"), of_candidate("timing"):
        raise KeyError("x")
    with pytest.raises(KeyboardInterrupt), of_candidate("timing"):
        raise KeyboardInterrupt
    known = Refused(Refusal("the check", "is wrong"))
    with pytest.raises(Refused) as passed, of_candidate("timing"):
        raise known
    assert passed.value is known
