"""One graph transformer of ONNX Runtime at a time: what it makes of a model, and nothing that the others would.

    transformed(model, "MatMulAddFusion")            that one alone
    transformed_by_level(model, "basic")             all that keep to the operators of ONNX itself

ONNX Runtime has no call for one transformer. It can be told which ones not to run, though, so that all others are
named (`TRANSFORMERS`) for the session, which then writes down what it made. A name that it does not know is ignored
without a word: this table is tested against what every transformer does, not against the names.

Invariant: the transformers of the levels "basic" and "extended" depend on the model alone, not on the machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import onnx
import onnxruntime as ort
from onnx import ModelProto

from rlflow.errors import InputError, RLFlowError
from rlflow.runtime.scratch import scratch_folder

Level = Literal["basic", "extended"]

_LEVELS: dict[Level, ort.GraphOptimizationLevel] = {
    "basic": ort.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "extended": ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
}
_BASIC_RULES = (
    "CastChainElimination",
    "CastElimination",
    "ClipQuantRewrite",
    "ConvAddFusion",
    "ConvBNFusion",
    "ConvMulFusion",
    "DivMulFusion",
    "EliminateDropout",
    "EliminateIdentity",
    "EliminateSlice",
    "ExpandElimination",
    "FuseReluClip",
    "GemmSumFusion",
    "GemmTransposeFusion",
    "LabelEncoderFusion",
    "MatMul_BatchNormalization_Fusion",
    "NoopElimination",
    "NotWhereFusion",
    "Pad_Fusion",
    "PreShapeNodeElimination",
    "ReluQuantRewrite",
    "UnsqueezeElimination",
)
"""Rules that one transformer, `_BASIC_RULE_TRANSFORMER`, applies."""
_BASIC_RULE_TRANSFORMER = "Level1_RuleBasedTransformer"
_BASIC = (
    "CommonSubexpressionElimination",
    "ConstantFolding",
    "ConstantSharing",
    "DoubleQDQPairsRemover",
    "EnsureUniqueDQForNodeUnit",
    "FreeDimensionOverrideTransformer",
    "GatherSliceToSplitFusion",
    "GatherToSliceFusion",
    "GeluFusionL1",
    "LayerNormFusionL1",
    "MatMulAddFusion",
    "QDQPropagationTransformer",
    "ReshapeFusion",
    "SliceConcatToSpaceToDepthFusion",
    "TransposeOptimizer",
    "WeightBiasQuantization",
    "WhereDummyDq",
)
_EXTENDED = (
    "AttentionFusion",
    "BiasDropoutFusion",
    "BiasGeluFusion",
    "BiasSkipLayerNormFusion",
    "BiasSoftmaxFusion",
    "ConvActivationFusion",
    "ConvAddActivationFusion",
    "DQMatMulNBitsFusion",
    "DynamicQuantizeMatMulFusion",
    "EmbedLayerNormFusion",
    "FastGeluFusion",
    "GeluFusionL2",
    "GemmActivationFusion",
    "GroupQueryAttentionFusion",
    "GroupQueryAttentionPreNormFusion",
    "LayerNormFusionL2",
    "Level2_RuleBasedTransformer",
    "MatMulActivationFusion",
    "MatMulIntegerToFloatFusion",
    "MatMulNBitsFusion",
    "MatMulScaleFusion",
    "MatmulTransposeFusion",
    "QDQFinalCleanupTransformer",
    "QDQS8ToU8Transformer",
    "QDQSelectorActionTransformer",
    "QuickGeluFusion",
    "SimplifiedLayerNormFusion",
    "SkipLayerNormFusion",
    "SwiGluFusion",
    "TransposeOptimizer_CPUExecutionProvider",
)
TRANSFORMERS = (*_BASIC_RULES, *_BASIC, *_EXTENDED)
"""All that the levels "basic" and "extended" run on a CPU, by ONNX Runtime's names."""
OPTIMISERS = (*TRANSFORMERS, "NchwcTransformer", "NhwcTransformer")
"""All that run on a CPU before a model runs as deployed: the layouts of convolutions come last."""

_FATAL_SEVERITY = 4  # errors are raised, and need not be printed as well
_DEFAULT_SEVERITY = 2


@contextmanager
def silent_runtime() -> Iterator[None]:
    """Keep ONNX Runtime from printing: its transformers warn of what they cannot do, past the session's own setting.

    Afterwards it prints warnings again, as it does by default; what it was set to before cannot be asked.
    """
    ort.set_default_logger_severity(_FATAL_SEVERITY)
    try:
        yield
    finally:
        ort.set_default_logger_severity(_DEFAULT_SEVERITY)


def transformed(model: ModelProto, name: str) -> ModelProto:
    """Return what the transformer of this name alone makes of `model`, which stays as it is.

    Raises `InputError` for an unknown name, `RLFlowError` if ONNX Runtime refuses the model, before or after it.
    """
    if name not in TRANSFORMERS:
        raise InputError(f"ONNX Runtime has no graph transformer {name!r}: choose one of {', '.join(TRANSFORMERS)}")
    kept = {name, _BASIC_RULE_TRANSFORMER} if name in _BASIC_RULES else {name}
    disabled = [other for other in (*TRANSFORMERS, _BASIC_RULE_TRANSFORMER) if other not in kept]
    return _written(model, "extended" if name in _EXTENDED else "basic", disabled)


def transformed_by_level(model: ModelProto, level: Level) -> ModelProto:
    """Return what all transformers of a level and those below make of `model`. Raises as `transformed` does."""
    return _written(model, level, [])


def _written(model: ModelProto, level: Level, disabled: list[str]) -> ModelProto:
    options = ort.SessionOptions()
    options.graph_optimization_level = _LEVELS[level]
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = _FATAL_SEVERITY
    with scratch_folder() as folder:
        options.optimized_model_filepath = str(folder / "transformed.onnx")
        try:
            ort.InferenceSession(
                model.SerializeToString(), options, providers=["CPUExecutionProvider"], disabled_optimizers=disabled
            )
        except Exception as error:
            reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
            raise RLFlowError(f"ONNX Runtime {ort.__version__} could not transform the model: {reason}") from error
        return onnx.load(options.optimized_model_filepath)
