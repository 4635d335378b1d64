"""The passes of all libraries by the names that an agent sees, and the pipelines that they are compared with."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from onnx import ModelProto

from rlflow.passes.onnx import (
    onnx_ir_passes,
    onnxoptimizer_passes,
    onnxruntime_passes,
    onnxscript_passes,
    onnxslim_passes,
)

Transformation = Callable[[ModelProto], ModelProto]


def _named(library: str, passes: Mapping[str, Transformation]) -> dict[str, Transformation]:
    return {f"{library}:{name}": transformation for name, transformation in passes.items()}


STANDARD: Mapping[str, Transformation] = {
    **_named("onnxoptimizer", onnxoptimizer_passes.PASSES),
    **_named("onnx_ir", onnx_ir_passes.PASSES),
    **_named("onnxscript", onnxscript_passes.PASSES),
    **_named("onnxslim", onnxslim_passes.PASSES),
    **_named("onnxruntime", onnxruntime_passes.PASSES),
}
"""Passes whose results keep to ONNX's own operators."""

CONTRIB: Mapping[str, Transformation] = {
    **_named("onnxruntime", onnxruntime_passes.CONTRIB),
    **_named("onnxscript", onnxscript_passes.CONTRIB),
}
"""Passes whose results need operators of ONNX Runtime."""

PIPELINES: Mapping[str, Transformation] = {
    "onnxoptimizer": onnxoptimizer_passes.default_run,
    "onnxscript": onnxscript_passes.default_run,
    "onnxslim": onnxslim_passes.default_run,
    "ort_basic": onnxruntime_passes.basic_run,
}
CONTRIB_PIPELINES: Mapping[str, Transformation] = {"ort_extended": onnxruntime_passes.extended_run}
_GROWING = {
    "onnxoptimizer:fuse_add_bias_into_conv",
    "onnxoptimizer:fuse_bn_into_conv",
    "onnxoptimizer:fuse_qkv",
    "onnxslim:FusionGemm",
    "onnxruntime:MatMulAddFusion",
}
"""Passes after which a program of the dataset had more operations than before."""

SIMPLIFIERS = tuple(name for name in STANDARD if name not in _GROWING)
"""A round of passes that never make a program grow."""
