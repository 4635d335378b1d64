"""Models with open sizes: a rewrite must be right at every size, not at those that happen to fit."""

from collections.abc import Sequence
from random import Random

import numpy as np
import pytest
from support.rewrites import each_of, graph_of
from support.strategies import source, weight

from rlflow.errors import TypeInferenceError
from rlflow.ir import INPUT, Graph, Node, Ref, make_graph
from rlflow.ir.graph import Header
from rlflow.ir.tensor_type import Dimension, TensorType
from rlflow.ops import registry
from rlflow.rules.declared import joins
from rlflow.rules.declared.catalogue import rules_of
from rlflow.rules.expression import Unproven
from rlflow.rules.library import load
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.rules.plan import Instance, plan_of
from rlflow.rules.rule import Rule
from rlflow.rules.verification import sampler

RULES = load().rules
DRAWS = 12


def opened(instance: Instance, rng: np.random.Generator) -> dict[str, TensorType]:
    """Some sizes replaced: by a name for each size, by a name of their own, or by nothing that is known."""
    kinds: list[list[Dimension]] = []

    def replaced(size: int, place: str) -> Dimension:
        options: Sequence[Dimension] = (size, f"size{size}", place, None)
        return options[rng.choice(4, p=(0.4, 0.4, 0.1, 0.1))]

    for name in instance.types:
        kinds.append([replaced(d, f"{name}{axis}") for axis, d in enumerate(instance.shape(name))])
    return {name: TensorType("float32", tuple(shape)) for name, shape in zip(instance.types, kinds, strict=True)}


def source_graph(rule: Rule, types: dict[str, TensorType], instance: Instance) -> Graph:
    """The rule's source over inputs of these types; what must be constant keeps the instance's sizes."""
    nodes: list[Node] = []
    for name, kind in types.items():
        shape = instance.shape(name)
        value = instance.given(name)
        if value is not None:
            nodes.append(weight(value, name))
        elif rule.spec(name).constant:
            nodes.append(weight(np.ones(shape, np.float32), name))
        else:
            nodes.append(Node(INPUT, (), {}, (kind,), (name,)))
    plan = plan_of(
        rule.source,
        Instance({n: k.types[0] for n, k in zip(types, nodes, strict=True)}, instance.attributes, instance.literals),
    )  # type: ignore[misc]
    for step in plan.steps:
        operands = [(r, nodes[r.node].types[r.index], nodes[r.node].constant) for r in step.inputs]
        nodes.append(registry.apply(step.op, step.attributes, operands))
    outputs = []
    for ref in plan.outputs:
        nodes.append(Node("Relu", (ref,), {}, (nodes[ref.node].types[ref.index],), ("",)))
        outputs.append(Ref(len(nodes) - 1))
    inputs = [i for i, node in enumerate(nodes) if node.op == INPUT]
    return make_graph(dict(enumerate(nodes)), inputs, outputs, [f"y{i}" for i in range(len(outputs))], Header(21))


@each_of(RULES)
def test_what_matches_open_sizes_is_typed_at_the_sizes_that_they_had(rule: Rule) -> None:
    rng, random = np.random.default_rng(0), Random(0)
    for _ in range(DRAWS):
        instance = sampler.draw(rule, random)
        try:
            graph = source_graph(rule, opened(instance, rng), instance)
        except (TypeInferenceError, Unproven):
            continue
        sizes = dict(zip(graph.nodes, instance.types.values(), strict=False))
        for match in Rewriter([rule]).matches(graph)[0]:
            if any(ref.node not in sizes for ref in match.bindings.values()):
                continue  # further up than the rule was put
            bound = {name: sizes[ref.node] for name, ref in match.bindings.items()}
            actual = Instance(bound, instance.attributes, instance.literals)
            assert plan_of(rule.target, actual).types == plan_of(rule.source, actual).types


def test_open_sizes_are_matched_all_the_same() -> None:
    """The test above is not vacuous: most rules match where sizes are named."""
    matched = set()
    some = RULES[::6]
    for rule in some:
        random = Random(0)
        for _ in range(DRAWS):
            instance = sampler.draw(rule, random)
            types = {
                name: TensorType("float32", tuple(f"size{d}" if d > 1 else d for d in instance.shape(name)))
                for name in instance.types
            }
            try:
                graph = source_graph(rule, types, instance)
            except (TypeInferenceError, Unproven):
                continue
            if Rewriter([rule]).matches(graph)[0]:
                matched.add(rule.id)
    assert len(matched) > len(some) // 2


@pytest.mark.parametrize("op", ["Add", "Mul"])
def test_a_sum_that_fits_at_one_size_alone_is_not_taken_apart(op: str) -> None:
    """K must be 5 or 1 here; at 5 the parts, of 2 and 3, fit nothing."""

    def build(nodes: list[Node]) -> list[Ref]:
        shapes: dict[str, tuple[int | str, ...]] = {"a": ("S", "K"), "b": ("S", 2), "c": ("S", 3)}
        for name, shape in shapes.items():
            nodes.append(source(shape, name))
        for name, operands, attributes in (("Concat", (1, 2), {"axis": -1}), (op, (3, 0), {})):
            given = [(Ref(i), nodes[i].types[0], False) for i in operands]
            nodes.append(registry.apply(name, attributes, given))
        return [Ref(len(nodes) - 1)]

    rules = [rule for rule in rules_of(joins) if "of-parts" in rule.name]
    assert not any(Rewriter(rules).matches(graph_of(build)))
