"""Declared rules: what enumeration over small operators does not reach. Each is verified like any other.

Weights are marked constant where a rule moves work to them: such work is done once, when the model is loaded.
"""

from __future__ import annotations

from typing import Any

from rlflow.rules.declared.convolution import convolution_rules, false_convolution_controls
from rlflow.rules.declared.elementary import CLIP
from rlflow.rules.declared.fused import false_fused_controls, fused_rules
from rlflow.rules.declared.groups import false_group_controls, group_rules
from rlflow.rules.declared.joins import false_join_controls
from rlflow.rules.declared.microsoft import false_microsoft_controls, microsoft_rules
from rlflow.rules.declared.movement import false_movement_controls, movement_rules
from rlflow.rules.declared.padding import false_padding_controls, padding_rules
from rlflow.rules.declared.slice_pushdown import false_reading_controls, reading_rules
from rlflow.rules.declared.winograd import false_winograd_controls, winograd_rules
from rlflow.rules.rule import Rule, declare

_LINEAR = "linear"
_MOVEMENT = "movement"
_TRANSFORMER = "transformer"


def _constant(*shape: int | str) -> dict[str, Any]:
    return {"shape": list(shape), "constant": True}


_ACTIVATION = {"shape": ["...b", "m", "k"]}


def _merge(parts: int, bias: bool) -> Rule:
    """Products (with bias) that share an operand, as one wider product (TASO section 2; QKV of a transformer)."""
    weights = [f"w{i}" for i in range(parts)]
    biases = [f"c{i}" for i in range(parts)]
    sizes = ["list", *(["dim", w, -1] for w in weights)]
    merged: Any = ["MatMul", "x", ["Concat", {"axis": -1}, *weights]]
    source: list[Any] = [["MatMul", "x", w] for w in weights]
    variables: dict[str, Any] = {"x": _ACTIVATION}
    variables |= {w: _constant("k", f"n{i}") for i, w in enumerate(weights)}
    if bias:
        merged = ["Add", merged, ["Concat", {"axis": -1}, *biases]]
        source = [["Add", s, c] for s, c in zip(source, biases, strict=True)]
        variables |= {c: _constant(f"n{i}") for i, c in enumerate(biases)}
    split = ["Split", {"axis": -1, "split": sizes}, merged]
    name = f"merge-{parts}-{'linears' if bias else 'matmuls'}"
    return declare(name, _LINEAR, source, [["@", i, split] for i in range(parts)], variables)


def _unmerge(parts: int) -> Rule:
    """The inverse: a product that is split right away, as separate products."""
    split = ["Split", {"axis": -1, "split": "?sizes"}, ["MatMul", "x", "w"]]
    weights = ["Split", {"axis": -1, "split": "?sizes"}, "w"]
    return declare(
        f"split-matmul-{parts}",
        _LINEAR,
        [["@", i, split] for i in range(parts)],
        [["MatMul", "x", ["@", i, weights]] for i in range(parts)],
        {"x": _ACTIVATION, "w": _constant("k", "n")},
        attributes={"?sizes": ["partition", "w", -1, parts]},
        where=[["==", ["length", "?sizes"], parts]],
    )


def _scale_rules() -> list[Rule]:
    """Moving a scalar factor towards a weight, into which it disappears; and back."""
    one = [["==", ["elements", "s"], 1]]
    scalar = {"s": {"constant": True}}
    left = declare(
        "scale-to-left-operand",
        _LINEAR,
        [["Mul", ["MatMul", "a", "b"], "s"]],
        [["MatMul", ["Mul", "a", "s"], "b"]],
        {"a": {"shape": ["...b", "m", "k"]}, "b": {"shape": ["...b", "k", "n"]}, **scalar},
        where=one,
    )
    weight = declare(
        "scale-into-weight",
        _LINEAR,
        [["Mul", ["MatMul", "x", "w"], "s"]],
        [["MatMul", "x", ["Mul", "w", "s"]]],
        {"x": _ACTIVATION, "w": _constant("k", "n"), **scalar},
        where=one,
    )
    bias = declare(
        "scale-past-bias",
        _LINEAR,
        [["Mul", ["Add", "x", "c"], "s"]],
        [["Add", ["Mul", "x", "s"], ["Mul", "c", "s"]]],
        {"c": {"constant": True}, **scalar},
        where=one,
    )
    transpose = declare(
        "scale-past-transpose",
        _MOVEMENT,
        [["Mul", ["Transpose", {"perm": "?p"}, "x"], "s"]],
        [["Transpose", {"perm": "?p"}, ["Mul", "x", "s"]]],
        scalar,
        attributes={"?p": ["permutation", "x"]},
        where=one,
    )
    reshape = declare(
        "scale-past-reshape",
        _MOVEMENT,
        [["Mul", ["Reshape", {"shape": "?t"}, "x"], "s"]],
        [["Reshape", {"shape": "?t"}, ["Mul", "x", "s"]]],
        scalar,
        attributes={"?t": ["reshape", "x"]},
        where=one,
    )
    divide = declare("divide-to-multiply", _LINEAR, [["Div", "x", "s"]], [["Mul", "x", ["Reciprocal", "s"]]], scalar)
    return [
        left,
        left.reversed("scale-out-of-left-operand"),
        weight,
        bias,
        transpose,
        transpose.reversed("scale-before-transpose"),
        reshape,
        reshape.reversed("scale-before-reshape"),
        divide,
    ]


def _bias_rules() -> list[Rule]:
    """A bias as Add, inside Gemm, or in an n-ary Sum, which ONNX Runtime does not fuse."""
    linear = {"x": {"shape": ["b", "m", "k"]}, "w": _constant("k", "n"), "c": _constant("n")}
    rows = ["list", ["*", ["dim", "x", 0], ["dim", "x", 1]], ["dim", "x", 2]]
    shape = ["list", ["dim", "x", 0], ["dim", "x", 1], ["dim", "w", 1]]
    gemm = declare(
        "linear-to-gemm",
        _LINEAR,
        [["Add", ["MatMul", "x", "w"], "c"]],
        [["Reshape", {"shape": shape}, ["Gemm", ["Reshape", {"shape": rows}, "x"], "w", "c"]]],
        linear,
    )
    plain = declare(
        "gemm-to-linear",
        _LINEAR,
        [["Gemm", "x", "w", "c"]],
        [["Add", ["MatMul", "x", "w"], "c"]],
        {"x": {"shape": ["m", "k"]}, "w": {"shape": ["k", "n"]}, "c": {"shape": ["n"]}},
    )
    bias_sum = declare(
        "bias-add-to-sum",
        _LINEAR,
        [["Add", ["MatMul", "x", "w"], "c"]],
        [["Sum", ["MatMul", "x", "w"], "c"]],
        {"x": _ACTIVATION, "w": _constant("k", "n"), "c": _constant("n")},
    )
    residual_sum = declare(
        "residual-bias-to-sum",
        _LINEAR,
        [["Add", ["Add", "x", "c"], "y"]],
        [["Sum", "x", "c", "y"]],
        {"x": {"shape": ["...b", "n"]}, "c": _constant("n"), "y": {"shape": ["...b", "n"]}},
    )
    return [
        gemm,
        plain,
        bias_sum,
        bias_sum.reversed("bias-sum-to-add"),
        residual_sum,
        residual_sum.reversed("sum-to-residual-bias"),
    ]


def _movement_rules() -> list[Rule]:
    def transpose(p: Any, x: Any) -> Any:
        return ["Transpose", {"perm": p}, x]

    def reshape(t: Any, x: Any) -> Any:
        return ["Reshape", {"shape": t}, x]

    two_transposes = [transpose("?q", transpose("?p", "x"))]
    permutations = {"?p": ["permutation", "x"], "?q": ["permutation", "x"]}
    composed = ["compose", "?p", "?q"]
    return [
        declare(
            "compose-transposes",
            _MOVEMENT,
            two_transposes,
            [transpose(composed, "x")],
            attributes=permutations,
            where=[["not", ["is_identity", composed]]],
        ),
        declare(
            "cancel-transposes",
            _MOVEMENT,
            two_transposes,
            ["x"],
            attributes=permutations,
            where=[["is_identity", composed]],
        ),
        declare(
            "drop-identity-transpose",
            _MOVEMENT,
            [transpose("?p", "x")],
            ["x"],
            attributes={"?p": ["permutation", "x"]},
            where=[["is_identity", "?p"]],
        ),
        declare(
            "compose-reshapes",
            _MOVEMENT,
            [reshape("?u", reshape("?t", "x"))],
            [reshape("?u", "x")],
            attributes={"?t": ["reshape", "x"], "?u": ["reshape", "x"]},
            where=[["not", ["in", 0, "?u"]], ["!=", "?u", ["shape", "x"]]],
        ),
        declare(
            "cancel-reshapes",
            _MOVEMENT,
            [reshape("?u", reshape("?t", "x"))],
            ["x"],
            attributes={"?t": ["reshape", "x"], "?u": ["reshape", "x"]},
            where=[["==", "?u", ["shape", "x"]]],
        ),
        declare(
            "drop-identity-reshape",
            _MOVEMENT,
            [reshape("?t", "x")],
            ["x"],
            attributes={"?t": ["reshape", "x"]},
            where=[["==", "?t", ["shape", "x"]]],
        ),
    ]


def _normalisation_rules() -> list[Rule]:
    """Forms of layer normalisation (Ba et al., 2016) and of the residual sum before it."""
    row = {"x": {"shape": ["...b", "n"]}, "y": {"shape": ["...b", "n"]}, "g": {"shape": ["n"]}, "c": {"shape": ["n"]}}
    affine = {k: row[k] for k in ("x", "g", "c")}
    epsilon = {"?e": ["uniform"]}

    def normalise(x: Any, *parameters: str) -> Any:
        return ["LayerNormalization", {"epsilon": "?e"}, x, *parameters]

    residual = declare(
        "residual-add-to-sum",
        _TRANSFORMER,
        [normalise(["Add", "x", "y"], "g", "c")],
        [normalise(["Sum", "x", "y"], "g", "c")],
        row,
        attributes=epsilon,
    )
    shift = declare(
        "layer-norm-shift-to-add",
        _TRANSFORMER,
        [normalise("x", "g", "c")],
        [["Add", normalise("x", "g"), "c"]],
        affine,
        attributes=epsilon,
    )

    def mean(x: Any) -> Any:
        return ["ReduceMean", {"axes": [-1], "keepdims": 1}, x]

    centred = ["Sub", "x", mean("x")]
    deviation = ["Sqrt", ["Add", mean(["Pow", {"exponent": 2.0}, centred]), "e"]]
    fuse = declare(
        "fuse-layer-norm",
        _TRANSFORMER,
        [["Add", ["Mul", ["Div", centred, deviation], "g"], "c"]],
        [["LayerNormalization", {"epsilon": ["value", "e"]}, "x", "g", "c"]],
        {**affine, "e": {"shape": [], "literal": True}},
        opset=17,
    )
    return [residual, residual.reversed("residual-sum-to-add"), shift, shift.reversed("add-to-layer-norm-shift"), fuse]


def _association_rules() -> list[Rule]:
    weights = {"x": _ACTIVATION, "v": _constant("k", "l"), "w": _constant("l", "n")}
    associate = declare(
        "associate-weights",
        _LINEAR,
        [["MatMul", ["MatMul", "x", "v"], "w"]],
        [["MatMul", "x", ["MatMul", "v", "w"]]],
        weights,
    )
    merge_biases = declare(
        "merge-biases",
        _LINEAR,
        [["Add", ["Add", "x", "c"], "d"]],
        [["Add", "x", ["Add", "c", "d"]]],
        {"x": {"shape": ["...b", "n"]}, "c": _constant("n"), "d": _constant("n")},
    )
    softmax_shift = declare(
        "drop-softmax-shift",
        _TRANSFORMER,
        [["Softmax", ["Add", "x", "s"]]],
        [["Softmax", "x"]],
        {"x": {"shape": ["...b", "m", "n"]}, "s": {"shape": ["...b", "m", 1]}},
    )
    value_bias = declare(
        "value-bias-past-attention",
        _TRANSFORMER,
        [["MatMul", ["Softmax", "a"], ["Add", "v", "c"]]],
        [["Add", ["MatMul", ["Softmax", "a"], "v"], "c"]],
        {"a": {"shape": ["...b", "m", "k"]}, "v": {"shape": ["...b", "k", "n"]}, "c": {"shape": ["n"]}},
    )
    return [associate, merge_biases, softmax_shift, value_bias]


def _clip_rules() -> list[Rule]:
    return [declare("clip-once", "normalisation", [CLIP(CLIP("x"))], [CLIP("x")], attributes=CLIP.kinds)]


def curated_rules() -> list[Rule]:
    """All declared rules that belong to no family, without certificates."""
    return [
        *(_merge(parts, bias) for parts in (2, 3) for bias in (False, True)),
        *(_unmerge(parts) for parts in (2, 3)),
        *_scale_rules(),
        *_bias_rules(),
        *_movement_rules(),
        *_normalisation_rules(),
        *_association_rules(),
        *_clip_rules(),
        *convolution_rules(),
        *fused_rules(),
        *microsoft_rules(),
        *group_rules(),
        *reading_rules(),
        *movement_rules(),
        *winograd_rules(),
        *padding_rules(),
    ]


def false_controls() -> list[Rule]:
    """Rules that are wrong, each in a way that a weak verifier overlooks. All must be refused in every run."""
    square = {"a": {"shape": ["n", "n"]}, "b": {"shape": ["n", "n"]}}

    def clip(term: Any, low: float = 0.0, high: float = 1.0) -> list[Any]:
        return ["Clip", {"min": low, "max": high}, term]

    return [
        declare("products-commute", "control", [["MatMul", "a", "b"]], [["MatMul", "b", "a"]], square),
        declare("transpose-is-identity", "control", [["Transpose", {"perm": [1, 0]}, "a"]], ["a"], {"a": square["a"]}),
        declare(
            "exp-is-additive", "control", [["Exp", ["Add", "a", "b"]]], [["Add", ["Exp", "a"], ["Exp", "b"]]], square
        ),
        declare(
            "relu-distributes",
            "control",
            [["Relu", ["Add", "a", "b"]]],
            [["Add", ["Relu", "a"], ["Relu", "b"]]],
            square,
        ),
        declare(
            "relu-passes-product",
            "control",
            [["MatMul", ["Relu", "a"], ["Relu", "b"]]],
            [["Relu", ["MatMul", ["Relu", "a"], "b"]]],
            square,
        ),
        declare(
            "softmax-is-linear", "control", [["Softmax", ["Mul", "a", "b"]]], [["Mul", ["Softmax", "a"], "b"]], square
        ),
        declare(
            "bias-moves-past-any-product",
            "control",
            [["MatMul", "a", ["Add", "b", "c"]]],
            [["Add", ["MatMul", "a", "b"], "c"]],
            {"a": {"shape": ["m", "k"]}, "b": {"shape": ["k", "n"]}, "c": {"shape": ["n"]}},
        ),
        declare(
            "layer-norm-ignores-scale",
            "control",
            [["LayerNormalization", {"epsilon": "?e"}, ["Mul", "x", "s"], "g", "c"]],
            [["LayerNormalization", {"epsilon": "?e"}, "x", "g", "c"]],
            {"x": {"shape": ["m", "n"]}, "s": {"shape": []}, "g": {"shape": ["n"]}, "c": {"shape": ["n"]}},
            attributes={"?e": ["uniform"]},
        ),
        declare("sqrt-is-even", "control", [["Sqrt", ["Sub", "a", "b"]]], [["Sqrt", ["Sub", "b", "a"]]], square),
        declare(
            "reciprocal-passes-relu",
            "control",
            [["Reciprocal", ["Relu", "a"]]],
            [["Relu", ["Reciprocal", "a"]]],
            square,
        ),
        declare("clip-passes-relu", "control", [["Relu", clip("a", -2, -1)]], [clip(["Relu", "a"], -2, -1)], square),
        declare("clip-passes-sum", "control", [clip(["Add", "a", "b"])], [["Add", clip("a"), clip("b")]], square),
        declare(
            "the-second-clip-counts", "control", [clip(clip("a", 0.0, 1.0), 2.0, 3.0)], [clip("a", 2.0, 3.0)], square
        ),
        declare(
            "exp-comes-apart", "control", [["Exp", ["Add", "a", "b"]]], [["Mul", ["Exp", "a"], ["Exp", "b"]]], square
        ),
        declare(
            "detour-by-a-difference",
            "control",
            [["Div", ["Mul", "a", "b"], "a"]],
            [["Add", "a", ["Sub", "b", "a"]]],
            square,
        ),
        declare("one-is-a-quotient", "control", [["Softmax", "a"]], [["Div", "a", "a"]], {"a": {"shape": ["m", 1]}}),
        *false_convolution_controls(),
        *false_join_controls(),
        *false_fused_controls(),
        *false_microsoft_controls(),
        *false_group_controls(),
        *false_reading_controls(),
        *false_movement_controls(),
        *false_winograd_controls(),
        *false_padding_controls(),
    ]
