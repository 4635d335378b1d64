"""The nodes on which a rewrite depends: those that its edit reads, and the whole graph where it had a choice."""

import pytest
from support.prices import drawn_prices
from support.rewrites import applied, graph_of, read
from support.walks import REWRITER

from rlflow import zoo
from rlflow.cost.analytic import AnalyticCost
from rlflow.cost.dependence import EVERYWHERE, disturbed, last_known, read_by
from rlflow.ir.graph import Graph
from rlflow.ir.node import Node, Ref
from rlflow.ir.preview import preview
from rlflow.onnx_io import from_onnx


def graph(twins: int) -> Graph:
    """(x y) z beside so many nodes y z, of which x (y z) needs one."""

    def nodes(made: list[Node]) -> list[Ref]:
        x, y, z = (read(made, name, 3, 3) for name in "xyz")
        product = applied(made, "MatMul", applied(made, "MatMul", x, y), z)
        return [product, *(applied(made, "Relu", applied(made, "MatMul", y, z)) for _ in range(twins))]

    return graph_of(nodes)


@pytest.mark.parametrize("twins", [0, 1, 2])
def test_a_rewrite_depends_on_what_it_reads_and_on_everything_if_it_had_a_choice(twins):
    before = graph(twins)
    (match,) = (m for found in REWRITER.matches(before) for m in found if m.rule.name.startswith("MatMul(MatMul("))
    edit = preview(before, *REWRITER.edit(before, match))
    depends = read_by(before, edit, match)
    found = {s for node in edit.added.values() for s in node.sources if s in before.nodes and before.order.count(s)}
    assert len(found) == min(twins, 1), "it takes a node that is there"
    assert {*match.nodes, *edit.removed, *edit.touched, *found, *before.inputs} <= depends
    assert (EVERYWHERE in depends) == (twins > 1)


def test_an_edit_disturbs_what_it_touched_and_all_that_depends_on_everything():
    before = graph(1)
    after = rewritten(before)
    model = AnalyticCost()
    assert disturbed(before, model) == {EVERYWHERE}
    assert disturbed(after, model) == {EVERYWHERE, *after.edit.change.removed, *after.edit.change.touched}
    assert len(disturbed(after, model)) > 1


def test_what_is_known_of_an_earlier_graph_comes_with_all_that_was_disturbed_since():
    """But for a cost model that measures, which is not asked about graphs on the way."""
    first = from_onnx(zoo.build("tiny_transpose"))
    second = rewritten(first)
    third = rewritten(second)
    model, known = AnalyticCost(), {first: "known"}
    found, nodes = last_known(third, known.get, model)
    assert found == "known"
    assert nodes == disturbed(second, model) | disturbed(third, model)
    assert last_known(second, known.get, model) == ("known", disturbed(second, model))
    assert last_known(first, known.get, model) == (None, frozenset())
    assert last_known(third, known.get, drawn_prices()) == (None, frozenset())
    assert last_known(second, known.get, drawn_prices())[0] == "known"


def rewritten(before: Graph) -> Graph:
    return REWRITER.apply(before, next(match for matches in REWRITER.matches(before) for match in matches))
