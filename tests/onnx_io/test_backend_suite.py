"""The onnx package's own backend tests and its light models: whatever plain ONNX Runtime runs, it runs after import and
export, bit for bit, and within rounding after rewrites.
"""

from collections.abc import Callable, Sequence
from datetime import date
from math import ceil
from pathlib import Path

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
    load_tests,
    run_case,
    survival_of_light_models,
    survival_of_light_models_with_drawn_weights,
    survival_of_tests,
)
from support.onnx_models import build_model, floats
from support.repository import REPOSITORY
from support.rotating_sample import sample, turn

# Lower bounds: newer packages bring more tests, and a run that compares nothing must not pass.
AT_LEAST = {"node": (1300, 1300), "simple": (15, 10), "pytorch-converted": (50, 50), "pytorch-operator": (20, 20)}
"""Models of each kind that survive, and that are rewritten."""
PARTS = {"node": 4}
"""Of so many models one: as many commits in a row reach all, and `make test MARK=fuzz ONLY=tests/onnx_io` takes all."""
TODAY = turn(REPOSITORY, date.today())
SMALLER = [p for p in LIGHT_MODELS if p.stem not in ("light_bvlc_alexnet", "light_vgg19", "light_zfnet512")]
"""The weights of the others take longer to draw than all of these together."""


@pytest.mark.parametrize("kind", AT_LEAST)
def test_whatever_onnx_runtime_runs_survives(kind: str, record_property: Callable[[str, object], None]) -> None:
    tests, parts = load_tests(kind), PARTS.get(kind, 1)
    tally = survival_of_tests(sample(tests, TODAY, ceil(len(tests) / parts)))
    record_property("survival", tally.to_json())
    assert not tally.differences
    survive, are_rewritten = (0.9 * number / parts for number in AT_LEAST[kind])
    assert tally.survived == tally.run_by_onnx_runtime >= survive
    assert tally.rewritten >= are_rewritten
    assert tally.rewrites >= 0.9 * REWRITES * tally.in_context
    assert len(tally.exceptions) <= 0.15 * tally.survived


@pytest.mark.slow
@pytest.mark.parametrize("survival", [survival_of_light_models, survival_of_light_models_with_drawn_weights])
def test_light_models_survive(survival: Callable[[Sequence[Path]], Survival]) -> None:
    """Two for each commit."""
    assert len(SMALLER) >= 6
    tally = survival(sample(SMALLER, TODAY, 2))
    assert not tally.differences
    assert tally.survived == tally.rewritten == tally.models >= 1
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
