"""The rewrite rules of onnxscript, one at a time, its constant folding, and its default run.

Some rules of the default run are wrong, and are no actions here. Three are of clipped ranges that do not overlap:
`Clip(Clip(x, 0, 1), 2, 3)` is 2, and not `Clip(x, 2, 1)`. The others take numbers near 0 and 1 for 0 and 1: they drop a
factor of 1.000005, and the 1e-12 of a layer normalisation, without which a constant row becomes NaN. Of the rules
outside the default run, the one from Gemm to MatMul forgets that a Gemm may transpose its weights.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import onnx_ir
from onnx import ModelProto
from onnxscript import optimizer, rewriter
from onnxscript.rewriter import RewriteRule, RewriteRuleSet, ort_fusions
from onnxscript.rewriter.ort_fusions.gelu import fuse_gelu
from onnxscript.rewriter.ort_fusions.skip_normalization import fuse_skip_layer_normalization
from onnxscript.rewriter.rules import common


def default_run(model: ModelProto) -> ModelProto:
    """Fold constants and apply the library's own rules, as `onnxscript.optimizer.optimize(model)` does."""
    return optimizer.optimize(model)


def _folded(model: ModelProto) -> ModelProto:
    read = onnx_ir.from_proto(model)
    optimizer.fold_constants(read)
    return onnx_ir.to_proto(read)


def _rewritten(rules: Sequence[RewriteRule] | RewriteRuleSet, model: ModelProto) -> ModelProto:
    return rewriter.rewrite(model, rules)


def _fused(fuse: Callable[[onnx_ir.Model], int], model: ModelProto) -> ModelProto:
    read = onnx_ir.from_proto(model)
    fuse(read)
    return onnx_ir.to_proto(read)


_RULES: dict[str, Sequence[RewriteRule] | RewriteRuleSet] = {
    "expand_before_binary_op": common.expand_before_binary_op_rules,
    "flatten_to_reshape": [common.flatten_to_reshape_rule],
    "fuse_batchnorm_into_conv": [common.fuse_batchnorm_into_conv_rule],
    "fuse_pad_into_conv": [common.fuse_pad_into_conv_rule],
    "matmul_add_to_gemm": [common.matmul_add_to_gemm_rule],
    "materialize_reshape_shape": [common.materialize_reshape_shape_rule],
    "no_op_cast": [common.no_op_cast_rule],
    "no_op_transpose": [common.no_op_transpose_rule],
    "reshape_reshape": [common.reshape_reshape_rule],
    "transpose_transpose": [common.transpose_transpose_rule],
    "unsqueeze_unsqueeze": [common.unsqueeze_unsqueeze_rule],
}

PASSES: dict[str, Callable[[ModelProto], ModelProto]] = {
    "fold_constants": _folded,
    **{name: partial(_rewritten, rules) for name, rules in _RULES.items()},
}

CONTRIB: dict[str, Callable[[ModelProto], ModelProto]] = {
    "fused_matmul": partial(_rewritten, ort_fusions.ORT_PATTERN_REWRITE_RULES),
    "gelu": partial(_fused, fuse_gelu),
    "skip_layer_normalization": partial(_fused, fuse_skip_layer_normalization),
}
"""Rules whose results are operators of ONNX Runtime."""
