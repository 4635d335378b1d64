"""What another search finds is where a search in a workspace of sharing matching begins."""

import pytest

from rlflow.cost.analytic import AnalyticCost
from rlflow.ir.structural_hash import structural_hash
from rlflow.method import Budget, Ledger, Workspace
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.rules.matching.sharing import SharingRewriter
from rlflow.search.greedy import Greedy
from rlflow.search.seeding import seeded
from rlflow.trajectory.replay import replay


@pytest.mark.parametrize("name", ["tiny_chain", "tiny_merge"])
def test_the_steps_of_another_search_are_taken_again(shipped, tiny, name):
    """They cost nothing twice, and the trajectory replays by the rewriter that shares."""
    graph, sharing, cost_model = tiny(name), SharingRewriter(shipped.rules), AnalyticCost()
    greedy = Greedy(shipped, Rewriter(shipped.rules), cost_model)
    alone = greedy.optimise(graph, Budget())
    assert alone.trajectory.steps, "no step would be taken again"

    work = Workspace.begin(graph, sharing, cost_model, shipped.hash, Ledger(Budget()))
    result = work.result(seeded(work, greedy, work.ledger))
    assert result.best_ms <= alone.best_ms
    assert result.effort.rewrites == alone.effort.rewrites
    *_, last = replay(graph, result.trajectory, sharing)
    assert structural_hash(last) == structural_hash(result.best)
    assert result.trajectory.matching == "sharing"
