"""Operators of com.microsoft from their pieces and back, in models that import that domain and in no others."""

import onnx
import pytest
from onnx import parser
from support.rewrites import matching_rules, rewritten_model

from rlflow.onnx_io import check_model
from rlflow.rules.declared import microsoft
from rlflow.rules.declared.catalogue import rules_of

RULES = {rule.name: rule for rule in rules_of(microsoft)}
SIGNATURE = (
    "float[2, 3, 4] x, float[2, 3, 4] z, float[1, 2, 5, 5] image) => (float[2, 3, 4] y, float[1, 2, 4, 4] picture)"
    " <float[4, 4] w = {1,0,2,0, 0,-1,0,3, 1,1,0,0, 2,0,0,1}, float[4] g = {1,2,-1,3}, float[4] c = {0,1,-2,1},"
    " float s = {0.5}, float root = {1.4142135}, float one = {1}, float half = {0.5}, float k = {1.702},"
    " float[2, 2, 2, 2] f = {1,0,2,-1, 0,1,3,0, 2,2,0,1, -1,0,1,0}, float[2] b = {0.5, -1}>"
)
CONVOLUTION = "picture = Conv(image, f, b)"


def parsed(body: str, *, domain: bool = True, opset: int = 17) -> onnx.ModelProto:
    """A model of a body that makes y of x, z and weights, and of a convolution."""
    domains = f'"" : {opset}' + (', "com.microsoft" : 1' if domain else "")
    body = body if "picture" in body else f"{body} {CONVOLUTION}"
    model = parser.parse_model(f"<ir_version: 10, opset_import: [{domains}]> g ({SIGNATURE} {{ {body} }}")
    check_model(model)
    return model


def found(model: onnx.ModelProto) -> list[str]:
    return matching_rules(RULES.values(), model)


def rewritten(model: onnx.ModelProto, name: str) -> onnx.ModelProto:
    return rewritten_model(RULES[name], model)


def microsoft(model: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node if node.domain == "com.microsoft"]


PIECES = {
    "product": ("y = MatMul(x, w)", "FusedMatMul"),
    "gelu-of-microsoft": (
        "q = Div(x, root) e = Erf(q) a = Add(e, one) m = Mul(x, a) y = Mul(m, half)",
        "Gelu",
    ),
    "bias-of-gelu": ("a = Add(c, x) y = com.microsoft.Gelu(a)", "BiasGelu"),
    "quick-gelu": ("a = Mul(x, k) e = Sigmoid(a) y = Mul(e, x)", "QuickGelu"),
    "swish": ("e = Sigmoid(x) y = Mul(x, e)", "QuickGelu"),
    "residual-of-LayerNormalization": (
        "a = Add(x, z) y = LayerNormalization<epsilon = 0.01>(a, g, c)",
        "SkipLayerNormalization",
    ),
    "residual-of-LayerNormalization-with-bias": (
        "d = Add(c, x) a = Add(z, d) y = LayerNormalization(a, g, c)",
        "SkipLayerNormalization",
    ),
    "relu-of-convolution-with-bias": ("y = Identity(x) v = Conv(image, f, b) picture = Relu(v)", "FusedConv"),
    "relu-of-convolution": ("y = Identity(x) v = Conv(image, f) picture = Relu(v)", "FusedConv"),
}


@pytest.mark.parametrize("name", PIECES)
def test_pieces_become_one_operator_and_pieces_again_where_the_domain_is_imported(name: str) -> None:
    body, made = PIECES[name]
    fused = rewritten(parsed(body), f"fuse-{name}")
    assert microsoft(fused) == [made]
    if f"unfuse-{name}" in RULES:
        pieces = rewritten(fused, f"unfuse-{name}")
        assert f"fuse-{name}" in found(pieces)
        assert len(microsoft(pieces)) == body.count("com.microsoft")


TURNED = {
    "a": "t = Transpose<perm = [0, 2, 1]>(z) p = MatMul(t, x) q = Mul(s, p) y = MatMul(x, q)",
    "b": "t = Transpose<perm = [0, 2, 1]>(x) p = MatMul(z, t) q = Mul(p, s) y = MatMul(q, x)",
}


@pytest.mark.parametrize("side", TURNED)
def test_factors_and_transposes_gather_in_a_product_and_leave_it(side: str) -> None:
    model = parsed(TURNED[side])
    fused = rewritten(rewritten(model, f"fuse-transpose-of-{side}"), "fuse-scale-of-fused-product")
    assert microsoft(fused) == ["FusedMatMul"]
    flags = {"transA": int(side == "a"), "transB": int(side == "b")}
    assert {a.name: a.f or a.i for a in fused.graph.node[0].attribute} == {"alpha": 0.5, **flags}
    apart = rewritten(rewritten(fused, "unfuse-scale-of-product"), f"unfuse-transpose-of-{side}")
    assert found(rewritten(apart, "unfuse-product")) == found(model)
    again = rewritten(rewritten(model, "fuse-scale-of-product"), f"fuse-transpose-of-{side}-of-fused-product")
    assert microsoft(again) == ["FusedMatMul"]


PURE = [body for body, _ in PIECES.values() if "com.microsoft" not in body]


@pytest.mark.parametrize("body", [*PURE, *TURNED.values()])
def test_no_model_gets_a_domain_that_it_did_not_import(body: str) -> None:
    assert found(parsed(body)) != []
    assert found(parsed(body, domain=False)) == []


def test_a_residual_of_root_mean_squares() -> None:
    model = parsed("a = Add(x, z) y = RMSNormalization<epsilon = 0.01>(a, g)", opset=23)
    fused = rewritten(model, "fuse-residual-of-RMSNormalization")
    assert microsoft(fused) == ["SkipSimplifiedLayerNormalization"]
    rewritten(fused, "unfuse-residual-of-RMSNormalization")


@pytest.mark.parametrize(
    "body",
    [
        "a = Add(x, c) y = LayerNormalization(a, g, c)",
        "a = Add(x, z) r = Relu(a) n = LayerNormalization(a, g, c) y = Add(n, r)",
        "a = Mul(x, k) e = Sigmoid(a) y = Mul(e, z)",
        "t = Transpose<perm = [1, 0, 2]>(x) u = Transpose<perm = [1, 0, 2]>(t) y = Identity(u)",
        "y = Identity(x) v = Relu(image) picture = Conv(v, f, b)",
    ],
)
def test_what_is_nearly_one_of_them_is_none(body: str) -> None:
    assert found(parsed(body)) == []
