"""A rule that is false, and trajectories that it spoils."""

from rlflow.cost.analytic import AnalyticCost
from rlflow.equivalence.compare import compare
from rlflow.method import Budget, Ledger, Workspace
from rlflow.onnx_io import to_onnx
from rlflow.rules.matching.sharing import rewriter_of
from rlflow.rules.rule import rule_from_json

# Looks like a rule that merges two biases, and loses one of them. No certificate: it could not be in a library.
WRONG = rule_from_json(
    "lose-a-bias",
    "linear",
    [["Add", ["MatMul", "x", "w"], "c"]],
    [["MatMul", "x", "w"]],
    {"c": {"shape": ["n"], "constant": True}},
)


def differs_from(graph):
    original = to_onnx(graph)
    return lambda other: not compare(original, to_onnx(other)).equivalent


def with_a_wrong_step(bert, shipped, right_before, right_after, matching="private"):
    """Right steps, the wrong one, right steps."""
    rewriter = rewriter_of(matching, [*shipped.rules, WRONG])
    work = Workspace.begin(bert, rewriter, AnalyticCost(), "none", Ledger(Budget(expansions=1)))

    def right(state):
        actions = [a for a in work.actions(state) if a.rule < len(shipped.rules)]
        return work.step(state, actions[len(actions) // 2])

    state = work.start
    for _ in range(right_before):
        state = right(state)
    wrong = [a for a in work.actions(state) if a.rule == len(shipped.rules)]
    state = work.step(state, wrong[-1])
    for _ in range(right_after):
        state = right(state)
    return work.result(state).trajectory, rewriter
