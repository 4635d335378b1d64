"""Trajectories over small models of the zoo, as they are recorded: run this file to record them anew.

A step is drawn uniformly from the rules that match, then from the rule's places, so that many rules take part. Those to
draw from are listed in `recorded/rules.txt`: a rule that is added later changes no recording.
`make renew NAME=recording` is for when a rule goes, or when new ones shall take part.
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
from rlflow.equivalence.compare import compare
from rlflow.ir.graph import Graph
from rlflow.method import Budget, Ledger, Workspace
from rlflow.onnx_io import from_onnx, to_onnx
from rlflow.rules import library as rule_library
from rlflow.rules.library import Library
from rlflow.rules.matching.rewriter import Location, Rewriter
from rlflow.trajectory import record
from rlflow.trajectory.record import Trajectory
from rlflow.zoo.builder import GraphBuilder
from support.zoo_names import SMALL

FOLDER = Path(__file__).parents[1] / "trajectory/recorded"
RULES = FOLDER / "rules.txt"
"""The ids of the rules that the recordings were drawn from, one a line, in the order of their library."""

STEPS = 24

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


def _small(name: str, **others: object) -> Callable[[], ModelProto]:
    return partial(zoo.build, name, **SMALL.get(name, {}) | others)


MODELS: dict[str, Callable[[], ModelProto]] = {
    "bert": _small("bert", layers=2),
    "bert_decomposed": _small("bert", layers=2, layer_norm="decomposed"),
    "bert_open_batch": _small("bert", layers=2, batch="batch"),
    "branches": branches,
    "conv": _small("conv"),
    "gpt2": _small("gpt2"),
    "inception_v3": _small("inception_v3"),
    "mobilenet_v2": _small("mobilenet_v2"),
    "nasrnn": _small("nasrnn"),
    "resnet18": _small("resnet18"),
    "squeezenet1_1": _small("squeezenet1_1"),
    "t5_decoder": _small("t5_decoder"),
    "tiny_chain": _small("tiny_chain"),
    "tiny_merge": _small("tiny_merge"),
    "tiny_transpose": _small("tiny_transpose"),
    "vit": _small("vit", layers=2),
}


def recorded(name: str) -> Trajectory:
    """The one that is on file."""
    (trajectory,) = record.load(FOLDER / f"{name}.jsonl")
    return trajectory


def rules_recorded(library: Library) -> Library:
    """The rules that the recordings were drawn from; `InputError` naming one that the library has no more."""
    return library.select(RULES.read_text().split())


def recording(name: str, library: Library, rewriter: Rewriter) -> tuple[Trajectory, Graph]:
    """A new one, and the graph at its end."""
    work = Workspace.begin(
        from_onnx(MODELS[name]()), rewriter, AnalyticCost(), library.hash, Ledger(Budget(expansions=STEPS))
    )
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
    RULES.write_text("".join(f"{rule.id}\n" for rule in library.rules))
    for name, trajectory in made.items():
        record.save([trajectory], FOLDER / f"{name}.jsonl")
        rules = len({step.rule for step in trajectory.steps})
        _LOGGER.info("%s: %d steps of %d rules", name, len(trajectory.steps), rules)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    main()
