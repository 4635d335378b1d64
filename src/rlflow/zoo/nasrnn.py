"""NasRNN: the recurrent cell that a search found (Zoph and Le 2017), as TASO optimises it (Jia et al. 2019, section 7).

TASO's cell has the eight combinations of the published one, and no memory beside its state; its reference graph is five
steps of 512 units. In that graph every combination of every step has weights of its own; here all steps share them, as
in any recurrent network.
"""

from collections.abc import Sequence
from math import sqrt

import numpy as np
from onnx import ModelProto

from rlflow.zoo.builder import Dimension, GraphBuilder

# The sums of two projections go through sigmoids and tanhs several times over; a little more than the usual weights
# keeps them on the slopes and the state away from zero.
_GAIN = 1.5


def nasrnn(*, steps: int = 5, hidden: int = 512, batch: Dimension = 1, seed: int = 0, opset: int = 17) -> ModelProto:
    """NasRNN: a recurrent cell of eight gates, combined in pairs after their activations, unrolled over the steps.

    Inputs x (steps, batch, hidden) and state (batch, hidden), batch a number or a symbol; output y (batch, hidden), the
    state after the last step. Each step reads its part of x by a Gather. As published, 235 nodes and 4,194,304
    parameters.
    """
    b = GraphBuilder("nasrnn", seed=seed, opset=opset)
    x = b.input("x", (steps, batch, hidden))
    state = b.input("state", (batch, hidden))
    std = _GAIN / sqrt(hidden)
    weights = [
        [b.parameter(f"nasrnn/gate_{gate}/{of}/weight", (hidden, hidden), std=std) for of in ("input", "state")]
        for gate in range(8)
    ]
    for step in range(steps):
        scope = f"nasrnn/step_{step}"
        current = b.node("Gather", x, b.constant(f"time_{step}", np.array(step)), scope=scope, axis=0)
        state = _cell(b, scope, [_gate(b, scope, pair, current, state) for pair in weights])
    b.output("y", state, (batch, hidden))
    return b.finish()


def _gate(b: GraphBuilder, scope: str, weights: Sequence[str], x: str, state: str) -> str:
    of_input, of_state = weights
    projections = b.node("MatMul", x, of_input, scope=scope), b.node("MatMul", state, of_state, scope=scope)
    return b.node("Add", *projections, scope=scope)


def _cell(b: GraphBuilder, scope: str, gates: Sequence[str]) -> str:
    """The tree over the gates: every operand is activated, then two of them are added or multiplied."""

    def combine(operator: str, left: tuple[str, str], right: tuple[str, str]) -> str:
        operands = [b.node(activation, operand, scope=scope) for activation, operand in (left, right)]
        return b.node(operator, *operands, scope=scope)

    g = gates
    first = combine("Add", ("Relu", g[0]), ("Sigmoid", g[3]))
    second = combine("Add", ("Sigmoid", g[1]), ("Tanh", g[2]))
    third = combine("Mul", ("Sigmoid", g[4]), ("Tanh", g[5]))
    fourth = combine("Mul", ("Sigmoid", g[6]), ("Relu", g[7]))
    upper = combine("Add", ("Sigmoid", second), ("Tanh", third))
    lower = combine("Mul", ("Tanh", first), ("Tanh", fourth))
    return b.node("Tanh", combine("Mul", ("Tanh", upper), ("Tanh", lower)), scope=scope)
