"""The rules of quantised numbers at work in models that ONNX Runtime's own tool quantised: not a bit is changed."""

import platform
from collections import Counter

import numpy as np
import onnx
import pytest
from onnx import parser
from support.quantised import MODELS, model_of

from rlflow.cost.base import CostContext
from rlflow.cost.predicted.cost import predicted
from rlflow.ir import Graph
from rlflow.onnx_io import from_onnx, to_onnx
from rlflow.rules.declared import quantised as quantised_rules
from rlflow.rules.declared.catalogue import rules_of
from rlflow.rules.library import load
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.runtime.inputs import draw_inputs
from rlflow.runtime.session import SETTINGS, fused_model, open_session, run

RULES = {rule.name: rule for rule in rules_of(quantised_rules)}
_MOST = 1000


def rewritten(graph: Graph) -> tuple[Graph, Counter[str]]:
    """The graph once no rule of quantised numbers matches any more, and how often each was carried out."""
    rewriter, fired = Rewriter(list(RULES.values())), Counter[str]()
    for _ in range(_MOST):
        match = next((first for first, *_ in filter(None, rewriter.matches(graph))), None)
        if match is None:
            return graph, fired
        graph = rewriter.apply(graph, match)
        fired[match.rule.name] += 1
    raise AssertionError(f"more than {_MOST} rewrites: {fired}")


def kernels(model: onnx.ModelProto) -> Counter[str]:
    """The operators of the model as ONNX Runtime runs it."""
    return Counter(node.op_type for node in fused_model(model).graph.node)


@pytest.mark.parametrize(
    ("name", "per_channel"), [*((name, False) for name in MODELS), ("bert", True), ("resnet", True)]
)
def test_bytes_are_moved_instead_of_floats_and_no_bit_changes(name: str, per_channel: bool) -> None:
    """As written and as deployed, for as long as any of the rules finds a place. Nothing of a ResNet is moved. Weights
    with scales along an axis are carried, and all around them is rewritten.
    """
    model = model_of(name, "uint8", per_channel)
    before = from_onnx(model)
    after, fired = rewritten(before)
    assert (sum(fired.values()) > 30) == (name != "resnet"), fired
    moved = {after.type_of(after.nodes[i].inputs[0]).dtype for i in after.order if after.nodes[i].op == "Transpose"}  # type: ignore
    assert moved <= {"uint8"}
    prices = predicted(CostContext())
    assert prices.runtime_ms(after) <= prices.runtime_ms(before)
    exported, feeds = to_onnx(after), draw_inputs(model, np.random.default_rng(0))
    onnx.checker.check_model(exported, full_check=True)
    for setting in SETTINGS:
        wanted, found = (run(open_session(each, setting), feeds) for each in (model, exported))
        assert {name: value.tobytes() for name, value in found.items()} == {
            name: value.tobytes() for name, value in wanted.items()
        }


@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_onnx_runtime_keeps_its_kernels_of_bytes(name: str) -> None:
    model = model_of(name, "uint8")
    exported = to_onnx(rewritten(from_onnx(model))[0])
    before, after = kernels(model), kernels(exported)
    assert before["QLinearMatMul"] > 0
    assert {op: count for op, count in after.items() if op.startswith("QLinear")} == {
        op: count for op, count in before.items() if op.startswith("QLinear")
    }


def test_signed_bytes_stay_where_they_are() -> None:
    """All laws hold for them, but only those that keep a QuantizeLinear and its DequantizeLinear together are tried."""
    _, fired = rewritten(from_onnx(model_of("gpt2", "int8")))
    assert fired.keys() <= {"quantise-once", "slice-before-rounding", "gather-before-rounding"}
    assert fired


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="other processors multiply int8 as it is")
def test_onnx_runtime_loses_kernels_where_signed_bytes_are_moved() -> None:
    """For as long as it does, rules move no int8: the product is computed in floats."""
    pair = "d = DequantizeLinear(q, scale, zero)"
    again = "r = QuantizeLinear(t, scale, zero) l = DequantizeLinear(r, scale, zero)"
    start = '<ir_version: 8, opset_import: ["" : 17]> product (float[4, 8] x) => (float[8, 8] y)'
    weights = "<float scale = {0.02}, int8 zero = {3}>"
    first = f"q = QuantizeLinear(x, scale, zero) {pair}"
    moved_floats = f"t = Transpose<perm = [1, 0]>(d) {again}"
    moved_bytes = "t = Transpose<perm = [1, 0]>(q) l = DequantizeLinear(t, scale, zero)"
    end = "m = MatMul(l, d) p = QuantizeLinear(m, scale, zero) y = DequantizeLinear(p, scale, zero)"
    counts = [
        kernels(parser.parse_model(f"{start} {weights} {{ {first} {moved} {end} }}"))["QLinearMatMul"]
        for moved in (moved_floats, moved_bytes)
    ]
    assert counts == [1, 0]


def test_only_what_is_read_is_quantised() -> None:
    """A head that reads one token: its slice goes through both, and where it was, a pair is none any more."""
    text = """
        <ir_version: 8, opset_import: ["" : 17]>
        head (float[2, 64, 32] x) => (float[2, 1, 16] y)
        <float scale = {0.05}, uint8 zero = {128}, int64[1] first = {0}, int64[1] end = {1}, int64[1] axis = {1}> {
            q = QuantizeLinear(x, scale, zero) d = DequantizeLinear(q, scale, zero)
            read = Slice(d, first, end, axis)
            r = QuantizeLinear(read, scale, zero) s = DequantizeLinear(r, scale, zero)
            y = Slice(s, first, end_of_row, last)
        }"""
    text = text.replace("int64[1] axis = {1}>", "int64[1] axis = {1}, int64[1] end_of_row = {16}, int64[1] last = {2}>")
    after, fired = rewritten(from_onnx(parser.parse_model(text)))
    assert {"slice-before-quantise", "slice-before-dequantise"} <= fired.keys()
    sizes = [after.nodes[i].types[0].elements for i in after.order if after.nodes[i].op == "QuantizeLinear"]  # type: ignore
    assert sizes == [32]


def test_the_library_has_the_rules() -> None:
    """With certificates that assume nothing of values: NaN and infinities are quantised alike wherever they are."""
    shipped = [rule for rule in load().rules if rule.family == quantised_rules.FAMILY]
    assert [rule.name for rule in shipped] == list(RULES)
    assert all(rule.assumes == () for rule in shipped)
