"""A model of your own in the zoo: a gated perceptron with seeded random weights.

A builder is a function whose arguments all have defaults. Your package announces it, and `rlflow zoo build gated` and
`zoo.build("gated", width=32)` know it:

    [project.entry-points."rlflow.zoo"]
    gated = "own_zoo_model:gated"

In RLFlow itself it is a module in `zoo/`, a line in `zoo/registry.py` and a test in `tests/zoo/`; for the experiment,
an option `conf/graph/gated.yaml`.
"""

from math import sqrt

from onnx import ModelProto

import rlflow
from rlflow.zoo.builder import Dimension, GraphBuilder


def gated(*, batch: Dimension = 8, inputs: int = 32, width: int = 64, seed: int = 0, opset: int = 17) -> ModelProto:
    """Gated perceptron: tanh(x U) multiplied by sigmoid(x V), and a linear layer.

    Input x (batch, inputs), batch a number or a symbol; output y (batch, inputs).
    """
    b = GraphBuilder("gated", seed=seed, opset=opset)
    x = b.input("x", (batch, inputs))
    u, v = (b.parameter(f"gated/{name}", (inputs, width), std=1 / sqrt(inputs)) for name in ("u", "v"))
    value = b.node("Tanh", b.node("MatMul", x, u, scope="value"), scope="value")
    gate = b.node("Sigmoid", b.node("MatMul", x, v, scope="gate"), scope="gate")
    out = b.parameter("gated/out", (width, inputs), std=1 / sqrt(width))
    b.output("y", b.node("MatMul", b.node("Mul", value, gate, scope="gated"), out, scope="out"), (batch, inputs))
    return b.finish()


if __name__ == "__main__":
    optimised = rlflow.optimise(gated(batch=16), method="greedy", cost_model="analytic")
    print(optimised.report.summary())
