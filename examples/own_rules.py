"""Rules of your own: Relu(Relu(x)) is Relu(x), and a mistake about it that must be refused.

No rule is trusted, whoever wrote it: `load_rules` verifies what a file declares at drawn shapes, exactly over a finite
field and in ONNX Runtime, and refuses what is wrong with file, line and a counter-example. So do

    rlflow rules verify own_rules.py
    rlflow optimise model.onnx -o faster.onnx --rules own_rules.py

docs/rules.md teaches the language. In RLFlow itself a rule is such a declaration in `rules/declared/`.
"""

from pathlib import Path

from onnx import parser

import rlflow
from rlflow.rules.dsl import Rewrite, Tensor, false_control, rule
from rlflow.rules.dsl.operators import Relu, Tanh
from rlflow.rules.user_rules import load_rules


@rule("relu-twice")
def relu_twice(x: Tensor) -> Rewrite:
    """The second Relu does nothing."""
    return Rewrite(Relu(Relu(x)), Relu(x))


@false_control("relu-of-tanh", of="relu-twice")
def relu_of_tanh(x: Tensor) -> Rewrite:
    """False: a hyperbolic tangent has both signs."""
    return Rewrite(Relu(Tanh(x)), Tanh(x))


MODEL = parser.parse_model("""
    <ir_version: 8, opset_import: ["" : 17]>
    twice (float[64, 64] x) => (float[64, 64] y) { a = Relu(x)  b = Relu(a)  y = Tanh(b) }
""")

if __name__ == "__main__":
    library = load_rules(Path(__file__))
    print("\n".join(f"{rule.name}: {rule.equation()}" for rule in library.rules))
    optimised = rlflow.optimise(MODEL, library=library, method="greedy", cost_model="analytic")
    print(optimised.report.summary())
