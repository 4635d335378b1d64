"""A false rule among the shipped ones: of what an e-graph makes with it nothing is delivered, and the rule is named."""

import re

import numpy as np
import pytest
from onnx import ModelProto, helper
from support.onnx_models import build_model, floats
from support.wrong_rule import WRONG

import rlflow
from rlflow.equivalence.compare import compare
from rlflow.onnx_io import from_onnx
from rlflow.rules.library import Library, load
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.rules.matching.sharing import SharingRewriter
from rlflow.trajectory import record

WIDTH = 16


def two_layers() -> ModelProto:
    """Products and biases, and a Tanh in between; the products are outputs, too."""
    rng = np.random.default_rng(0)
    weights = {f"w{layer}": rng.standard_normal((WIDTH, WIDTH)).astype(np.float32) / 4 for layer in range(2)}
    weights |= {f"b{layer}": rng.standard_normal(WIDTH).astype(np.float32) for layer in range(2)}
    nodes = [
        helper.make_node("MatMul", ["x", "w0"], ["product"]),
        helper.make_node("Add", ["product", "b0"], ["sum"]),
        helper.make_node("Tanh", ["sum"], ["hidden"]),
        helper.make_node("MatMul", ["hidden", "w1"], ["second"]),
        helper.make_node("Add", ["second", "b1"], ["y"]),
    ]
    outputs = [floats(name, 8, WIDTH) for name in ("y", "product", "second")]
    return build_model(nodes, [floats("x", 8, WIDTH)], outputs, weights=weights)


@pytest.mark.slow
def test_the_step_and_the_rule_are_named(tmp_path):
    """The products have other readers, so that the rule matches only where these may share them."""
    model, folder = two_layers(), tmp_path / "reproducer"
    graph = from_onnx(model)
    assert [kind([WRONG]).matches(graph).counts for kind in (Rewriter, SharingRewriter)] == [(0,), (2,)]
    made = rlflow.optimise(
        model,
        method="equality_saturation",
        library=Library((*load().rules, WRONG)),
        cost_model="analytic",
        setting="as_written",
        reproducer=folder,
    )
    (refusal,) = made.report.refusals
    assert re.search(r"it broke at step \d, rule lose-a-bias .* replacing '(sum|y)'", refusal.reason)
    assert compare(model, made.model).equivalent, "searched on without it"
    assert f"rule lose-a-bias ({WRONG.id})" in (folder / "README.txt").read_text()
    (recorded,) = record.load(folder / "trajectory.jsonl")
    assert recorded.matching == "sharing"
    assert [step.rule for step in recorded.steps] == [WRONG.id], "others were taken before, and are not to blame"
