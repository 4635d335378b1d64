"""One model for several sizes: its dimensions stay dynamic, and it is checked and timed at each."""

from dataclasses import replace
from typing import Any

import pytest
from onnx import ModelProto
from support.onnx_models import with_drawn_weights
from support.texts import SUMMED, filled

import rlflow
from rlflow import zoo
from rlflow.equivalence.compare import compare
from rlflow.equivalence.report import EquivalenceReport
from rlflow.errors import InputError
from rlflow.optimise.api import (
    INTERRUPTED_TIMING,
    INTERRUPTED_UNTIMED,
    NOT_FASTER,
    SLOWER,
    UNDECIDED,
    UNTIMED,
    Optimised,
    _decision_at_sizes,
)
from rlflow.optimise.clock import NO_DEADLINE
from rlflow.optimise.gate import GateConfig, judged
from rlflow.optimise.reported.sizes import AtSize
from rlflow.optimise.timing import CANDIDATE, ORIGINAL, latency_change
from rlflow.rules import user_rules
from rlflow.rules.library import Library
from rlflow.rules.rule import rule_from_json
from rlflow.runtime.sizes import Shapes, Size, each_size
from rlflow.runtime.timing.belief import Belief
from rlflow.runtime.timing.latency import Round

TOKENS = ("input_ids", "token_type_ids", "attention_mask")
FAST: dict[str, Any] = {
    "method": "greedy",
    "cost_model": "analytic",
    "shortlist": 0,
    "budget_s": 120.0,
    "setting": "as_written",
    "gate": GateConfig(draws=1, rounds=2, runs_per_round=1),
}


def optimise(model: ModelProto, shapes: Shapes, **settings: Any) -> Optimised:
    return rlflow.optimise(model, shapes=shapes, **(FAST | settings))


def bert() -> ModelProto:
    settings = {"layers": 2, "hidden": 64, "heads": 4, "intermediate": 128, "vocabulary": 100, "positions": 64}
    return zoo.build("bert", sequence="sequence", **settings)


def tokens(*lengths: int) -> Shapes:
    return {name: [(1, length) for length in lengths] for name in TOKENS}


@pytest.fixture(scope="module")
def of_bert() -> Optimised:
    return optimise(bert(), tokens(16, 40, 7))


@pytest.fixture(scope="module")
def of_cnn() -> Optimised:
    return optimise(zoo.build("conv", batch="batch"), {"image": [(1, 3, 32, 32), (5, 3, 32, 32)]})


@pytest.mark.parametrize("which", ["of_bert", pytest.param("of_cnn", marks=pytest.mark.slow)])
def test_a_rewritten_model_runs_at_each_size_and_at_others(which: str, request: pytest.FixtureRequest) -> None:
    """Whether it is faster is not the question here; that it was rewritten shows that something was checked."""
    found: Optimised = request.getfixturevalue(which)
    before, after = found.source.model, rlflow.to_onnx(found.result.best)
    assert len(after.graph.node) < len(before.graph.node)
    assert list(before.graph.input) == list(after.graph.input)
    (symbol,) = {d.dim_param for value in after.graph.input for d in value.type.tensor_type.shape.dim if d.dim_param}
    for size in (1, 3, 33):
        assert compare(before, after, dimensions={symbol: size}).equivalent
    report = found.report
    assert (report.pinned, report.pinned_for) == ({}, ())
    assert all(row.equivalence.equivalent and row.latency for row in report.sizes)


def test_the_report_has_a_row_for_each_size(of_bert: Optimised) -> None:
    document, summary = of_bert.report.to_json(), of_bert.report.summary()
    assert [row["shapes"]["input_ids"] for row in document["sizes"]] == [[1, 16], [1, 40], [1, 7]]
    assert document["shapes"] == document["sizes"][0]["shapes"]
    assert document["latency"] == document["sizes"][0]["latency"]
    for length in (16, 40, 7):
        assert f"  input_ids=1x{length}, token_type_ids=1x{length}, attention_mask=1x{length}: " in summary


@pytest.mark.slow
def test_what_holds_at_some_sizes_alone_is_not_done() -> None:
    """At one size alone it is, and pins the model to it; its report has no rows."""
    sizes = [(256, 64), (128, 64)]
    several = optimise(with_drawn_weights(SUMMED), {"x": sizes, "z": sizes})
    alone = optimise(with_drawn_weights(SUMMED), {"x": sizes[0], "z": sizes[0]})
    assert alone.report.pinned_for
    assert alone.report.sizes == ()
    assert alone.report.shapes == {"x": (256, 64), "z": (256, 64)}
    assert not several.result.trajectory.steps
    assert several.model is several.source.model


RIGHT_FOR_ONE_COLUMN = rule_from_json(
    "drop-softmax", "linear", [["Mul", "a", ["Softmax", "a"]]], [["Neg", ["Neg", "a"]]]
)
"""A softmax over one number is 1."""
ONE_COLUMN = """
    <ir_version: 8, opset_import: ["" : 17]>
    columns (float[64, n] x) => (float[64, n] y)
    <float[64, 64] w> {
        a = MatMul(w, x)
        s = Softmax(a)
        y = Mul(a, s)
    }
"""


@pytest.fixture
def with_a_rule_for_one_column(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no certificate, and is put there by hand."""
    shipped = user_rules.load()
    right = [shipped.get("bias-add-to-sum")]
    monkeypatch.setattr(user_rules, "load", lambda path=None: Library((*right, RIGHT_FOR_ONE_COLUMN)))


@pytest.mark.slow
@pytest.mark.usefixtures("with_a_rule_for_one_column")
def test_what_is_wrong_at_one_size_is_refused_and_the_search_goes_on_without_it() -> None:
    """At its own size alone nothing is wrong with it."""
    alone = optimise(filled(ONE_COLUMN), {"x": (64, 1)})
    assert [step.rule for step in alone.report.steps] == [RIGHT_FOR_ONE_COLUMN.id]
    assert alone.report.equivalence.equivalent
    assert not alone.report.refusals
    several = optimise(filled(ONE_COLUMN), {"x": [(64, 1), (64, 8)]})
    (refusal,) = several.report.refusals
    assert refusal.differs
    assert refusal.rules == (RIGHT_FOR_ONE_COLUMN.id,)
    assert "at x=64x8" in refusal.reason
    assert several.written == "original"


def test_a_size_at_which_the_original_does_not_run_is_named() -> None:
    """It has 64 positions."""
    found = optimise(bert(), tokens(16, 80))
    assert found.written == "original"
    assert "it could not be tried here" in found.reason
    assert found.reason.endswith("at input_ids=1x80, token_type_ids=1x80, attention_mask=1x80")


def test_a_size_that_leaves_a_dimension_open_is_named() -> None:
    found = optimise(with_drawn_weights(SUMMED), {"x": [(256, 64), (128, 64)]})
    assert "its dimensions m are dynamic" in found.reason
    assert found.reason.endswith("at x=256x64")


def test_several_sizes_are_for_one_runtime() -> None:
    with pytest.raises(InputError, match="several sizes are for one runtime"):
        optimise(bert(), tokens(16, 40), setting="deployed", beside=["as_written"])


def test_the_original_is_judged_at_each_size() -> None:
    """Each has its own inputs and outputs, and its time."""
    model = with_drawn_weights(SUMMED)
    sizes = tuple(each_size(model, {"x": [(4, 64), (6, 64)], "z": [(4, 64), (6, 64)]}))
    judgement = judged(model, GateConfig(draws=1, dimensions=sizes[0].dimensions, sizes=sizes))
    assert len(judgement.at_each_size) == 2
    for own, rows in zip(judgement.at_each_size, (4, 6), strict=True):
        assert own.reference is not None
        assert own.reference.inputs[0]["x"].shape == (rows, 64)
        assert own.wall_s > 0


def rows(*times_ms: float, count: int = 12) -> tuple[AtSize, ...]:
    """Of a candidate beside an original that takes 2 ms at each size; nothing was timed at the size of 0 ms."""
    equal = EquivalenceReport(True, "", 0.0, 0.0, 1e-5, draws=1, non_vacuous_draws=1)
    both = [dict.fromkeys(ORIGINAL, 2.0) | dict.fromkeys(CANDIDATE, each) for each in times_ms]
    changes = [latency_change([Round(each)] * count, Belief()) if each[CANDIDATE[0]] else None for each in both]
    latencies = [{} if change is None else {"deployed": change} for change in changes]
    return tuple(AtSize(Size({"x": (place,)}, {}), equal, latency) for place, latency in enumerate(latencies, start=1))


@pytest.mark.parametrize(
    ("given", "is_interrupted", "is_better", "reason"),
    [
        (rows(1.0, 2.0), False, True, "faster at 1 of 2 sizes, slower at none, and equal within rounding at each"),
        (rows(1.0, 4.0), False, False, f"at x=2, {SLOWER}"),
        (rows(1.0, 4.0), True, False, f"at x=2, {SLOWER}"),
        (rows(1.0, 0.0), False, False, f"{UNTIMED} at x=2"),
        (rows(1.0, 0.0), True, True, INTERRUPTED_TIMING),
        (rows(0.0, 0.0), True, True, INTERRUPTED_UNTIMED),
        (rows(1.0) + rows(2.0, count=1), False, False, "could not rule out that the rewritten model is slower at x=1"),
        (rows(2.0, 2.0, count=1), False, False, f"{UNDECIDED} at x=1; x=2"),
        (rows(2.0, 2.0, count=100), False, False, NOT_FASTER),
    ],
)
def test_the_decision_over_sizes_says_why(
    given: tuple[AtSize, ...], is_interrupted: bool, is_better: bool, reason: str
) -> None:
    deadline = replace(NO_DEADLINE, is_interrupted=lambda: is_interrupted)
    found = _decision_at_sizes(given, "deployed", GateConfig(), deadline)
    assert found[0] is is_better
    assert found[1].endswith(reason)
