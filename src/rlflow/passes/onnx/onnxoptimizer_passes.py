"""The passes of onnxoptimizer, one at a time, and its default run.

Left out are passes that do nothing to any program of the dataset, that only rename, that are another library's under
another name, and `rewrite_input_dtype`, which gives the inputs another type. `fuse_bn_into_conv` is here although it
makes a graph grow: it writes down how the new weights are computed, and folding constants afterwards gains by it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import onnxoptimizer
from onnx import ModelProto

_NAMES = (
    "eliminate_common_subexpression",
    "eliminate_consecutive_idempotent_ops",
    "eliminate_identity",
    "eliminate_nop_cast",
    "eliminate_nop_concat",
    "eliminate_nop_expand",
    "eliminate_nop_pad",
    "eliminate_nop_reshape",
    "eliminate_nop_transpose",
    "eliminate_nop_with_unit",
    "eliminate_shape_gather",
    "eliminate_shape_op",
    "eliminate_slice_after_shape",
    "fuse_add_bias_into_conv",
    "fuse_bn_into_conv",
    "fuse_concat_into_reshape",
    "fuse_consecutive_concats",
    "fuse_consecutive_squeezes",
    "fuse_consecutive_transposes",
    "fuse_consecutive_unsqueezes",
    "fuse_matmul_add_bias_into_gemm",
    "fuse_pad_into_conv",
    "fuse_pad_into_pool",
    "fuse_qkv",
)


def default_run(model: ModelProto) -> ModelProto:
    """Run every pass that fuses or eliminates, in the library's order, as `onnxoptimizer.optimize(model)` does."""
    return onnxoptimizer.optimize(model)


def _alone(name: str, model: ModelProto) -> ModelProto:
    return onnxoptimizer.optimize(model, [name])


PASSES: dict[str, Callable[[ModelProto], ModelProto]] = {name: partial(_alone, name) for name in _NAMES}
