"""Where a choice led is remembered by the graph's hash: equal graphs must show their classes in the same order."""

from itertools import permutations

import pytest
from support.walks import REWRITER

from rlflow.cost.analytic import AnalyticCost
from rlflow.environments.match_class_process import MatchClassConfig, MatchClassProcess
from rlflow.processes.token_process import MatchLevelState
from rlflow.zoo.named import graph_of


def keys(state: MatchLevelState) -> list[bytes]:
    return [token.key for token in state.classes.tokens]


@pytest.mark.parametrize("model", ["tiny_transpose", "bert_tiny"])
def test_equal_graphs_show_their_classes_in_the_same_order(model: str) -> None:
    """After every two choices in either order. Not vacuous: some graphs are met by two ways."""
    process = MatchClassProcess(graph_of(model), REWRITER, AnalyticCost(), MatchClassConfig())
    start = process.start()
    seen: dict[str, list[bytes]] = {}
    met = 0
    for first, second in permutations(keys(start)[:6], 2):
        between = process.process.step(start, keys(start).index(first)).state
        if second in keys(between):
            after = process.process.step(between, keys(between).index(second)).state
            met += after.hash in seen
            assert seen.setdefault(after.hash, keys(after)) == keys(after)
    assert met > 0
