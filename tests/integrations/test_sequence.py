"""A sequence that was found on one model is one rule for others: it applies where all of its steps hold, as a whole."""

from dataclasses import replace

import onnx_ir as ir
import pytest
from onnx import ModelProto
from onnx_ir.passes.common import ShapeInferencePass
from onnxscript.rewriter import RewriteRule, rewrite
from support.onnx_models import with_drawn_weights

import rlflow
from rlflow import zoo
from rlflow.cost.analytic import AnalyticCost
from rlflow.errors import InputError, ReplayError
from rlflow.integrations.onnxscript import rules
from rlflow.integrations.sequence import SequenceRule, sequence
from rlflow.ir.graph import Graph
from rlflow.ir.structural_hash import structural_hash
from rlflow.method import Budget
from rlflow.onnx_io import from_onnx
from rlflow.rules.library import Library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.search.chains import Chains
from rlflow.trajectory.record import Step, Trajectory

CHAIN = """
    <ir_version: 8, opset_import: ["" : 17]>
    chain (float[{rows}, {a}] x, float[{c}, {a}] z) => (float[{rows}, {a}] y)
    <float[{a}, {b}] v, float[{b}, {c}] w, float[{c}, {a}] u> {{
        first = MatMul(x, v)
        second = MatMul(first, w)
        third = {third}
        y = Relu(third)
    }}
"""
SIZES = {"rows": 512, "a": 32, "b": 256, "c": 256}


def chain(third: str = "MatMul(second, u)", **sizes: int | str) -> ModelProto:
    """Three products and a Relu, in which all weights become one, if the inner sizes are large."""
    return with_drawn_weights(CHAIN.format(third=third, **{**SIZES, **sizes}))


def found(library: Library, model: ModelProto) -> tuple[Graph, Trajectory]:
    graph = from_onnx(model)
    search = Chains(library, Rewriter(library.rules), AnalyticCost())
    return graph, search.optimise(graph, Budget(expansions=30)).trajectory


def operators(model: ModelProto, *said: RewriteRule) -> list[str]:
    """The operators of a model after the rules, which must not change what it computes."""
    after = rewrite(ShapeInferencePass()(ir.from_proto(model)).model, pattern_rewrite_rules=said)
    report = rlflow.equivalence(model, ir.to_proto(after))
    assert report.equivalent, report.reason
    return [node.op_type for node in after.graph]


@pytest.fixture(scope="module")
def weights_become_one(library: Library) -> SequenceRule:
    graph, trajectory = found(library, chain())
    assert len(trajectory.steps) == 2
    return sequence(graph, trajectory)


@pytest.mark.parametrize("sizes", [{}, {"rows": "n"}, {"rows": 100, "a": 8, "b": 64, "c": 128}], ids=repr)
def test_it_applies_at_sizes_on_which_it_was_not_found(weights_become_one: SequenceRule, sizes: dict[str, int]) -> None:
    assert operators(chain(**sizes)) == ["MatMul", "MatMul", "MatMul", "Relu"]
    assert operators(chain(**sizes), weights_become_one) == ["MatMul", "Relu"]


@pytest.mark.parametrize(
    ("model", "kept"),
    [
        (chain("MatMul(second, z)"), ["MatMul", "MatMul", "MatMul", "Relu"]),
        (chain("Mul(second, u)", rows=32, c=32), ["MatMul", "MatMul", "Mul", "Relu"]),
    ],
    ids=["an input in place of a weight", "another operator"],
)
def test_it_leaves_what_is_not_like_it(weights_become_one: SequenceRule, model: ModelProto, kept: list[str]) -> None:
    assert operators(model, weights_become_one) == kept


def test_a_sequence_pays_as_a_whole(library: Library) -> None:
    """The first of these steps makes a product through one column a larger one; both together make one of three."""
    model = chain(b=1)
    graph, rewriter = from_onnx(model), Rewriter([library.get("associate-weights")])
    start, steps, prices = graph, list[Step](), [AnalyticCost().runtime_ms(graph)]
    while matches := rewriter.matches(graph)[0]:
        first = min(matches, key=lambda match: graph.positions()[match.roots[0].node])
        graph = rewriter.apply(graph, first)
        steps.append(Step(first.rule.id, matches.index(first), structural_hash(graph), 0.0, 0.0))
        prices.append(AnalyticCost().runtime_ms(graph))
    assert prices[1] > prices[0] > prices[2]
    trajectory = Trajectory(structural_hash(start), prices[0], "analytic", library.hash, tuple(steps))
    assert operators(model, sequence(start, trajectory)) == ["MatMul", "Relu"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tiny_chain", "tiny_scale", "tiny_transpose"])
def test_what_a_search_found_is_done_again(library: Library, name: str) -> None:
    model = zoo.build(name)
    said = sequence(*found(library, model))
    assert said.trajectory.steps
    assert len(operators(model, said)) < len(model.graph.node)


def test_what_cannot_be_said_is_refused(library: Library) -> None:
    graph, trajectory = found(library, zoo.build("tiny_merge"))
    with pytest.raises(InputError, match="replaces the values of 3 nodes"):
        sequence(graph, trajectory)
    with pytest.raises(InputError, match="replaces the values of 0 nodes"):
        sequence(graph, replace(trajectory, steps=()))
    with pytest.raises(ReplayError, match="starts from graph"):
        sequence(from_onnx(chain()), trajectory)


def test_it_stands_beside_single_rules(weights_become_one: SequenceRule) -> None:
    assert operators(chain(), weights_become_one, *rules(["associate-weights"])) == ["MatMul", "Relu"]
