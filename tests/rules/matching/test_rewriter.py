"""Matching: complete, private, in an order of its own, and the same whether done at once or step by step."""

from dataclasses import replace
from itertools import chain

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from immutables import Map
from rules.support import assert_same_outputs, graph_of
from strategies import graphs, source, weight

from rlflow.errors import RuleError
from rlflow.ir import INPUT, Graph, Node, Ref, structural_hash, validate
from rlflow.ir.tensor_type import TensorType
from rlflow.ops import registry
from rlflow.rules.library import Library, load
from rlflow.rules.matching.match import Match
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.rules.rule import rule_from_json

LIBRARY = load()
STEPS_ON_BERT = 25
STEPS_ON_DRAWN = 8


def add(nodes: list[Node], op: str, *operands: Ref, **attributes: object) -> Ref:
    kinds = [(r, nodes[r.node].types[r.index], nodes[r.node].constant) for r in operands]
    nodes.append(registry.apply(op, attributes, kinds))  # type: ignore[arg-type]
    return Ref(len(nodes) - 1)


def leaf(nodes: list[Node], node: Node) -> Ref:
    nodes.append(node)
    return Ref(len(nodes) - 1)


def random_weight(nodes: list[Node], *shape: int) -> Ref:
    rng = np.random.default_rng(len(nodes))
    return leaf(nodes, weight(rng.standard_normal(shape).astype(np.float32), f"w{len(nodes)}"))


def identity(match: Match) -> tuple[object, ...]:
    return (match.rule.id, match.roots, tuple(sorted(match.bindings.items())), match.nodes)


def by_position(graph: Graph, rewriter: Rewriter) -> list[list[tuple[int, ...]]]:
    """The matches as places in the topological order: what an agent's location means. Roots come in the rule's order;
    the nodes inside have none."""

    def places(match: Match) -> tuple[int, ...]:
        roots = len({ref.node for ref in match.roots})
        place = [graph.positions()[node] for node in match.nodes]
        return (*place[:roots], *sorted(place[roots:]))

    return [[places(match) for match in found] for found in rewriter.matches(graph)]


def walk(graph: Graph, rewriter: Rewriter, rng: np.random.Generator, steps: int) -> Graph:
    """A random trajectory; after each step the matches must be those of a rewriter that has seen nothing else."""
    for _ in range(steps):
        found = [m for group in rewriter.matches(graph) for m in group]
        if not found:
            break
        graph = rewriter.apply(graph, found[int(rng.integers(len(found)))])
        validate(graph)
        anew = replace(graph, edit=None)
        assert (graph.order, structural_hash(graph)) == (anew.order, structural_hash(anew))
        fresh = Rewriter(rewriter.rules)
        matches = rewriter.matches(graph)
        assert matches.counts == tuple(map(len, matches))
        incremental = [[identity(m) for m in group] for group in matches]
        assert incremental == [[identity(m) for m in group] for group in fresh.matches(graph)]
    return graph


@pytest.mark.parametrize("seed", range(3))
def test_incremental_matching_is_matching_on_bert(bert: Graph, library: Library, seed: int) -> None:
    rng = np.random.default_rng(seed)
    end = walk(bert, Rewriter(library.rules), rng, STEPS_ON_BERT)
    assert structural_hash(end) != structural_hash(bert)
    assert_same_outputs(bert, end, rng)


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(graph=graphs(), seed=st.integers(0, 2**32 - 1))
def test_incremental_matching_is_matching_on_drawn_graphs(graph: Graph, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rewriter = Rewriter(LIBRARY.rules)
    assume(any(rewriter.matches(graph)))
    with np.errstate(all="ignore"):
        assert_same_outputs(graph, walk(graph, rewriter, rng, STEPS_ON_DRAWN), rng)


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(graph=graphs(), seed=st.integers(0, 2**32 - 1))
def test_order_of_matches_depends_on_neither_names_nor_history(graph: Graph, seed: int) -> None:
    """Nor does what they lead to: an action means the same wherever the graph comes from."""
    rng = np.random.default_rng(seed)
    rewriter, other = Rewriter(LIBRARY.rules), Rewriter(LIBRARY.rules)
    end = walk(graph, rewriter, rng, 4)
    same = rebuilt(end, rng)
    assert by_position(end, rewriter) == by_position(same, other)
    for ours, theirs in zip(chain(*rewriter.matches(end)), chain(*other.matches(same)), strict=True):
        assert structural_hash(rewriter.apply(end, ours)) == structural_hash(other.apply(same, theirs))


def test_which_of_two_nodes_alike_is_read_depends_on_neither_names_nor_history(library: Library) -> None:
    """Relu(Transpose(x)) as Transpose(Relu(x)) reads one of two Relus of x, each of which something else reads."""

    def build(nodes: list[Node]) -> list[Ref]:
        x = leaf(nodes, source((3, 4), "x"))
        relus = [add(nodes, "Relu", x) for _ in range(2)]
        told_apart = [add(nodes, op, relu) for op, relu in zip(("Sigmoid", "Tanh"), relus, strict=True)]
        return [*told_apart, add(nodes, "Relu", add(nodes, "Transpose", x, perm=(1, 0)))]

    graph = graph_of(build)
    rewriter = Rewriter([library.get("relu-before-transpose")])
    hashes = set()
    for seed in range(8):
        same = rebuilt(graph, np.random.default_rng(seed))
        assert structural_hash(same) == structural_hash(graph)
        (match,) = rewriter.matches(same)[0]
        rewritten = rewriter.apply(same, match)
        assert len(rewritten.order) == len(graph.order) - 1, "a Relu that was there is read"
        hashes.add(structural_hash(rewritten))
    assert len(hashes) == 1


def rebuilt(graph: Graph, rng: np.random.Generator) -> Graph:
    """The same graph with other node numbers and other names."""
    old = list(graph.nodes)
    numbers = dict(zip(old, (int(i) for i in rng.permutation(3 * len(old))[: len(old)]), strict=True))

    def moved(ref: Ref | None) -> Ref | None:
        return None if ref is None else Ref(numbers[ref.node], ref.index)

    nodes = {}
    for identifier in rng.permutation(old):
        node = graph.nodes[int(identifier)]
        named = tuple(f"renamed_{numbers[int(identifier)]}_{i}" for i in range(len(node.names)))
        nodes[numbers[int(identifier)]] = node.with_inputs(tuple(map(moved, node.inputs))).with_names(named)
    return Graph(
        nodes=Map(nodes),
        inputs=tuple(numbers[i] for i in graph.inputs),
        outputs=tuple(Ref(numbers[r.node], r.index) for r in graph.outputs),
        output_names=graph.output_names,
        consumers=Map(
            {
                numbers[i]: tuple(numbers[int(c)] for c in rng.permutation(readers)) if readers else ()
                for i, readers in graph.consumers.items()
            }
        ),
        header=graph.header,
        next_id=3 * len(old),
    )


def test_two_orders_of_independent_rewrites_give_one_graph_and_one_order(bert: Graph, library: Library) -> None:
    rewriter = Rewriter([library.get("bias-add-to-sum")])
    first, *_, last = rewriter.matches(bert)[0]
    ends = []
    for one, other in ((first, last), (last, first)):
        child = rewriter.apply(bert, one)
        then = next(m for m in rewriter.matches(child)[0] if m.roots == other.roots)
        ends.append(rewriter.apply(child, then))
    assert structural_hash(ends[0]) == structural_hash(ends[1])
    assert by_position(ends[0], rewriter) == by_position(ends[1], rewriter)


def test_more_matches_than_any_limit_are_all_listed(library: Library) -> None:
    """An action space may cap the locations of a rule at 200: the rewriter itself must not."""
    count = 250

    def build(nodes: list[Node]) -> list[Ref]:
        x, s = leaf(nodes, source((2, 3), "x")), random_weight(nodes)
        return [add(nodes, "Div", add(nodes, "Relu", x), s) for _ in range(count)]

    graph = graph_of(build)
    (found,) = Rewriter([library.get("divide-to-multiply")]).matches(graph)
    assert len(found) == count
    positions = [graph.positions()[m.roots[0].node] for m in found]
    assert positions == sorted(positions)
    assert len(set(positions)) == count


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


@pytest.mark.parametrize(
    ("dtype", "found"),
    [("float32", True), ("float64", True), ("float16", False), ("bfloat16", False), ("int64", False)],
)
def test_rules_fire_on_what_they_are_certified_for(dtype: str, found: bool, library: Library) -> None:
    """In float16 a product overflows where its quotient did not: a b / c for a (b / c) with 300, 300 and 300."""

    def build(nodes: list[Node]) -> list[Ref]:
        a, b, c = (leaf(nodes, Node(INPUT, (), {}, (TensorType(dtype, (2,)),), (n,))) for n in "abc")
        return [add(nodes, "Mul", a, add(nodes, "Mul", b, c))]

    rule = next(r for r in library.rules if r.equation().startswith("Mul(a, Mul(b, c)) =>"))
    assert bool(Rewriter([rule]).matches(graph_of(build))[0]) == found


def test_constant_variables_bind_constants_only(library: Library) -> None:
    def build(nodes: list[Node]) -> list[Ref]:
        x, w, y = leaf(nodes, source((2, 3), "x")), random_weight(nodes, 3, 4), leaf(nodes, source((4, 4), "y"))
        return [add(nodes, "MatMul", add(nodes, "MatMul", x, w), y)]

    graph = graph_of(build)
    assert [*Rewriter([library.get("associate-weights")]).matches(graph)] == [()]
    associate = next(r for r in library.rules if r.equation() == "MatMul(MatMul(a, b), c) => MatMul(a, MatMul(b, c))")
    assert len(Rewriter([associate]).matches(graph)[0]) == 1


@settings(max_examples=20, deadline=None)
@given(order=st.permutations(range(4)), biased=st.booleans())
def test_merging_products_never_closes_a_cycle(order: list[int], biased: bool) -> None:
    """Products of one input, two of which feed further products of the same sizes, merged in any order."""
    merges = Rewriter([LIBRARY.get(name) for name in ("merge-2-matmuls", "merge-3-matmuls", "merge-2-linears")])

    def build(nodes: list[Node]) -> list[Ref]:
        x = leaf(nodes, source((2, 3), "x"))
        outputs = []
        for _ in range(2):
            y = add(nodes, "MatMul", x, random_weight(nodes, 3, 3))
            y = add(nodes, "Add", y, random_weight(nodes, 3)) if biased else y
            z = add(nodes, "MatMul", y, random_weight(nodes, 3, 3))
            again = add(nodes, "MatMul", y, random_weight(nodes, 3, 3))
            outputs += [z, again]
        return outputs

    graph = start = graph_of(build)
    for choice in order:
        found = [m for group in merges.matches(graph) for m in group]
        if found:
            graph = merges.apply(graph, found[choice % len(found)])
            validate(graph)
    assert structural_hash(graph) != structural_hash(start)
    assert_same_outputs(start, graph, np.random.default_rng(0))


def test_rules_whose_outputs_could_feed_each_other_are_refused() -> None:
    rule = rule_from_json(
        "merge-anything",
        "test",
        [["MatMul", "x", "v"], ["MatMul", "x", "w"]],
        [["MatMul", "x", "v"], ["MatMul", "x", "w"]],
    )
    with pytest.raises(RuleError, match=r"merge-anything.*must be constant"):
        Rewriter([rule])


def test_unrelated_outputs_are_refused() -> None:
    variables = {"x": {"constant": True}, "y": {"constant": True}}
    rule = rule_from_json(
        "two-rules", "test", [["Relu", "x"], ["Relu", "y"]], [["Relu", "y"], ["Relu", "x"]], variables
    )
    with pytest.raises(RuleError, match="two-rules"):
        Rewriter([rule]).matches(graph_of(lambda nodes: [add(nodes, "Relu", leaf(nodes, source((2,), "x")))]))


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
