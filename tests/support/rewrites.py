"""Graphs around rules, and outputs to compare."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from random import Random

import numpy as np
import onnx
import pytest

from rlflow.equivalence.compare import compare
from rlflow.errors import RLFlowError
from rlflow.ir import INPUT, Graph, Header, Node, Ref, make_graph, validate
from rlflow.onnx_io import check_model, from_onnx, to_onnx
from rlflow.onnx_io.standalone import standalone_model
from rlflow.ops import registry
from rlflow.ops.domain import FloatDomain
from rlflow.ops.reference import evaluate_value
from rlflow.rules import pattern
from rlflow.rules.expression import bounded_in
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.rules.plan import Instance, plan_of
from rlflow.rules.rule import Rule
from rlflow.rules.verification import sampler
from rlflow.runtime.session import open_session
from support.strategies import source, weight


def each_of(rules: Sequence[Rule]) -> pytest.MarkDecorator:
    """A test for each rule of a library. There are hundreds: one in 24 is among the fast tests, two more are among the
    slow ones, and all others are left to `make test MARK=exhaustive`.
    """
    marks = {0: [], 8: [pytest.mark.slow], 16: [pytest.mark.slow]}
    return pytest.mark.parametrize(
        "rule", [pytest.param(r, id=r.id, marks=marks.get(i % 24, pytest.mark.exhaustive)) for i, r in enumerate(rules)]
    )


_ROUNDINGS = 1000
"""A value may be off by so many roundings of the largest number that occurred on the way to it."""


def draw_feeds(graph: Graph, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Normal numbers for float inputs, zeros and ones for others."""
    feeds = {}
    for identifier in graph.inputs:
        node = graph.nodes[identifier]
        kind = node.types[0]
        assert kind is not None
        shape = tuple(d for d in kind.shape or () if isinstance(d, int))
        drawn = rng.standard_normal(shape) if kind.is_float else rng.integers(0, 2, shape)
        feeds[node.names[0]] = np.asarray(drawn, dtype=kind.dtype)
    return feeds


def compute(graph: Graph, feeds: Mapping[str, np.ndarray]) -> tuple[dict[str, np.ndarray], float]:
    """The outputs by the reference interpreter, and the largest number that occurred."""
    values = {Ref(i): feeds[graph.nodes[i].names[0]] for i in graph.inputs}
    outputs = {
        name: evaluate_value(graph.nodes, ref, values, FloatDomain())
        for name, ref in zip(graph.output_names, graph.outputs, strict=True)
    }
    finite = [np.abs(v[np.isfinite(v)]) for v in values.values() if v.dtype.kind == "f"]
    return outputs, max((float(v.max()) for v in finite if v.size), default=1.0)


def assert_same_outputs(before: Graph, after: Graph, rng: np.random.Generator) -> None:
    """Valid, of the same interface, and equal up to rounding."""
    validate(after)
    assert after.output_names == before.output_names
    assert [after.type_of(r) for r in after.outputs] == [before.type_of(r) for r in before.outputs]
    feeds = draw_feeds(before, rng)
    (wanted, scale), (found, other_scale) = compute(before, feeds), compute(after, feeds)
    tolerance = _ROUNDINGS * float(np.finfo(np.float32).eps) * max(1.0, scale, other_scale)
    for name, value in wanted.items():
        np.testing.assert_allclose(found[name], value, rtol=0, atol=tolerance, err_msg=name)


def embed(rule: Rule, instance: Instance, rng: np.random.Generator) -> tuple[Graph, tuple[Ref, ...]]:
    """The rule's source in a graph whose variables are inputs, or weights where they must be, and its roots there.

    A Relu reads each root, a Cast one of whole numbers, so that the roots are no outputs. The header offers the
    operators of both sides.
    """
    plan = plan_of(rule.source, instance)
    nodes: list[Node] = []
    for name, kind in instance.types.items():
        spec, value = rule.spec(name), instance.given(name)
        if value is not None:
            nodes.append(weight(value, name))
        elif spec.constant or name in bounded_in(rule.where):  # the bound of what is stored is seen
            nodes.append(weight(rng.standard_normal(instance.shape(name)).astype(np.float32), name))
        else:
            nodes.append(Node(INPUT, (), {}, (kind,), (name,)))
    for step in plan.steps:
        constant = all(nodes[r.node].constant for r in step.inputs)
        blank = ("",) * len(step.types)
        nodes.append(Node(step.op, step.inputs, step.attributes, step.types, blank, constant))
    outputs = []
    for ref in plan.outputs:
        kind = nodes[ref.node].types[ref.index]
        reader = ("Relu", {}) if kind.is_float else ("Cast", {"to": "float32"})
        nodes.append(registry.apply(*reader, [(ref, kind, False)]))
        outputs.append(Ref(len(nodes) - 1))
    inputs = [i for i, node in enumerate(nodes) if node.op == INPUT]
    names = [f"y{i}" for i in range(len(outputs))]
    versions = registry.versions(node.op for node in pattern.operators(*rule.source, *rule.target))
    header = Header(max(21, versions.pop("", 0)), domains=versions)
    return make_graph(dict(enumerate(nodes)), inputs, outputs, names, header), plan.outputs


def graph_of(build: Callable[[list[Node]], Sequence[Ref]], opset: int = 17) -> Graph:
    """A graph of the nodes that `build` appends, with the outputs that it returns."""
    nodes: list[Node] = []
    outputs = build(nodes)
    inputs = [i for i, node in enumerate(nodes) if node.op == INPUT]
    names = [f"y{i}" for i in range(len(outputs))]
    return make_graph(dict(enumerate(nodes)), inputs, outputs, names, Header(opset))


def applied(nodes: list[Node], op: str, *operands: Ref, **attributes: object) -> Ref:
    """A node of this operator, with its defaults."""
    given = [(r, nodes[r.node].types[r.index], nodes[r.node].constant) for r in operands]
    nodes.append(registry.apply(op, {**registry.OPERATORS[op].defaults, **attributes}, given))
    return Ref(len(nodes) - 1)


def read(nodes: list[Node], name: str, *shape: int) -> Ref:
    """An input."""
    nodes.append(source(shape, name))
    return Ref(len(nodes) - 1)


def rewritten(rules: Mapping[str, Rule], graph: Graph, *names: str) -> Graph:
    """The first match of each of these rules, one after the other."""
    for name in names:
        rewriter = Rewriter([rules[name]])
        graph = rewriter.apply(graph, rewriter.matches(graph)[0][0])
    return graph


def operators(graph: Graph) -> Counter[str]:
    """How often each one runs."""
    return Counter(graph.nodes[i].op for i in graph.order)


def matching_rules(rules: Iterable[Rule], model: onnx.ModelProto) -> list[str]:
    """The name of each match's rule."""
    return [m.rule.name for matches in Rewriter(list(rules)).matches(from_onnx(model)) for m in matches]


def rewritten_model(rule: Rule, model: onnx.ModelProto) -> onnx.ModelProto:
    """The model after the rule's first match, which computes the same."""
    rewriter, graph = Rewriter([rule]), from_onnx(model)
    ((match, *_),) = rewriter.matches(graph)
    after = to_onnx(rewriter.apply(graph, match))
    check_model(after)
    assert compare(model, after).equivalent
    return after


def is_opened(model: onnx.ModelProto) -> bool:
    """Whether ONNX Runtime opens the model as deployed. On x86, 1.32 fails at int8 that is moved behind a
    DequantizeLinear in opset 21: its optimisers make it uint8, and keep the attribute that says int8.
    """
    try:
        open_session(model, "deployed")
    except RLFlowError:
        return False
    return True


_MODELS = 20


def assert_fires_on_a_model(rule: Rule) -> None:
    """Its source, written as an ONNX model and read again, is rewritten, and ONNX Runtime computes the same. Not
    vacuous: among so many models one must have a place for the rule.
    """
    random, rng = Random(0), np.random.default_rng(0)
    rewriter = Rewriter([replace(rule, profitable_if=())])  # what is drawn is small
    for _ in range(_MODELS):
        model = standalone_model(embed(rule, sampler.draw(rule, random), rng)[0])
        onnx.checker.check_model(model)
        imported = from_onnx(model)
        if (matches := rewriter.matches(imported)[0]) and is_opened(model):
            exported = to_onnx(rewriter.apply(imported, matches[0]))
            onnx.checker.check_model(exported)
            assert compare(model, exported).equivalent
            return
    pytest.fail(f"none of {_MODELS} drawn models has a place for {rule.name}")
