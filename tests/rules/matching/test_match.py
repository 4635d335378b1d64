"""What a match asks of the graph: nothing else reads inside it, constants are constant, types are certified."""

import pytest
from support.rewrites import graph_of
from support.strategies import source
from support.walks import LIBRARY, add, leaf, random_weight

from rlflow.ir import INPUT, Graph, Node, Ref
from rlflow.ir.tensor_type import TensorType
from rlflow.ops.algebra import ELEMENT_TYPES, Algebra
from rlflow.rules.library import Library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.rules.rule import rule_from_json

RELU_TWICE = rule_from_json("relu-twice", "test", [["Relu", ["Relu", "x"]]], [["Relu", "x"]])


@pytest.mark.parametrize("read", ["nowhere else", "by another node", "as an output"])
def test_a_match_is_private(read: str) -> None:
    """A value inside a match that is read elsewhere would have to be computed twice."""

    def build(nodes: list[Node]) -> list[Ref]:
        inner = add(nodes, "Relu", leaf(nodes, source((2,), "x")))
        outer = add(nodes, "Relu", inner)
        return [outer] + {
            "nowhere else": [],
            "by another node": [add(nodes, "Tanh", inner)] if read == "by another node" else [],
            "as an output": [inner],
        }[read]

    (found,) = Rewriter([RELU_TWICE]).matches(graph_of(build))
    assert len(found) == (read == "nowhere else")


def test_what_is_not_understood_is_never_matched(bert: Graph) -> None:
    """Integer operands: rules are about real numbers."""
    rule = rule_from_json(
        "any-gather", "test", [["Gather", {"axis": 0}, "x", "i"]], [["Gather", {"axis": 0}, "x", "i"]]
    )
    assert any(node.op == "Gather" for node in bert.nodes.values())
    assert [*Rewriter([rule]).matches(bert)] == [()]


@pytest.mark.parametrize("dtype", sorted(ELEMENT_TYPES[Algebra.NOTHING]))
def test_rules_fire_on_the_elements_for_which_they_hold(dtype: str, library: Library) -> None:
    """In float16 a product overflows where its quotient did not, and in integers a product loses its highest bits."""

    def build(nodes: list[Node]) -> list[Ref]:
        a, b, c, d = (leaf(nodes, Node(INPUT, (), {}, (TensorType(dtype, (2, 3)),), (n,))) for n in "abcd")
        turned = add(nodes, "Transpose", add(nodes, "Transpose", d, perm=(1, 0)), perm=(1, 0))
        quotient = add(nodes, "Div", add(nodes, "Mul", a, b), a)
        return [add(nodes, "Mul", a, add(nodes, "Mul", b, c)), quotient, turned]

    beginnings = ("Transpose[perm=q](Transpose[perm=p](x)) => x", "Mul(a, Mul(b, c)) =>", "Div(Mul(a, b), a) =>")
    rules = [next(r for r in library.rules if r.equation().startswith(b)) for b in beginnings]
    fired = list(map(bool, Rewriter(rules).matches(graph_of(build)).counts))
    assert fired == [True, dtype in ELEMENT_TYPES[Algebra.RING], dtype in ELEMENT_TYPES[Algebra.NUMBERS]]


@pytest.mark.parametrize(("dtype", "shape"), [("int64", (3,)), ("int32", (1,)), ("int64", ())])
def test_sizes_are_left_as_they_are(dtype: str, shape: tuple[int, ...], library: Library) -> None:
    """The same product is rewritten in floats, so that it is the type that counts."""

    def fires(kind: TensorType) -> bool:
        def build(nodes: list[Node]) -> list[Ref]:
            a, b, c = (leaf(nodes, Node(INPUT, (), {}, (kind,), (n,))) for n in "abc")
            return [add(nodes, "Mul", a, add(nodes, "Mul", b, c))]

        return any(Rewriter(library.rules).matches(graph_of(build)).counts)

    assert fires(TensorType("float32", shape))
    assert not fires(TensorType(dtype, shape))


def test_constant_variables_bind_constants_only(library: Library) -> None:
    def build(nodes: list[Node]) -> list[Ref]:
        x, w, y = leaf(nodes, source((2, 3), "x")), random_weight(nodes, 3, 4), leaf(nodes, source((4, 4), "y"))
        return [add(nodes, "MatMul", add(nodes, "MatMul", x, w), y)]

    graph = graph_of(build)
    assert [*Rewriter([library.get("associate-weights")]).matches(graph)] == [()]
    associate = next(r for r in library.rules if r.equation() == "MatMul(MatMul(a, b), c) => MatMul(a, MatMul(b, c))")
    assert len(Rewriter([associate]).matches(graph)[0]) == 1


@pytest.mark.parametrize("batch", [0, 2])
def test_what_has_no_elements_is_left_alone(batch: int) -> None:
    """ONNX Runtime multiplies (1, 3, 1) and (0, 1, 4) with Mul, and refuses to with MatMul."""

    def product(nodes: list[Node]) -> list[Ref]:
        factors = [leaf(nodes, source((1, 3, 1), "x")), leaf(nodes, source((batch, 1, 4), "z"))]
        return [add(nodes, "Mul", *factors)]

    graph = graph_of(product)
    found = Rewriter(LIBRARY.rules).matches(graph)
    names = [rule.name for rule, count in zip(LIBRARY.rules, found.counts, strict=True) if count]
    assert ("Mul(a, b) => MatMul(a, b)" in names) == bool(names) == (batch > 0)
