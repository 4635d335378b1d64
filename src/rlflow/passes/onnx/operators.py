"""Names of operators: those that observations count one by one, and those that compute a function for every element."""

from __future__ import annotations

from rlflow.ops import registry

TRANSCENDENTAL = registry.types_having(lambda traits: traits.inexact) | {
    "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "BiasGelu", "Celu", "Cos", "Cosh", "Elu", "FastGelu",
    "LogSoftmax", "Mish", "QuickGelu", "Selu", "Sin", "Sinh", "Softplus", "Tan",
}  # fmt: skip
"""Types, without domains, that compute an exponential, a logarithm or an angle for every element."""

OPERATIONS: tuple[str, ...] = (
    "Add", "And", "AveragePool", "BatchNormalization", "Cast", "Clip", "Concat", "ConstantOfShape", "Conv", "Cos",
    "Div", "Dropout", "Equal", "Erf", "Exp", "Expand", "Flatten", "Gather", "Gemm", "GlobalAveragePool",
    "HardSigmoid", "HardSwish", "Identity", "If", "LayerNormalization", "LeakyRelu", "Loop", "MatMul", "MaxPool",
    "Mul", "Neg", "Pad", "Pow", "Range", "Reciprocal", "ReduceMean", "ReduceSum", "Relu", "Reshape", "Resize",
    "Shape", "Sigmoid", "Sin", "Slice", "Softmax", "Split", "Sqrt", "Squeeze", "Sub", "Sum", "Tanh", "Transpose",
    "Unsqueeze", "Where", "com.microsoft.BiasGelu", "com.microsoft.FastGelu", "com.microsoft.FusedConv",
    "com.microsoft.FusedGemm", "com.microsoft.FusedMatMul", "com.microsoft.Gelu", "com.microsoft.QuickGelu",
    "com.microsoft.SkipLayerNormalization", "com.microsoft.SkipSimplifiedLayerNormalization",
    "SimplifiedLayerNormalization",
)  # fmt: skip
"""Types that observations count one by one: those of the dataset, and those that passes make."""
