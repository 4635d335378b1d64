"""Fewer products for more sums: the same outputs, and only where it is worth trying."""

from pathlib import Path

import numpy as np
import pytest
from rules.support import applied, assert_fires_on_a_model, graph_of, read
from strategies import weight

from rlflow.ir import Graph, Node, Ref
from rlflow.rules.curated_winograd import winograd_rules
from rlflow.rules.library import Library, load
from rlflow.rules.rewriter import Rewriter
from rlflow.rules.rule import Rule
from rlflow.rules.verify import VerificationConfig, certified

RULES = {rule.name: rule for rule in winograd_rules()}


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda r: r.name)
def test_the_rule_holds_and_fires_on_a_model(rule: Rule) -> None:
    assert_fires_on_a_model(rule)


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


def test_what_it_is_worth_is_kept_with_the_rule_and_told(tmp_path: Path) -> None:
    rule = certified(RULES["product-by-seven-products"], VerificationConfig(shapes=4))
    path = tmp_path / "library.jsonl"
    Library((rule,)).save(path)
    (again,) = load(path).rules
    assert again == rule
    assert again.worth
    assert "tried if 1024 <= dim(a, 0)" in again.equation()
