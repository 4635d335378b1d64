"""The graph transformers of ONNX Runtime, one at a time, and its levels.

Left out are those of quantised models, and those that do nothing to any program of the dataset.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from onnx import ModelProto

from rlflow.runtime.transformers import Level, transformed, transformed_by_level

_BASIC = (
    "CastElimination",
    "CommonSubexpressionElimination",
    "ConstantFolding",
    "ConstantSharing",
    "ConvBNFusion",
    "ConvMulFusion",
    "EliminateDropout",
    "EliminateIdentity",
    "ExpandElimination",
    "LayerNormFusionL1",
    "MatMulAddFusion",
    "NoopElimination",
    "Pad_Fusion",
    "ReshapeFusion",
    "TransposeOptimizer",
)
_EXTENDED = (
    "BiasGeluFusion",
    "ConvActivationFusion",
    "FastGeluFusion",
    "GeluFusionL2",
    "GemmActivationFusion",
    "MatMulScaleFusion",
    "MatmulTransposeFusion",
    "QuickGeluFusion",
    "SimplifiedLayerNormFusion",
    "SkipLayerNormFusion",
)


def _alone(name: str, model: ModelProto) -> ModelProto:
    return transformed(model, name)


def _all_of(level: Level, model: ModelProto) -> ModelProto:
    return transformed_by_level(model, level)


PASSES: dict[str, Callable[[ModelProto], ModelProto]] = {name: partial(_alone, name) for name in _BASIC}
CONTRIB: dict[str, Callable[[ModelProto], ModelProto]] = {name: partial(_alone, name) for name in _EXTENDED}
"""Transformers whose results are operators of ONNX Runtime."""

basic_run: Callable[[ModelProto], ModelProto] = partial(_all_of, "basic")
"""Run what ONNX Runtime runs with ORT_ENABLE_BASIC."""
extended_run: Callable[[ModelProto], ModelProto] = partial(_all_of, "extended")
"""Run what ONNX Runtime runs with ORT_ENABLE_EXTENDED."""
