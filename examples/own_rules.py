"""Rules of your own: Relu(Relu(x)) is Relu(x), and one that is wrong.

No rule is trusted, whoever wrote it: `certified` verifies it at drawn shapes, exactly over a finite field and in ONNX
Runtime, and refuses it with a counter-example. `Library.save` writes it with its certificate to a file that
`rlflow optimise --rules FILE` takes. In RLFlow itself a rule is a declaration in `rules/declared/`; see docs/rules.md.
"""

from onnx import parser

import rlflow
from rlflow.rules.pattern import parse
from rlflow.rules.rule import Rule
from rlflow.rules.verification.verify import VerificationConfig, certified

MODEL = parser.parse_model("""
    <ir_version: 8, opset_import: ["" : 17]>
    twice (float[64, 64] x) => (float[64, 64] y) { a = Relu(x)  b = Relu(a)  y = Tanh(b) }
""")
RELU_TWICE = Rule("relu-twice", "own", source=(parse(["Relu", ["Relu", "x"]]),), target=(parse(["Relu", "x"]),))
WRONG = Rule("relu-of-tanh", "own", source=(parse(["Relu", ["Tanh", "x"]]),), target=(parse(["Tanh", "x"]),))

if __name__ == "__main__":
    try:
        certified(WRONG, VerificationConfig())
    except rlflow.RuleError as error:
        print(error)

    library = rlflow.Library((certified(RELU_TWICE, VerificationConfig()),))
    optimised = rlflow.optimise(MODEL, library=library, method="greedy", cost_model="analytic")
    print(optimised.report.summary())
