"""The last change of a graph, and matches that have the same around them."""

from collections import Counter

from support.searches import make

from rlflow import zoo
from rlflow.method import Budget
from rlflow.onnx_io import from_onnx
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.search.locality import surroundings_in, touches_last_change


def test_before_the_first_rewrite_nothing_is_near(shipped, bert):
    work = make("greedy", shipped).begin(bert, Budget())
    assert list(work.options(work.start))
    assert not list(work.options(work.start, touches_last_change(work.start)))


def test_a_match_is_near_if_it_takes_or_binds_what_was_made(shipped, bert):
    """Counted anew: nodes that the graph before does not have, or has with other operands."""
    work = make("greedy", shipped).begin(bert, Budget())
    seen = Counter()
    for option in list(work.options(work.start))[::7]:
        state = work.take(work.start, option)
        before, after = bert.nodes, state.graph.nodes
        made = {i for i in after if i not in before or before[i].inputs != after[i].inputs}
        near = {o.match for o in work.options(state, touches_last_change(state))}
        for other in work.options(state):
            reached = {*other.match.nodes, *(ref.node for ref in other.match.bindings.values())}
            assert (other.match in near) == bool(reached & made)
            seen[other.match in near] += 1
    assert min(seen[True], seen[False]) > 20


def test_layers_in_the_middle_are_alike(shipped):
    """Of four layers the two in the middle see the same within two steps, and the rule's other matches do not."""
    settings = {"hidden": 32, "heads": 2, "intermediate": 64, "sequence": 8, "vocabulary": 50, "positions": 16}
    graph = from_onnx(zoo.build("bert", layers=4, **settings))
    matches = max(Rewriter(shipped.rules).matches(graph), key=len)
    near, far = (Counter(map(surroundings_in(graph, distance), matches)) for distance in (1, 12))
    assert max(near.values()) >= 4
    assert len(near) < len(far) <= len(matches)


def test_surroundings_are_those_of_the_rule_too(shipped, bert):
    """Two rules at one place have different keys, and one match has the same key each time."""
    found = [match for matches in Rewriter(shipped.rules).matches(bert) for match in matches]
    key, again = surroundings_in(bert, 2), surroundings_in(bert, 2)
    assert [key(match) for match in found] == [again(match) for match in found]
    by_key = {key(match): match.rule.id for match in found}
    assert all(by_key[key(match)] == match.rule.id for match in found)
