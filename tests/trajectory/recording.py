"""Trajectories over small models of the zoo, as they are recorded: run this file to record them anew.

They depend on the rules, so `make trajectories` belongs to every change of the library. A step is drawn uniformly from
the rules that match, then from the rule's places, so that many rules take part.
"""

import logging
import random
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from onnx import GraphProto, ModelProto, TensorProto, helper

from rlflow import zoo
from rlflow.cost.analytic import AnalyticCost
from rlflow.ir.graph import Graph
from rlflow.onnx_io import from_onnx, to_onnx
from rlflow.optimiser import Budget, Workspace
from rlflow.rules import library as rule_library
from rlflow.rules.library import Library
from rlflow.rules.rewriter import Location, Rewriter
from rlflow.runtime.equivalence import compare
from rlflow.trajectory import record
from rlflow.trajectory.record import Trajectory
from rlflow.zoo.builder import GraphBuilder

FOLDER = Path(__file__).parent / "recorded"
STEPS = 24

_TRANSFORMER = {"layers": 2, "hidden": 32, "heads": 2, "intermediate": 64}
_TEXT = _TRANSFORMER | {"sequence": 8, "vocabulary": 50, "positions": 16}
_IMAGE = {"image": 64, "classes": 10}
_LOGGER = logging.getLogger(__name__)


def branches() -> ModelProto:
    """An If between two products: its branches read a value from outside by its name, which rewrites must keep."""
    b = GraphBuilder("branches", seed=0, opset=17)
    x, flag = b.input("x", (8, 16)), b.input("flag", (), TensorProto.BOOL)
    hidden = _scaled_product(b, x, "before")
    then, otherwise = (_branch(operator, hidden) for operator in ("Neg", "Relu"))
    chosen = b.node("If", flag, scope="choice", then_branch=then, else_branch=otherwise)
    b.output("y", _scaled_product(b, b.node("Add", chosen, hidden, scope="sum"), "after"), (8, 16))
    return b.finish()


def _scaled_product(b: GraphBuilder, x: str, scope: str) -> str:
    product = b.node("MatMul", x, b.parameter(f"{scope}/w", (16, 16), std=0.25), scope=scope)
    scaled = b.node("Mul", product, b.constant("two", np.float32(2)), scope=scope)
    return b.node("Add", scaled, b.parameter(f"{scope}/b", (16,), std=1.0), scope=scope)


def _branch(operator: str, captured: str) -> GraphProto:
    output = helper.make_tensor_value_info(f"{operator}/y", TensorProto.FLOAT, (8, 16))
    return helper.make_graph([helper.make_node(operator, [captured], [output.name])], operator, [], [output])


MODELS: dict[str, Callable[[], ModelProto]] = {
    "bert": partial(zoo.build, "bert", **_TEXT),
    "bert_decomposed": partial(zoo.build, "bert", **_TEXT, layer_norm="decomposed"),
    "bert_open_batch": partial(zoo.build, "bert", **_TEXT, batch="batch"),
    "branches": branches,
    "conv": partial(zoo.build, "conv"),
    "inception_v3": partial(zoo.build, "inception_v3", **_IMAGE | {"width": 2, "image": 107}),
    "mlp": partial(zoo.build, "mlp"),
    "resnet18": partial(zoo.build, "resnet18", **_IMAGE, width=8),
    "resnet50": partial(zoo.build, "resnet50", **_IMAGE, width=4),
    "squeezenet1_1": partial(zoo.build, "squeezenet1_1", **_IMAGE, width=4),
    "tiny_chain": partial(zoo.build, "tiny_chain"),
    "tiny_merge": partial(zoo.build, "tiny_merge"),
    "tiny_transpose": partial(zoo.build, "tiny_transpose"),
    "vit": partial(zoo.build, "vit", **_TRANSFORMER, image=32, classes=10),
}


def recorded(name: str) -> Trajectory:
    """The one that is on file."""
    (trajectory,) = record.load(FOLDER / f"{name}.jsonl")
    return trajectory


def recording(name: str, library: Library, rewriter: Rewriter) -> tuple[Trajectory, Graph]:
    """A new one, and the graph at its end."""
    work = Workspace.begin(from_onnx(MODELS[name]()), rewriter, AnalyticCost(), library.hash, Budget(expansions=STEPS))
    rng, state = random.Random(name), work.start
    while state.depth < STEPS and (matches := _matching(rewriter, state.graph)):
        rule, count = rng.choice(matches)
        state = work.step(state, Location(rule, rng.randrange(count)))
    return work.result(state).trajectory, state.graph


def _matching(rewriter: Rewriter, graph: Graph) -> list[tuple[int, int]]:
    """Rules that match, and how often."""
    return [(rule, len(found)) for rule, found in enumerate(rewriter.matches(graph)) if found]


def main() -> None:
    """Record all of them. Nothing is written if one ends in a model that computes something else."""
    library = rule_library.load()
    rewriter = Rewriter(library.rules)
    made = {}
    for name in MODELS:
        made[name], end = recording(name, library, rewriter)
        report = compare(MODELS[name](), to_onnx(end))
        if not report.equivalent:
            sys.exit(f"{name} is {report.summary}: the library has a wrong rule")
    for name, trajectory in made.items():
        record.save([trajectory], FOLDER / f"{name}.jsonl")
        rules = len({step.rule for step in trajectory.steps})
        _LOGGER.info("%s: %d steps of %d rules", name, len(trajectory.steps), rules)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    main()
