"""What is told to run on whole numbers is what ONNX Runtime runs so, in quantised models and in rewritten ones."""

from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from onnx import parser
from support.quantised import MODELS, model_of

from rlflow.cost.base import CostContext
from rlflow.cost.evaluator import Evaluator
from rlflow.cost.fragment import describe, extract
from rlflow.cost.in_place import regions_of_kernel
from rlflow.cost.integer_kernels import CONVERTING, kernels_of
from rlflow.cost.kernels import kernels_of as placed_kernels
from rlflow.cost.predicted.cost import predicted
from rlflow.cost.predicted.features import FeatureReader
from rlflow.cost.regions import as_run, partition
from rlflow.ir import Graph
from rlflow.onnx_io import from_onnx
from rlflow.onnx_io.standalone import standalone_model
from rlflow.ops.integer_kernels import INTEGER_KERNELS, Computes
from rlflow.rules import library
from rlflow.rules.declared import quantised as quantised_rules
from rlflow.rules.declared.catalogue import rules_of
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.runtime.session import fused_model

PRODUCT = "product"
OF_ONNX_RUNTIME = {"MatMulIntegerToFloat": PRODUCT, "QGemm": PRODUCT, "QLinearMatMul": PRODUCT}
OURS = {"MatMul": PRODUCT, "Gemm": PRODUCT}
CASES = [(name, activations, False) for name in MODELS for activations in ("uint8", "int8")]
CASES += [("bert", "uint8", True), ("resnet", "uint8", True)]  # of GPT-2 the tool makes a model that cannot run
PAIR = "d = DequantizeLinear(q, scale, zero)"


def ours(graph: Graph) -> Counter[str]:
    """The operators that are told to compute with whole numbers, and the conversions that are told to run."""
    found: Counter[str] = Counter()
    for region in partition(graph).regions:
        nodes = as_run(graph, region)
        kernels = kernels_of(graph, nodes)
        for node in (kernels.worker.get(i, i) for i in nodes if i not in kernels.idle):
            op = graph.nodes[node].op
            if op in CONVERTING or (node in kernels.whole and isinstance(INTEGER_KERNELS[op], Computes)):
                found[OURS.get(op, op)] += 1
    return found


def of_onnx_runtime(graph: Graph) -> Counter[str]:
    """The same of ONNX Runtime's own graph."""
    return named([kernel.operator for kernel in placed_kernels(graph)[0]])


def named(names: list[str]) -> Counter[str]:
    """Those among ONNX Runtime's operators that compute with whole numbers or convert, by the names of ours."""
    whole = [name for name in names if name in {*OF_ONNX_RUNTIME, *CONVERTING} or name.startswith("QLinear")]
    return Counter(OF_ONNX_RUNTIME.get(name, name.removeprefix("QLinear")) for name in whole)


def computed(kernels: Counter[str]) -> Counter[str]:
    """These without the conversions."""
    return Counter({name: count for name, count in kernels.items() if name not in CONVERTING})


def walk(graph: Graph, steps: int, seed: int) -> Graph:
    """The graph after so many drawn rewrites by all rules."""
    rewriter, random = Rewriter(library.load().rules), Random(seed)
    for _ in range(steps):
        graph = rewriter.apply(graph, random.choice([match for found in rewriter.matches(graph) for match in found]))
    return graph


@pytest.mark.parametrize(("name", "activations", "per_channel"), CASES)
def test_the_kernels_of_quantised_models(name: str, activations: str, per_channel: bool) -> None:
    """All of them and all conversions that are left; after drawn rewrites all that compute. Of two readers of floats
    ONNX Runtime gives each a conversion of its own, also where both are in one region here.
    """
    graph = from_onnx(model_of(name, activations, per_channel))
    assert ours(graph) == of_onnx_runtime(graph)
    assert computed(ours(graph)).total() > 10
    for seed in range(2):
        after = walk(graph, 15, seed)
        assert computed(ours(after)) == computed(of_onnx_runtime(after))


@pytest.mark.parametrize("name", MODELS)
def test_no_kernel_crosses_a_border(name: str) -> None:
    graph = from_onnx(model_of(name, "uint8"))
    for each in (graph, walk(graph, 25, 0)):
        cut, (kernels, _) = partition(each), placed_kernels(each)
        assert [k for k in kernels if len(regions_of_kernel(each, cut, k)) > 1] == []


EXAMPLES = {
    "alone": (f"{PAIR} t = Erf(d) r = QuantizeLinear(t, scale, zero)", {"DequantizeLinear": 1, "QuantizeLinear": 1}),
    "one unit": (f"{PAIR} t = MatMul(d, d) r = QuantizeLinear(t, scale, zero)", {PRODUCT: 1}),
    "to floats": (f"{PAIR} r = MatMul(d, d)", {PRODUCT: 1}),
    "a sum to floats": (f"{PAIR} r = Add(d, d)", {"DequantizeLinear": 1}),
    "behind movements": (f"{PAIR} m = Transpose(d) t = MatMul(m, d) r = QuantizeLinear(t, scale, zero)", {PRODUCT: 1}),
    "before movements": (f"{PAIR} t = MatMul(d, d) m = Transpose(t) r = QuantizeLinear(m, scale, zero)", {PRODUCT: 1}),
    "a bias in floats": (f"{PAIR} t = MatMul(d, d) r = Add(t, bias)", {"DequantizeLinear": 1}),
    "a bias, quantised": (f"{PAIR} t = MatMul(d, d) b = Add(t, bias) r = QuantizeLinear(b, scale, zero)", {PRODUCT: 1}),
    "a clip that narrows": (
        f"{PAIR} t = MatMul(d, d) c = Relu(t) r = QuantizeLinear(c, scale, mid)",
        {"DequantizeLinear": 1, "QuantizeLinear": 1},
    ),
    "a clip to floats": (f"{PAIR} t = MatMul(d, d) c = Relu(t) r = Erf(c)", {"DequantizeLinear": 1}),
    "a clip that keeps": (f"{PAIR} t = MatMul(d, d) c = Relu(t) r = QuantizeLinear(c, scale, zero)", {PRODUCT: 1}),
    "undone": (f"{PAIR} r = QuantizeLinear(d, scale, zero)", {}),
    "another scale": (f"{PAIR} r = QuantizeLinear(d, scale, mid)", {"DequantizeLinear": 1, "QuantizeLinear": 1}),
    "moved to another scale": (
        f"{PAIR} t = Transpose(d) r = QuantizeLinear(t, scale, mid)",
        {"DequantizeLinear": 1, "QuantizeLinear": 1},
    ),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples(name: str) -> None:
    """What the texts of the package say, one by one."""
    body, expected = EXAMPLES[name]
    result = "uint8" if "r = QuantizeLinear" in body else "float"
    head = f'<ir_version: 8, opset_import: ["" : 17]> one (uint8[8, 8] q) => ({result}[8, 8] r)'
    ones = ", ".join(["1"] * 8)
    weights = f"<float scale = {{0.05}}, uint8 zero = {{0}}, uint8 mid = {{128}}, float[8] bias = {{{ones}}}>"
    graph = from_onnx(parser.parse_model(f"{head} {weights} {{ {body} }}"))
    assert ours(graph) == expected
    assert computed(of_onnx_runtime(graph)) == computed(Counter(expected))


def test_as_it_is_written_every_node_runs_by_itself() -> None:
    """A product of what is dequantised is one of floats there, and its conversions are kernels of their own."""
    graph, reader = from_onnx(model_of("bert", "uint8")), FeatureReader()
    facts = {i: reader.features(graph, (i,)).nodes for i in graph.order}
    assert all(len(nodes) == 1 for nodes in facts.values())
    assert {graph.nodes[i].op for i, (node,) in facts.items() if node.whole} == CONVERTING


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("activations", ["uint8", "int8"])
def test_a_price_is_that_of_the_graph(name: str, activations: str) -> None:
    """Updated from the parent's, foreseen before the rewrite, or asked of the graph alone: to the bit."""
    graph, random = from_onnx(model_of(name, activations)), Random(0)
    rewriter, cost = Rewriter(library.load().rules), predicted(CostContext())
    evaluator = Evaluator(rewriter, cost)
    for _ in range(25):
        match = random.choice([match for found in rewriter.matches(graph) for match in found])
        foreseen = evaluator.runtime_after_ms(graph, match)
        graph = rewriter.apply(graph, match)
        assert foreseen == cost.runtime_ms(graph) == predicted(CostContext()).runtime_ms(replace(graph, edit=None))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("activations", ["uint8", "int8"])
def test_moving_bytes_saves_nothing_that_onnx_runtime_does_itself(name: str, activations: str) -> None:
    """Before, moving all conversions of the small BERT was told to save more than a tenth."""
    graph = before = from_onnx(model_of(name, activations))
    rewriter = Rewriter(rules_of(quantised_rules))
    while match := next((first for first, *_ in filter(None, rewriter.matches(graph))), None):
        graph = rewriter.apply(graph, match)
    cost = predicted(CostContext())
    assert cost.runtime_ms(graph) == pytest.approx(cost.runtime_ms(before), rel=0.01)


@pytest.mark.parametrize("name", MODELS)
def test_a_region_by_itself_has_the_kernels_that_it_has_in_the_model(name: str) -> None:
    """So that one that is measured is what runs; with the DequantizeLinears that it reads, and none of its readers'."""
    graph = from_onnx(model_of(name, "uint8"))
    alone: Counter[str] = Counter()
    for region in partition(graph).regions:
        if nodes := as_run(graph, region):
            model = fused_model(standalone_model(extract(graph, describe(graph, nodes))))
            alone += computed(named([node.op_type for node in model.graph.node]))
    assert alone == computed(of_onnx_runtime(graph))
