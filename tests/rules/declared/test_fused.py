"""Fused operators from their pieces as exporters write them, and back: real models, real outputs."""

import onnx
import pytest
from onnx import parser
from support.rewrites import matching_rules, rewritten_model

from rlflow.ir.text import from_text, to_text
from rlflow.onnx_io import check_model, from_onnx
from rlflow.rules.declared import fused
from rlflow.rules.declared.catalogue import declared_rules, rules_of
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.runtime.session import open_session

RULES = {rule.name: rule for rule in rules_of(fused)}
CURATED = {rule.name: rule for rule in declared_rules()}


def parsed(text: str, *, opset: int = 23) -> onnx.ModelProto:
    """A model of ONNX's own notation for graphs."""
    model = parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}]> {text}')
    check_model(model)
    return model


def found(model: onnx.ModelProto) -> list[str]:
    return matching_rules(RULES.values(), model)


def rewritten(model: onnx.ModelProto, name: str) -> onnx.ModelProto:
    return rewritten_model(CURATED[name], model)


ERF = {
    "quotient-half-of-all": "r = Div(x, s) e = Erf(r) p = Add(e, one) m = Mul(x, p) y = Mul(m, half)",
    "quotient-half-of-x": "r = Div(x, s) e = Erf(r) p = Add(one, e) m = Mul(half, x) y = Mul(p, m)",
    "quotient-half-of-gate": "r = Div(x, s) e = Erf(r) p = Add(e, one) m = Mul(half, p) y = Mul(x, m)",
    "product-half-of-all": "r = Mul(x, i) e = Erf(r) p = Add(e, one) m = Mul(p, x) y = Mul(half, m)",
    "product-half-of-x": "r = Mul(i, x) e = Erf(r) p = Add(e, one) m = Mul(x, half) y = Mul(m, p)",
    "product-half-of-gate": "r = Mul(i, x) e = Erf(r) p = Add(one, e) m = Mul(p, half) y = Mul(m, x)",
}


def gelu(body: str, *, opset: int = 20, root: str = "1.4142135") -> onnx.ModelProto:
    weights = f"float s = {{{root}}}, float i = {{0.70710677}}, float one = {{1}}, float half = {{0.5}}"
    weights += ", float k = {0.7978846}, float c = {0.044715}, float three = {3}"
    return parsed(f"g (float[n, 6] x) => (float[n, 6] y) <{weights}> {{ {body} }}", opset=opset)


@pytest.mark.parametrize("form", ERF)
def test_a_gelu_by_the_error_function_becomes_one_operator_and_its_pieces_again(form: str) -> None:
    model = gelu(ERF[form])
    assert found(model) == [f"fuse-gelu-of-{form}"]
    fused = rewritten(model, f"fuse-gelu-of-{form}")
    assert [n.op_type for n in fused.graph.node] == ["Gelu"]
    pieces = rewritten(fused, "unfuse-gelu")
    assert [n.op_type for n in pieces.graph.node] == ["Div", "Erf", "Add", "Mul", "Mul"]
    assert found(pieces) == ["fuse-gelu-of-quotient-half-of-all"]


def test_a_graph_without_its_weights_has_no_numbers() -> None:
    text = to_text(from_onnx(gelu(ERF["quotient-half-of-all"])))
    assert not any(Rewriter(list(RULES.values())).matches(from_text(text)))


TANH = {
    "power-half-of-all": "u = Pow(x, three) v = Mul(u, c) w = Add(x, v) t = Mul(w, k) h = Tanh(t) p = Add(h, one)"
    " m = Mul(x, p) y = Mul(m, half)",
    "product-half-of-x": "q = Mul(x, x) u = Mul(x, q) v = Mul(c, u) w = Add(x, v) t = Mul(k, w) h = Tanh(t)"
    " p = Add(one, h) m = Mul(half, x) y = Mul(m, p)",
}


@pytest.mark.parametrize("form", TANH)
def test_a_gelu_by_a_hyperbolic_tangent_is_an_operator_of_its_own(form: str) -> None:
    fused = rewritten(gelu(TANH[form]), f"fuse-tanh-gelu-of-{form}")
    (node,) = fused.graph.node
    assert (node.op_type, node.attribute[0].s) == ("Gelu", b"tanh")
    assert found(fused) == ["unfuse-tanh-gelu"]


def test_gelus_of_one_tensor_come_apart_into_what_onnx_runtime_takes() -> None:
    pieces = "r = Div(a, s) e = Erf(r) p = Add(e, one) m = Mul(a, half) z = Mul(m, p)"
    model = gelu(f'a = Relu(x) {pieces} o = Gelu<approximate = "tanh">(a) y = Add(z, o)')
    apart = rewritten(model, "unfuse-tanh-gelu")
    assert "Gelu" not in {node.op_type for node in apart.graph.node}
    assert open_session(apart, "deployed").get_outputs(), "it is refused where both have a half of a in common"


@pytest.mark.parametrize(
    "model",
    [
        gelu(ERF["quotient-half-of-all"], opset=19),
        gelu(ERF["quotient-half-of-all"], root="1.41"),
        gelu(ERF["quotient-half-of-all"], root="1.414214"),
        gelu(ERF["quotient-half-of-all"].replace("half", "one")),
        gelu(ERF["quotient-half-of-all"].replace("Mul(x, p)", "Mul(r, p)")),
        gelu(TANH["power-half-of-all"].replace("(u, c)", "(u, i)")),
    ],
    ids=["opset-19", "1.41", "1.414214", "no-half", "another-factor", "another-cubic"],
)
def test_what_is_nearly_a_gelu_is_none(model: onnx.ModelProto) -> None:
    assert found(model) == []


def test_a_number_that_comes_from_outside_is_not_known() -> None:
    text = "g (float[n, 6] x, float s) => (float[n, 6] y) <float one = {1}, float half = {0.5}>"
    model = parsed(f"{text} {{ {ERF['quotient-half-of-all']} }}")
    assert found(model) == []


RMS = {
    "power-reciprocal": "q = Pow(x, two) a = ReduceMean<keepdims=1>(q, last) b = Add(a, e) c = Sqrt(b)"
    " i = Reciprocal(c) n = Mul(x, i) y = Mul(g, n)",
    "power-inverse": "q = Pow(x, two) a = ReduceMean<keepdims=1>(q, last) b = Add(a, e) c = Sqrt(b)"
    " i = Div(ones, c) n = Mul(x, i) y = Mul(g, n)",
    "product-quotient": "q = Mul(x, x) a = ReduceMean<keepdims=1>(q, last) b = Add(e, a) c = Sqrt(b)"
    " n = Div(x, c) y = Mul(n, g)",
}


def rms_norm(body: str, *, opset: int = 23, shape: str = "n, 3, 4") -> onnx.ModelProto:
    """The epsilon of LLaMA; `ones` is how torch writes the 1 of a reciprocal root."""
    weights = "float two = {2}, int64[1] last = {-1}, float e = {0.000001}, float[1] ones = {1}"
    weights += ", float[4] g = {1, -2, 0.5, 3}, float[4] shift = {0, 1, 2, 3}"
    return parsed(f"g (float[{shape}] x) => (float[{shape}] y) <{weights}> {{ {body} }}", opset=opset)


@pytest.mark.parametrize("form", RMS)
def test_a_root_mean_square_becomes_one_operator_and_its_pieces_again(form: str) -> None:
    model = rms_norm(RMS[form])
    assert found(model) == [f"fuse-rms-norm-of-{form}"]
    fused = rewritten(model, f"fuse-rms-norm-of-{form}")
    (node,) = fused.graph.node
    assert (node.op_type, node.attribute[1].f) == ("RMSNormalization", pytest.approx(1e-6))
    pieces = rewritten(fused, "unfuse-rms-norm")
    assert found(pieces) == ["fuse-rms-norm-of-power-reciprocal"]


@pytest.mark.parametrize(
    "model",
    [
        rms_norm(RMS["product-quotient"], opset=22),
        rms_norm(RMS["product-quotient"].replace("ReduceMean", "ReduceSum")),
        rms_norm(RMS["product-quotient"].replace("Div(x, c)", "Div(x, b)")),
        rms_norm(
            "m = ReduceMean<keepdims=1>(x, last) z = Sub(x, m) " + RMS["product-quotient"].replace("(x, x)", "(z, z)")
        ),
        rms_norm(RMS["power-inverse"].replace("ones", "e")),
        rms_norm("first = ArgMin<axis=0, keepdims=1>(shift) " + RMS["product-quotient"].replace("last", "first")),
    ],
    ids=["opset-22", "a-sum", "no-root", "of-differences", "not-the-inverse", "axes-that-are-computed"],
)
def test_what_is_nearly_a_root_mean_square_is_none(model: onnx.ModelProto) -> None:
    assert found(model) == []


def test_a_layer_normalisation_comes_apart() -> None:
    model = rms_norm("y = LayerNormalization<epsilon=0.001>(x, g, shift)")
    pieces = rewritten(model, "unfuse-layer-norm")
    assert [n.op_type for n in pieces.graph.node] == [
        *("ReduceMean", "Sub", "Pow", "ReduceMean", "Add", "Sqrt", "Div", "Mul", "Add")
    ]


def test_a_number_in_a_row_of_one_must_not_add_an_axis() -> None:
    """As torch writes some: nothing beside a row, but a row beside a scalar, which Gelu leaves a scalar."""
    body = "r = Div(x, s) e = Erf(r) p = Add(e, one) m = Mul(x, p) y = Mul(m, half)"
    for total, matches in (("Identity(z)", ["fuse-gelu-of-quotient-half-of-all"]), ("ReduceSum<keepdims=0>(z)", [])):
        weights = "float[1] one = {1}, float half = {0.5}, float s = {1.4142135}"
        model = parsed(f"g (float[1] z) => (float[1] y) <{weights}> {{ x = {total} {body} }}")
        assert found(model) == matches


SCORES = "t = Transpose<perm = [0, 1, 3, 2]>(k) a = MatMul(q, t)"
ATTENTION = {
    "fuse-attention": f"{SCORES} b = Mul(a, s) w = Softmax(b) y = MatMul(w, v)",
    "fuse-attention-with-mask": f"{SCORES} h = Tanh(m) b = Mul(s, a) c = Add(b, h) w = Softmax(c) y = MatMul(w, v)",
    "fuse-scaled-attention": f"z = Mul(q, s) {SCORES.replace('(q', '(z')} w = Softmax(a) y = MatMul(w, v)",
    "fuse-scaled-attention-with-mask": f"{SCORES} h = Tanh(m) c = Add(h, a) w = Softmax(c) y = MatMul(w, v)",
}


"""What hides no row, as its bound shows, may be added; a mask that is an input may hide one."""


def attention(body: str, *, batch: str = "2", mask: str = "1, 1, 6, 7", opset: int = 23) -> onnx.ModelProto:
    queries, keys, values = f"{batch}, 3, 6, 4", f"{batch}, 3, 7, 4", f"{batch}, 3, 7, 5"
    operands = f"float[{queries}] q, float[{keys}] k, float[{values}] v, float[{mask}] m"
    text = f"g ({operands}) => (float[{batch}, 3, 6, 5] y) <float s = {{0.5}}, float two = {{2}}> {{ {body} }}"
    return parsed(text, opset=opset)


@pytest.mark.parametrize("name", ATTENTION)
def test_scaled_products_become_attention_and_come_apart_again(name: str) -> None:
    model = attention(ATTENTION[name])
    assert found(model) == [name]
    fused = rewritten(rewritten(model, name), "cancel-transposes")
    assert fused.graph.node[-1].op_type == "Attention"
    assert {n.op_type for n in fused.graph.node} <= {"Attention", "Mul", "Tanh"}
    mask = "-with-mask" if "mask" in name else ""
    pieces = rewritten(fused, f"unfuse-attention{mask}")
    assert found(pieces) == [f"fuse-attention{mask}"]


def test_attention_that_divides_is_fused_as_one_that_multiplies() -> None:
    model = attention(ATTENTION["fuse-attention"].replace("Mul(a, s)", "Div(a, two)"))
    assert found(model) == []
    fused = rewritten(rewritten(model, "divide-to-multiply"), "fuse-attention")
    assert fused.graph.node[-1].attribute[0].f == 0.5


@pytest.mark.parametrize(
    "model",
    [
        attention(ATTENTION["fuse-attention"], opset=22),
        attention(ATTENTION["fuse-attention"].replace("Softmax", "Softmax<axis = 2>")),
        attention(ATTENTION["fuse-attention"].replace("s)", "m)")),
        attention(ATTENTION["fuse-attention"], batch="batch"),
        attention(ATTENTION["fuse-attention-with-mask"].replace("h)", "m)")),
        attention(ATTENTION["fuse-attention-with-mask"], mask="2, 1, 1, 7"),
        attention(ATTENTION["fuse-attention-with-mask"], mask="1"),
    ],
    ids=[
        "opset-22",
        "another-axis",
        "scale-not-stored",
        "perhaps-no-batch",
        "perhaps-a-hidden-row",
        "mask-of-all-queries",
        "mask-of-one-number",
    ],
)
def test_what_is_nearly_attention_is_none(model: onnx.ModelProto) -> None:
    assert found(model) == []
