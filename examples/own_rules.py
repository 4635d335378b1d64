"""Rules of your own, in a file: Relu(Relu(x)) is Relu(x), and a mistake that is easily made.

    rlflow rules verify own_rules.py
    rlflow optimise model.onnx -o faster.onnx --rules own_rules.py

No rule is trusted, whoever wrote it: when the file is read, each is verified at drawn shapes, exactly over a finite
field and in ONNX Runtime, and a false one is refused with its file, its line and a counter-example. A false control
says what must be refused. In RLFlow itself a rule is a declaration in `rules/declared/`; docs/rules.md has the
language.
"""

from pathlib import Path

from onnx import parser

import rlflow
from rlflow.rules.dsl import Rewrite, Tensor, false_control, rule
from rlflow.rules.dsl.operators import Relu, Tanh

MODEL = parser.parse_model("""
    <ir_version: 8, opset_import: ["" : 17]>
    twice (float[64, 64] x) => (float[64, 64] y) { a = Relu(x)  b = Relu(a)  y = Tanh(b) }
""")


@rule("own-relu-twice")
def relu_twice(x: Tensor) -> Rewrite:
    """A value that is not negative stays as it is."""
    return Rewrite(Relu(Relu(x)), Relu(x))


@false_control("own-relu-of-tanh", of="own-relu-twice")
def relu_of_tanh(x: Tensor) -> Rewrite:
    """The hyperbolic tangent of a negative number is negative."""
    return Rewrite(Relu(Tanh(x)), Tanh(x))


if __name__ == "__main__":
    optimised = rlflow.optimise(MODEL, library=Path(__file__), method="greedy", cost_model="analytic")
    print(optimised.report.summary())
