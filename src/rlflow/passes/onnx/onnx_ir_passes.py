"""The passes of onnx-ir, which clean a model up; the others do nothing to a model in normal form."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import onnx_ir
from onnx import ModelProto
from onnx_ir.passes import common

_Maker = Callable[[], onnx_ir.passes.PassBase]


def _alone(make: _Maker, model: ModelProto) -> ModelProto:
    read = onnx_ir.from_proto(model)
    return onnx_ir.to_proto(make()(read).model)


PASSES: dict[str, Callable[[ModelProto], ModelProto]] = {
    "CommonSubexpressionElimination": partial(_alone, common.CommonSubexpressionEliminationPass),
    "DeduplicateInitializers": partial(_alone, common.DeduplicateInitializersPass),
    "RemoveUnusedNodes": partial(_alone, common.RemoveUnusedNodesPass),
}
