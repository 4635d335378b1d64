"""Passes before the search: what is cheaper is taken, checked and told of, and nothing else changes a model."""

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper
from support.small_models import build_model, dense_model

import rlflow
from rlflow.cost.analytic import AnalyticCost
from rlflow.cost.base import CostModel
from rlflow.equivalence.compare import compare
from rlflow.errors import InputError
from rlflow.method import OnProgress
from rlflow.onnx_io import graph_of
from rlflow.optimise import pre_passes
from rlflow.optimise.clock import NO_DEADLINE, Deadline
from rlflow.optimise.gate import GateConfig, judgeable
from rlflow.optimise.phases import Phases
from rlflow.optimise.pre_passes import HAS_DEFAULTS, NO_TIME, NOT_CHEAPER, TOO_LARGE, FirstMove, GraphOf, Moved
from rlflow.optimise.reported.passes import PassesReport
from rlflow.rules.library import Library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.search.no_op import Nothing

ANALYTIC = AnalyticCost()
BY_GREEDY: dict[str, Any] = {
    "method": "greedy",
    "passes": "onnx",
    "setting": "as_written",
    "cost_model": "analytic",
    "shortlist": 0,
    "gate": GateConfig(draws=1, rounds=4, runs_per_round=1),
}


def detour(domain: str = "") -> ModelProto:
    """Relu of a matrix that is transposed twice; with a domain, Relu is its operator, which nobody knows."""
    return build_model(
        [
            helper.make_node("Transpose", ["x"], ["turned"], perm=[1, 0]),
            helper.make_node("Transpose", ["turned"], ["back"], perm=[1, 0]),
            helper.make_node("Relu", ["back"], ["y"], domain=domain),
        ],
        [("x", TensorProto.FLOAT, [512, 512])],
        [("y", TensorProto.FLOAT, [512, 512])],
    )


def of(model: ModelProto, deadline: Deadline = NO_DEADLINE) -> Moved:
    return FirstMove().of(model, graph_of, ANALYTIC, deadline)


@pytest.mark.slow
def test_the_cheapest_of_what_passes_make_is_taken() -> None:
    """Two transposes in vain are gone; and the same passes are found again."""
    model = detour()
    moved = of(model)
    assert [node.op_type for node in moved.model.graph.node] == ["Relu"]
    assert compare(model, moved.model).equivalent
    report = moved.report
    assert report.passes
    assert not report.left_because
    assert report.tried >= len(report.passes)
    assert report.cost_before_ms == ANALYTIC.runtime_ms(graph_of(model))
    assert report.cost_after_ms == ANALYTIC.runtime_ms(graph_of(moved.model)) < report.cost_before_ms
    assert of(model).report.passes == report.passes
    assert [node.op_type for node in model.graph.node] == ["Transpose", "Transpose", "Relu"], "which stays as it is"


def test_the_very_model_comes_out_where_nothing_is_cheaper() -> None:
    model = build_model(
        [helper.make_node("Relu", ["x"], ["y"])],
        [("x", TensorProto.FLOAT, [4, 4])],
        [("y", TensorProto.FLOAT, [4, 4])],
    )
    moved = of(model)
    assert moved.model is model
    assert (moved.report.passes, moved.report.left_because) == ((), NOT_CHEAPER)
    assert moved.report.tried > 10


def test_what_no_pass_can_read_is_left_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    model = detour(domain="com.example")
    model.opset_import.add(domain="com.example", version=1)
    moved = of(model)
    assert moved.model is model
    assert "com.example" in moved.report.left_because
    defaults = dense_model()
    defaults.graph.input.append(helper.make_tensor_value_info("b", TensorProto.FLOAT, [8]))
    assert of(defaults).report.left_because == HAS_DEFAULTS
    monkeypatch.setattr(pre_passes, "MESSAGE_LIMIT_BYTES", 100)
    assert of(dense_model()).report.left_because == TOO_LARGE
    assert of(detour()).report.passes, "it has no weights"


def test_the_time_ends_it_whatever_it_is_doing() -> None:
    """Before it begins, while the process of the libraries starts, and between passes: the very model comes out."""
    model = detour()
    late = of(model, Deadline.after(1.0, since_s=-2.0, now_s=lambda: 0.0))
    assert (late.report.tried, late.report.left_because) == (0, NO_TIME)
    began = time.perf_counter()
    starting = of(model, Deadline.after(0.2))
    assert time.perf_counter() - began < 30.0, "much less than the minutes that a call may take"
    assert starting.model is model
    assert starting.report.left_because
    asked = iter(range(1_000_000))
    interrupted = of(model, Deadline.after(None, is_interrupted=lambda: next(asked) > 60))
    assert interrupted.report.tried < of(model).report.tried, "it has not come to all passes"
    assert bool(interrupted.report.passes) != bool(interrupted.report.left_because)


def test_what_nothing_computes_with_is_kept() -> None:
    model = detour()
    model.ir_version, model.producer_name, model.doc_string = 8, "somebody", "a detour"
    model.metadata_props.add(key="names", value="cat, dog")
    made = of(model).model
    assert made is not model
    described = [(m.ir_version, m.producer_name, m.doc_string, m.graph.name) for m in (model, made)]
    assert described[0] == described[1]
    assert [(p.key, p.value) for p in made.metadata_props] == [("names", "cat, dog")]
    onnx.checker.check_model(made)


def test_compilers_of_other_programs_are_refused() -> None:
    with pytest.raises(InputError, match="passes of 'xla' make no ONNX model: choose onnx or onnx-contrib"):
        FirstMove("xla")


@dataclass(frozen=True)
class Wrong(FirstMove):
    """A false control: it makes another model of each."""

    def of(
        self,
        model: ModelProto,
        graph_of: GraphOf,
        cost_model: CostModel,
        deadline: Deadline,
        on_progress: OnProgress | None = None,
    ) -> Moved:
        other = dense_model(scale=3.0)
        return Moved(other, PassesReport(self.backend, ("onnxslim:wrong",), 1, 2.0, 1.0))


@pytest.mark.slow
def test_what_computes_something_else_is_not_taken(tmp_path: Path) -> None:
    model, file = dense_model(), tmp_path / "original.onnx"
    onnx.save(model, file)
    phases = Phases(
        Nothing(Library(()), Rewriter(()), ANALYTIC), ANALYTIC, "deployed", GateConfig(), first_move=Wrong()
    )
    judgement = judgeable(file, phases.gate)

    def moved(pre_passes: FirstMove) -> Moved:
        found = replace(phases, first_move=pre_passes).move(model, file, graph_of, judgement, NO_DEADLINE)
        assert found is not None
        return found

    refused = moved(Wrong())
    assert refused.model is model
    assert refused.report.passes == ()
    assert refused.report.left_because.startswith("after onnxslim:wrong, it is not equivalent")
    assert "not equivalent" not in moved(FirstMove()).report.left_because
    assert replace(phases, first_move=None).move(model, file, graph_of, judgement, NO_DEADLINE) is None
    assert phases.inside("the body of y", []).first_move is None, "they have looked at subgraphs already"


@pytest.mark.slow
def test_steps_follow_passes_at_dynamic_sizes() -> None:
    """Two transposes in vain, which passes remove, and a Relu of a Relu, for the rules; the size stays dynamic."""
    model = build_model(
        [
            helper.make_node("Transpose", ["x"], ["turned"], perm=[1, 0]),
            helper.make_node("Transpose", ["turned"], ["back"], perm=[1, 0]),
            helper.make_node("Relu", ["back"], ["once"]),
            helper.make_node("Relu", ["once"], ["y"]),
        ],
        [("x", TensorProto.FLOAT, ["n", 256])],
        [("y", TensorProto.FLOAT, ["n", 256])],
    )
    found = rlflow.optimise(model, **BY_GREEDY, shapes={"x": (512, 256)})
    report = found.report.to_json()
    assert report["passes"]["passes"]
    assert report["passes"]["cost_before_ms"] == report["cost_before_ms"] > report["passes"]["cost_after_ms"]
    assert (report["nodes_before"], report["nodes_after"], report["pinned"]) == (4, 1, {})
    assert report["passes"]["cost_after_ms"] >= report["cost_after_ms"]
    assert compare(model, found.model, dimensions={"n": 3}).equivalent


def test_a_method_without_rules_refuses_rules() -> None:
    with pytest.raises(InputError, match="the method passes uses no rules"):
        rlflow.optimise(detour(), method="passes", disabled=["sum"])


@pytest.mark.slow
def test_passes_alone_and_before_a_search() -> None:
    """As written, since ONNX Runtime would undo the detour itself."""
    model = detour()
    alone = rlflow.optimise(model, method="passes", setting="as_written")
    assert alone.written == "optimised"
    report = alone.report.to_json()
    assert report["passes"]["passes"]
    assert (report["nodes_before"], report["nodes_after"], report["steps"]) == (3, 1, [])
    assert report["cost_before_ms"] > report["cost_after_ms"]
    assert "Passes of onnx first: " in alone.report.summary()
    before = rlflow.optimise(model, **BY_GREEDY)
    assert before.report.passes is not None
    assert before.report.passes.passes
    assert before.report.method == "greedy"
    drawn = {"x": np.random.default_rng(0).standard_normal((512, 512)).astype(np.float32)}
    assert compare(model, before.model, inputs=[drawn]).equivalent
