"""Graphs whose best form lies behind a worse one, and the way there that an expert shows.

In y = (x * 0.5) w a scale must first move to a larger tensor, where it then disappears into a weight; greedy search
does not begin.
"""

from collections.abc import Sequence
from functools import cache

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from rlflow.cost.analytic import AnalyticConfig, AnalyticCost
from rlflow.ir.graph import Graph
from rlflow.method import Budget, Ledger, State, Workspace
from rlflow.onnx_io import from_onnx
from rlflow.processes.token_process import TokenProcess
from rlflow.rules.library import Library
from rlflow.rules.matching.sharing import SharingRewriter
from rlflow.trajectory.record import Trajectory
from support.walks import LIBRARY

OUT, INTO = "scale-out-of-left-operand", "scale-into-weight"
ASTRAY = ("scale-to-left-operand", "Mul(a, b) => Mul(b, a)")
"""Rules that lead back, or nowhere."""
COST = AnalyticCost(AnalyticConfig(gflops_per_s=100, gbytes_per_s=40, launch_us=2.0))
"""By it the detour costs a few percent half way."""


@cache
def detour_rules() -> Library:
    return LIBRARY.select([LIBRARY.get(name).id for name in (OUT, INTO)])


@cache
def rules_astray() -> Library:
    """The same with rules that lead astray."""
    return LIBRARY.select([LIBRARY.get(name).id for name in (*ASTRAY, OUT, INTO)])


@cache
def detours(number: int = 1) -> Graph:
    """Alike places side by side: (x * 0.5) w, with twice as many columns in w as in x."""
    nodes, inputs, outputs, weights = [], [], [], []
    values = np.random.default_rng(0).standard_normal((64, 128), np.float32)
    for place in range(number):
        nodes.append(helper.make_node("Mul", [f"x{place}", f"s{place}"], [f"u{place}"]))
        nodes.append(helper.make_node("MatMul", [f"u{place}", f"w{place}"], [f"y{place}"]))
        inputs.append(helper.make_tensor_value_info(f"x{place}", TensorProto.FLOAT, (512, 64)))
        outputs.append(helper.make_tensor_value_info(f"y{place}", TensorProto.FLOAT, (512, 128)))
        scale = np.array(0.5, np.float32)
        weights += [numpy_helper.from_array(values + place, f"w{place}"), numpy_helper.from_array(scale, f"s{place}")]
    graph = helper.make_graph(nodes, "detours", inputs, outputs, weights)
    return from_onnx(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)]))


def detour_process(number: int = 1, library: Library | None = None) -> TokenProcess:
    rules = (library or detour_rules()).rules
    return TokenProcess(detours(number), SharingRewriter(rules), COST)


def walked(graph: Graph, names: Sequence[str], library: Library | None = None) -> Trajectory:
    """The trajectory that takes the first match of each named rule in turn."""
    library = library or detour_rules()
    rewriter = SharingRewriter(library.rules)
    work = Workspace.begin(graph, rewriter, COST, library.hash, Ledger(Budget()))
    state: State = work.start
    for name in names:
        rule = next(number for number, one in enumerate(library.rules) if one.name == name)
        state = work.step(state, next(action for action in work.actions(state) if action.rule == rule))
    return work.trajectory(work.start, state)
