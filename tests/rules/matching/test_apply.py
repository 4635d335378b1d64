"""A rewrite adds what the target plans, under the names of what it replaces, and never adds what is there already."""

from support.strategies import source
from support.walks import add, leaf

from rlflow.ir import Graph, Header, Node, Ref, make_graph, validate
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.rules.rule import rule_from_json

NEGATE_AFTER = rule_from_json("negate-after", "f", [["Neg", ["Transpose", {"perm": "?p"}, "x"]]],
                       [["Transpose", {"perm": "?p"}, ["Neg", "x"]]], {})  # fmt: skip


def _graph(negated: bool) -> Graph:
    """Neg(Transpose(x)), and Neg(x) beside it if asked for."""
    nodes: list[Node] = []
    x = leaf(nodes, source((2, 3), "x"))
    outputs: list[Ref] = [add(nodes, "Neg", add(nodes, "Transpose", x, perm=(1, 0)))]
    if negated:
        outputs.append(add(nodes, "Neg", x))
    named = [node.with_names((f"{node.op}_{i}",)) for i, node in enumerate(nodes)]
    return make_graph(dict(enumerate(named)), [0], outputs, [f"y{i}" for i in range(len(outputs))], Header(17))


def _rewritten(graph: Graph) -> Graph:
    rewriter = Rewriter([NEGATE_AFTER])
    ((match,),) = rewriter.matches(graph)
    after = rewriter.apply(graph, match)
    validate(after)
    return after


def test_what_replaces_an_output_takes_its_name() -> None:
    graph = _graph(negated=False)
    after = _rewritten(graph)
    names = {after.nodes[i].op: after.nodes[i].names for i in after.order}
    assert names == {"Neg": ("",), "Transpose": graph.nodes[graph.outputs[0].node].names}


def test_what_the_graph_computes_already_is_not_computed_again() -> None:
    before = _graph(negated=True)
    after = _rewritten(before)
    assert [after.nodes[i].op for i in after.order] == ["Neg", "Transpose"]
    assert after.nodes[after.outputs[0].node].inputs == (after.outputs[1],)


def test_untouched_nodes_are_shared() -> None:
    before = _graph(negated=True)
    after = _rewritten(before)
    assert after.nodes[before.inputs[0]] is before.nodes[before.inputs[0]]
    assert after.nodes[before.outputs[1].node] is before.nodes[before.outputs[1].node]
