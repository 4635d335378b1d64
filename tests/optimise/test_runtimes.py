"""In several settings: what is delivered is never slower than the original in any of them, nor wrong in its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from onnx import ModelProto, parser
from support.coarse_runtime import COARSE, announce

import rlflow
from rlflow import zoo
from rlflow.equivalence.report import EquivalenceReport
from rlflow.onnx_io.external_data import write_mapped
from rlflow.optimise.api import _in_fastest
from rlflow.optimise.clock import NO_DEADLINE, Deadline
from rlflow.optimise.gate import GateConfig, judged
from rlflow.optimise.reported.settings import InSetting
from rlflow.optimise.runtimes import NO_TIME, Beside, fastest
from rlflow.optimise.timing import CANDIDATE, ORIGINAL, latency_change
from rlflow.runtime.timing.belief import Belief
from rlflow.runtime.timing.latency import Round


@pytest.fixture(autouse=True)
def coarse(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """ONNX Runtime whose outputs are cut to bfloat16."""
    announce(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    COARSE.opened.clear()


def row(setting: str, best_ms: float, *, is_right: bool = True, is_better: bool = False) -> InSetting:
    """One in which the better of both takes so long, where that in the first setting takes 2 ms."""
    times = dict.fromkeys(ORIGINAL, 2.0) | dict.fromkeys(CANDIDATE, best_ms)
    best = latency_change([Round(times)] * 4, Belief())
    return InSetting(setting, is_right=is_right, is_better=is_better, best=best)


@pytest.mark.parametrize(
    ("others", "chosen"),
    [
        ([row("openvino", 1.0)], "openvino"),
        ([row("openvino", 1.5), row("coarse", 1.0)], "coarse"),
        ([row("openvino", 1.5), row("coarse", 1.0, is_right=False)], "openvino"),
        ([row("openvino", 3.0)], "deployed"),
        ([row("openvino", 2.0)], "deployed"),
        ([InSetting("openvino", left_because="it does not run there")], "deployed"),
    ],
)
def test_the_fastest_is_one_that_is_right_and_clearly_faster(others: list[InSetting], chosen: str) -> None:
    assert fastest([row("deployed", 2.0), *others]).setting == chosen


def test_one_that_is_not_clearly_faster_than_the_result_in_the_first_setting_is_not_chosen() -> None:
    first = row("deployed", 2.0, is_better=True)
    assert _in_fastest((first, row("openvino", 2.0)), True, "faster") == ("deployed", True, "faster")


def test_the_result_in_the_first_setting_is_what_others_have_to_beat(tmp_path: Path) -> None:
    """Beside an original of twenty times the work, the same in another setting would be as good as anything."""
    settings = {"batch": 8, "inputs": 256, "hidden": 256, "outputs": 256}
    slow, fast = (zoo.build("mlp", layers=layers, **settings) for layers in (20, 1))
    asked, known = beside(slow, fast, tmp_path, GateConfig(draws=1, rounds=6, runs_per_round=2))
    first, other = replace(asked, is_better=True).rows(known, ["as_written"])
    assert first.best is not None
    assert first.best.verdict.ratio == 1.0
    assert other.best is not None
    assert other.best.verdict.decision == "slower", "the original, since the result is wrong"


def test_the_result_is_delivered_only_where_it_was_found_better() -> None:
    first = row("deployed", 2.0, is_better=True)
    setting, is_better, reason = _in_fastest((first, row("coarse", 1.0)), True, "faster")
    assert (setting, is_better) == ("coarse", False)
    assert "2.000 times as fast in a coarse runtime as the best as deployed" in reason
    setting, is_better, reason = _in_fastest((first, row("coarse", 0.5, is_better=True)), False, "not faster")
    assert (setting, is_better) == ("coarse", True)
    assert "equal within the tolerance there" in reason


def beside(
    model: ModelProto, made: ModelProto | None, folder: Path, config: GateConfig, deadline: Deadline = NO_DEADLINE
) -> tuple[Beside, EquivalenceReport]:
    judgement = judged(model, config)
    assert judgement.reference is not None, judgement.unjudgeable
    original = write_mapped(model, folder / "original.onnx")
    candidate = None if made is None else write_mapped(made, folder / "result.onnx")
    return Beside(original, candidate, "deployed", False, config, judgement.reference, deadline), judgement.report


FEW = GateConfig(draws=1, rounds=3, runs_per_round=1)


def test_the_original_alone_is_judged_by_the_tolerance_and_timed(tmp_path: Path) -> None:
    """Cut to eight digits, it is wrong as float32 goes; the runtime is that of another package."""
    asked, known = beside(zoo.build("tiny_chain"), None, tmp_path, FEW)
    first, other = asked.rows(known, ["coarse"])
    assert (first.setting, first.is_right, other.setting, other.is_right) == ("deployed", True, "coarse", False)
    assert first.error_before < 1e-6 < 2**-10 < other.error_before == other.error_after < 2**-7
    assert other.rewriting is None
    assert other.best is not None
    assert len(COARSE.opened) >= 2 * other.best.verdict.rounds, "it was timed there"
    (first, other) = beside(zoo.build("tiny_chain"), None, tmp_path, GateConfig(tolerance=1e-2))[0].rows(
        known, ["coarse"]
    )
    assert other.is_right


def test_a_result_that_is_wrong_is_not_the_better_one_however_fast(tmp_path: Path) -> None:
    settings = {"batch": 8, "inputs": 256, "hidden": 256, "outputs": 256}
    slow, fast = (zoo.build("mlp", layers=layers, **settings) for layers in (20, 1))
    asked, known = beside(slow, fast, tmp_path, GateConfig(draws=1, rounds=6, runs_per_round=2))
    _, other = asked.rows(known, ["as_written"])
    assert other.rewriting is not None
    assert other.rewriting.verdict.decision == "faster", "a twentieth of the work"
    assert (other.is_equivalent, other.is_better, other.is_right) == (False, False, True)


def test_without_time_rows_say_so(tmp_path: Path) -> None:
    asked, known = beside(zoo.build("tiny_chain"), None, tmp_path, FEW, Deadline.after(1e-9))
    rows = asked.rows(known, ["coarse"])
    assert [(each.setting, each.left_because, each.best) for each in rows] == [
        ("deployed", NO_TIME, None),
        ("coarse", NO_TIME, None),
    ]
    assert fastest(rows) is rows[0]


def test_what_a_setting_refuses_is_its_row(tmp_path: Path) -> None:
    pytest.importorskip("openvino")
    model = parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 17]>
        model (float[4, 4] x) => (float[4, 4] y, float d) { y = Neg(x)  d = Det(x) }
    """)
    asked, known = beside(model, None, tmp_path, FEW)
    first, other = asked.rows(known, ["openvino"])
    assert first.best is not None
    assert other.left_because.endswith("No conversion rule found for operations: Det-17")
    found = rlflow.optimise(model, setting="openvino", method="greedy", gate=FEW, budget_s=60.0)
    assert found.report.written == "original"
    assert "Det-17" in found.reason


def test_a_report_has_a_row_of_each_setting() -> None:
    """`to_json` holds it to the schema."""
    found = rlflow.optimise(
        zoo.build("tiny_chain"), method="greedy", beside=["coarse"], gate=FEW, budget_s=120.0, cost_model="analytic"
    )
    document = found.report.to_json()
    assert [each["setting"] for each in document["settings"]] == ["deployed", "coarse"]
    assert document["setting"] == "deployed", "the other is not right"
    assert document["settings"][1]["precision"] == "bfloat16"
    lines = found.report.summary().splitlines()
    (start,) = (place for place, line in enumerate(lines) if line.startswith("Fastest as deployed"))
    assert [line.split(":")[0].split(" ")[2] for line in lines[start + 1 : start + 3]] == ["ONNX", "Coarse"]
    assert "beyond the tolerance" in lines[start + 2]
