"""Fewer products for more sums: the same outputs, and only where it is worth trying."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from support.rewrites import applied, graph_of, operators, read
from support.strategies import weight

from rlflow.equivalence.compare import compare
from rlflow.ir import Graph, Node, Ref
from rlflow.onnx_io.standalone import standalone_model
from rlflow.rules.declared import winograd
from rlflow.rules.declared.catalogue import rules_of
from rlflow.rules.library import Library, load
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.rules.verification.verify import VerificationConfig, certified

RULES = {rule.name: rule for rule in rules_of(winograd)}


def product(rows: int, columns: int) -> Graph:
    def build(nodes: list[Node]) -> list[Ref]:
        x = read(nodes, "x", rows, 1024)
        nodes.append(weight(np.zeros((1024, columns), np.float32), "w"))
        return [applied(nodes, "MatMul", x, Ref(len(nodes) - 1))]

    return graph_of(build)


@pytest.mark.parametrize(("rows", "columns", "found"), [(1024, 1026, 1), (1022, 1026, 0), (1024, 1027, 0)])
def test_large_even_products_alone_are_taken_apart(rows: int, columns: int, found: int) -> None:
    """One too small and one odd: only a side differs."""
    (matches,) = Rewriter([RULES["product-by-seven-products"]]).matches(product(rows, columns))
    assert len(matches) == found


def convolution(size: int, kernel: int = 3, channels: int = 256, **attributes: object) -> Graph:
    def build(nodes: list[Node]) -> list[Ref]:
        x = read(nodes, "x", 1, channels, size, size)
        group = int(attributes.get("group", 1))  # type: ignore[call-overload]
        filters = np.random.default_rng(0).standard_normal((256, channels // group, kernel, kernel))
        nodes.append(weight(filters.astype(np.float32), "f"))
        window = {"strides": (1, 1), "dilations": (1, 1), "pads": (1, 1, 1, 1), **attributes}
        return [applied(nodes, "Conv", x, Ref(len(nodes) - 1), **window)]

    return graph_of(build)


SIXTEEN = RULES["convolution-by-sixteen-products"]


def test_many_channels_are_convolved_by_sixteen_products() -> None:
    """The filters are transformed at export: what runs is two transforms and one product for each point of a tile."""
    before = convolution(8)
    rewriter = Rewriter([SIXTEEN])
    (match,) = rewriter.matches(before)[0]
    after = rewriter.apply(before, match)
    assert operators(after)["MatMul"] == 3
    assert operators(after)["Conv"] == 0
    model, exported = (standalone_model(graph) for graph in (before, after))
    onnx.checker.check_model(exported)
    assert {node.op_type for node in exported.graph.node}.isdisjoint({"Conv", "Constant"})
    assert compare(model, exported, draws=1).equivalent


@pytest.mark.parametrize(
    "graph",
    [
        convolution(8, strides=(2, 2)),
        convolution(7),
        convolution(8, dilations=(2, 2), pads=(2, 2, 2, 2)),
        convolution(8, group=2),
        convolution(8, kernel=5),
        convolution(8, channels=128),
    ],
    ids=["strides", "odd size", "dilations", "groups", "5 x 5", "few channels"],
)
def test_other_convolutions_stay(graph: Graph) -> None:
    assert [*Rewriter([SIXTEEN]).matches(graph)] == [()]


def test_what_it_is_worth_is_kept_with_the_rule_and_told(tmp_path: Path) -> None:
    rule = certified(RULES["product-by-seven-products"], VerificationConfig(shapes=4))
    path = tmp_path / "library.jsonl"
    Library((rule,)).save(path)
    (again,) = load(path).rules
    assert again == rule
    assert again.profitable_if
    assert "tried if 1024 <= dim(a, 0)" in again.equation()
