"""The onnx package's own backend tests and its light models: whatever plain ONNX Runtime runs, it runs after import and
export, bit for bit, and within rounding after rewrites.
"""

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import helper
from support.conformance.backend import (
    LIGHT_MODELS,
    REWRITES,
    Case,
    Survival,
    Walk,
    run_case,
    survival_of_kind,
    survival_of_light_models,
    survival_of_light_models_with_drawn_weights,
)
from support.onnx_models import build_model, floats

# Lower bounds: newer packages bring more tests, and a run that compares nothing must not pass.
AT_LEAST = {"node": (1300, 1300), "simple": (15, 10), "pytorch-converted": (50, 50), "pytorch-operator": (20, 20)}
"""Models of each kind that survive, and that are rewritten."""
LARGE = ("light_bvlc_alexnet", "light_vgg19", "light_zfnet512")
"""Whose weights take longer to draw than all others together: for `make test MARK=fuzz ONLY=tests/onnx_io`."""


@pytest.mark.slow
@pytest.mark.parametrize("kind", AT_LEAST)
def test_whatever_onnx_runtime_runs_survives(kind: str, record_property: Callable[[str, object], None]) -> None:
    tally = survival_of_kind(kind)
    record_property("survival", tally.to_json())
    assert not tally.differences
    survive, are_rewritten = AT_LEAST[kind]
    assert tally.survived == tally.run_by_onnx_runtime >= survive
    assert tally.rewritten >= are_rewritten
    assert tally.rewrites >= 0.9 * REWRITES * tally.in_context
    assert len(tally.exceptions) <= 0.12 * tally.survived


@pytest.mark.slow
def test_light_models_survive() -> None:
    tally = survival_of_light_models()
    assert not tally.differences
    assert tally.survived == tally.rewritten == tally.models == len(LIGHT_MODELS) >= 9
    assert tally.rewrites == 20 * tally.models


@pytest.mark.slow
def test_light_models_with_drawn_weights_survive() -> None:
    tally = survival_of_light_models_with_drawn_weights([p for p in LIGHT_MODELS if p.stem not in LARGE])
    assert not tally.differences
    assert tally.survived == tally.rewritten == tally.models >= 6
    assert tally.rewrites == 20 * tally.models


def _negated_twice() -> Case:
    nodes = [helper.make_node("Neg", ["x"], ["n"]), helper.make_node("Neg", ["n"], ["y"])]
    model = build_model(nodes, [floats("x", 3)], [floats("y", 3)])
    return run_case("negated twice", model, [{"x": np.ones(3, np.float32)}])


def test_another_output_is_a_difference() -> None:
    """So the tests above can fail."""
    case, tally = _negated_twice(), Survival()
    wrong = Case(case.name, case.model, [(feeds, {"y": out["y"] + 1}) for feeds, out in case.runs])
    tally.import_and_export(wrong)
    tally.rewrite(wrong, Walk(least_rules=1))
    assert [d.partition(": ")[2] for d in tally.differences] == ["other outputs", "other outputs after 1 rewrites"]


def test_a_model_that_cannot_be_imported_is_a_difference() -> None:
    case, tally = _negated_twice(), Survival()
    broken = onnx.ModelProto()
    broken.CopyFrom(case.model)
    broken.graph.node[0].op_type = "NoSuchOperator"
    tally.import_and_export(Case(case.name, broken, case.runs))
    assert len(tally.differences) == 1
    assert "NoSuchOperator" in tally.differences[0]
