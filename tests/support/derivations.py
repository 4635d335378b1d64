"""A model, and what a wrong rule makes of it."""

from onnx import TensorProto, helper, numpy_helper

from rlflow.cost.analytic import AnalyticCost
from rlflow.method import Budget, Ledger, Workspace
from rlflow.onnx_io import from_onnx, to_onnx
from rlflow.optimise.diagnose import Derivation
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.rules.rule import rule_from_json

FLOAT = TensorProto.FLOAT
LOSE_A_RELU = rule_from_json("lose-a-relu", "algebra", [["Relu", ["Neg", "x"]]], [["Neg", "x"]], {})


def derivation(nodes, stored):
    """A model from x (4, 8) to y, and what the wrong rule makes of it in one step."""
    graph = helper.make_graph(
        [helper.make_node(*node) for node in nodes],
        "g",
        [helper.make_tensor_value_info("x", FLOAT, [4, 8])],
        [helper.make_tensor_value_info("y", FLOAT, [4, 8])],
        [numpy_helper.from_array(value, name) for name, value in stored.items()],
    )
    original = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)])
    start, rewriter = from_onnx(original), Rewriter([LOSE_A_RELU])
    work = Workspace.begin(start, rewriter, AnalyticCost(), "0123456789abcdef", Ledger(Budget(expansions=1)))
    state = work.step(work.start, work.actions(work.start)[0])
    return Derivation(original, to_onnx(state.graph), start, work.result(state).trajectory, rewriter)
