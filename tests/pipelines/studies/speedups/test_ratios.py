"""Speedups beside public tools: in closed form on verdicts that are written down, and timed on small models."""

import math
from pathlib import Path

import pytest
from experiment.tables import speedups_table
from studies.speedups import documents
from studies.speedups.public_tools import Made
from studies.speedups.ratios import Rival, best_tool, is_met, of_tool, summary, time_rivals
from support.documents import sample

from rlflow import zoo
from rlflow.onnx_io import save_model
from rlflow.optimise.gate import GateConfig
from rlflow.runtime.timing.verdict import Verdict

OWN = {"rewrites": [{"rule": "add_as_sum", "count": 24}], "reason": "the rewritten model was not faster beyond noise"}
FAILED = sample(documents.Tool, failure="it ended with exit code 1: MemoryError", ratio=None, ratio_interval=None)
MODELS = {
    "bert": sample(
        documents.Model,
        ratio=1.0812,
        ratio_interval=[1.0714, 1.0903],
        control_ratio=1.0007,
        target=1.07,
        original_ms=120.5,
        public_tools={
            "ort_disable_all": sample(documents.Tool, failure="", ratio=1.0689, ratio_interval=[1.0601, 1.0777]),
            "onnxslim": FAILED,
        },
        optimise=sample(documents.Optimise, written="optimised", **OWN),
    ),
    "mobilenet_v2": sample(
        documents.Model,
        target=1.0,
        public_tools={"onnxsim": FAILED},
        optimise=sample(documents.Optimise, written="original", **OWN | {"rewrites": []}),
    ),
}


def verdict(ratio: float, low: float = 0.0, high: float = math.inf) -> Verdict:
    return Verdict(
        "undecided", ratio, low, high, control=1.0, rounds=9, faster_probability=0.5, harmful_probability=0.1
    )


@pytest.mark.parametrize(
    ("found", "target", "met"),
    [
        (verdict(1.08, 1.05, 1.10), 1.07, True),
        (verdict(1.06, 1.05, 1.10), 1.07, False),
        (verdict(0.995, 0.98, 1.01), 1.0, True),
        (verdict(0.97, 0.95, 0.99), 1.0, False),
        (verdict(0.97), 1.0, True),
    ],
)
def test_a_gain_must_be_measured_and_a_loss_too(found: Verdict, target: float, met: bool) -> None:
    assert is_met(found, target) is met


def test_the_best_tool_is_that_of_the_largest_ratio() -> None:
    """One that failed is none, however good its model would be."""
    tools = {
        "slow": of_tool(Made("1", 1.0), verdict(0.9, 0.8, 1.0)),
        "fast": of_tool(Made("1", 1.0), verdict(1.1)),
        "failed": of_tool(Made("1", 1.0, "it wrote no model"), None),
    }
    assert best_tool(tools) == {"name": "fast", "ratio": 1.1, "ratio_interval": None}
    assert best_tool({"failed": tools["failed"]}) is None


def test_doing_nothing_meets_the_targets_of_one() -> None:
    models = MODELS
    targets = summary(models, 60.0)["targets_met"]
    assert targets == {"value": 1.0, "baseline": 0.5, "baseline_name": "do_nothing", "cases": 2}
    missed = {name: row | {"met": False} for name, row in models.items()}
    assert summary(missed, 60.0)["targets_met"]["value"] == 0.0


def test_the_table_has_a_row_for_each_model() -> None:
    header, _, bert, mobilenet, *_ = speedups_table(MODELS).splitlines()
    assert header.endswith("| ort_disable_all | onnxslim | onnxsim | rewrites |")
    assert bert == (
        "| bert | 120.500 | **1.081 [1.071, 1.090]** | 1.07 | 1.001 | 1.069 [1.060, 1.078] | failed | - "
        "| add_as_sum x24 |"
    )
    assert mobilenet.endswith("| - | - | failed | the rewritten model was not faster beyond noise |")


@pytest.mark.slow
def test_a_rival_with_half_the_layers_is_faster_and_the_original_is_not(tmp_path: Path) -> None:
    """Twice the work is beyond any noise; the original among its own rivals is the control."""
    for layers in (16, 32):
        save_model(zoo.build("mlp", layers=layers, hidden=256), tmp_path / f"{layers}.onnx")
    original = tmp_path / "32.onnx"
    rivals = {
        "half": Rival(tmp_path / "16.onnx"),
        "itself": Rival(original),
        "as_written": Rival(original, "as_written"),
    }
    timing = time_rivals(original, rivals, GateConfig(rounds=12))
    assert list(timing.verdicts) == list(rivals)
    assert timing.verdicts["half"].ratio > 1.3
    assert timing.verdicts["half"].rounds == 12
    assert timing.verdicts["half"].ratio > timing.verdicts["itself"].ratio
    assert timing.original_ms > 0
