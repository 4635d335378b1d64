"""Neighbours of operators: the ones that take and give the same, and by which a model would compute something else.

A mutant of a model (`rlflow.equivalence.mutation`) has one operator swapped for its neighbour, one left out, or one
bound moved. The names are those of ai.onnx. Kinds of mutants that are no faults are told here, too: what changes
nothing, and what no later reader can tell.
"""

NEIGHBOURS: dict[str, tuple[str, ...]] = {
    # Of two operands.
    "Add": ("Sub",),
    "Sub": ("Add",),
    "Mul": ("Div", "Add"),
    "Div": ("Mul", "Sub"),
    "Max": ("Min",),
    "Min": ("Max",),
    "And": ("Or",),
    "Or": ("And",),
    "Xor": ("Or",),
    "BitwiseAnd": ("BitwiseOr",),
    "BitwiseOr": ("BitwiseXor",),
    "BitwiseXor": ("BitwiseOr",),
    "Greater": ("Less",),
    "GreaterOrEqual": ("LessOrEqual",),
    "Less": ("Greater",),
    "LessOrEqual": ("GreaterOrEqual",),
    "Mod": ("Sub",),
    # Of one operand.
    "Abs": ("Relu", "Neg"),
    "Relu": ("LeakyRelu", "Abs"),
    "LeakyRelu": ("Relu",),
    "Elu": ("Relu",),
    "Selu": ("Elu",),
    "Celu": ("Relu",),
    "HardSigmoid": ("Sigmoid",),
    "HardSwish": ("Relu",),
    "Gelu": ("Relu",),
    "Mish": ("Relu",),
    "Softplus": ("Relu",),
    "Softsign": ("Tanh",),
    "Sigmoid": ("Tanh",),
    "Tanh": ("Sigmoid",),
    "Erf": ("Tanh",),
    "Exp": ("Softplus", "Abs"),
    "Log": ("Sqrt",),
    "Sqrt": ("Log",),
    "Sin": ("Cos",),
    "Cos": ("Sin",),
    "Floor": ("Ceil",),
    "Ceil": ("Floor",),
    "Round": ("Floor",),
    "Sign": ("Tanh",),
    "IsNaN": ("IsInf",),
    "IsInf": ("IsNaN",),
    "Softmax": ("LogSoftmax",),
    "LogSoftmax": ("Softmax",),
    # Reductions and windows.
    "ArgMax": ("ArgMin",),
    "ArgMin": ("ArgMax",),
    "ReduceSum": ("ReduceMean", "ReduceMax"),
    "ReduceMean": ("ReduceSum", "ReduceMax"),
    "ReduceMax": ("ReduceMin", "ReduceMean"),
    "ReduceMin": ("ReduceMax", "ReduceMean"),
    "ReduceProd": ("ReduceSum", "ReduceMax"),
    "ReduceL1": ("ReduceL2",),
    "ReduceL2": ("ReduceL1",),
    "ReduceSumSquare": ("ReduceL2",),
    "ReduceLogSumExp": ("ReduceMax",),
    "MaxPool": ("AveragePool",),
    "AveragePool": ("MaxPool",),
    "GlobalAveragePool": ("GlobalMaxPool",),
    "GlobalMaxPool": ("GlobalAveragePool",),
}
"""Operators by which one is swapped: the first that the model's opset has with the same attributes and operands."""

ON_EQUALITY = {"Greater": "GreaterOrEqual", "GreaterOrEqual": "Greater", "Less": "LessOrEqual", "LessOrEqual": "Less"}
"""Comparisons that differ where both sides are equal, which rounding leaves to chance: asked of integers alone."""

BOUNDS: dict[str, tuple[tuple[int, ...], tuple[str, ...]]] = {
    "Clip": ((1, 2), ("min", "max")),
    **dict.fromkeys(("Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Equal", "Max", "Min"), ((0, 1), ())),
    "HardSigmoid": ((), ("alpha", "beta")),
    "LeakyRelu": ((), ("alpha",)),
    "ThresholdedRelu": ((), ("alpha",)),
    "Shrink": ((), ("lambd",)),
    "Mod": ((1,), ()),
    "Pow": ((1,), ()),
}
"""Operands and attributes that are bounds, thresholds or other numbers to be moved, by places and by names."""

DOWNWARD = {("Clip", 1), ("Clip", "min")}
"""Bounds that are moved down, so that less is cut off; all others are moved up."""

EXCHANGED = {"Where": (1, 2)}
"""Operands of one type that change places."""

INERT = frozenset("Cast Concat Dropout Expand Flatten Identity Pad Reshape Slice Split Squeeze Tile Unsqueeze".split())
"""Operators that do nothing where the result has the type and shape of the operand."""

ALONE = frozenset("Clip Max Mean Min Sum".split())
"""Operators that do nothing with a single operand."""
OF_ONE = frozenset("GlobalAveragePool GlobalMaxPool ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum".split())
"""Operators that do nothing, as their neighbours, where the result has the type and shape of the operand."""

NEUTRAL = {"Add": 0.0, "Sub": 0.0, "Mul": 1.0, "Div": 1.0, "Pow": 1.0}
"""The stored operand with which an operator does nothing, and its neighbour neither."""

GUARDS = frozenset({"Add", "Sub", "Max"})
"""Operators that keep a divisor or a logarithm from 0 by a tiny stored number, of which no output tells."""

BENT_AT_ZERO = frozenset("Abs Relu LeakyRelu PRelu Elu Celu".split())
"""Operators that hand on what is not negative."""
NEVER_NEGATIVE = frozenset("Abs Exp HardSigmoid Relu Sigmoid Softmax Softplus Sqrt".split())
AT_LEAST = {"Clip": 1, "Max": 1}
"""Operators whose result is not below an operand, by its place."""
KEEP_SIGNS = INERT - {"Concat", "Pad"} | frozenset(
    "AveragePool GlobalAveragePool GlobalMaxPool MaxPool Transpose".split()
)
"""Operators whose result is not negative if the first operand is not."""

ENDS_PROCESSES = frozenset({"Div"})
"""ONNX Runtime dies of it where an integer is divided by 0."""

ORDERLY = frozenset("Exp Log LogSoftmax Sigmoid Softmax Sqrt Tanh".split())
"""Increasing functions, which those that ask for the largest element cannot tell from each other."""
ASK_FOR_ORDER = frozenset({"ArgMax", "ArgMin"})
