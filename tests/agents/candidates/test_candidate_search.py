"""The policy over candidates as a method: it counts what it looks at, and acts on graphs that it was not trained on."""

from support.formulations import STEPS, candidate_search
from support.token_worlds import small_graph

from rlflow import zoo
from rlflow.method import Budget
from rlflow.onnx_io import from_onnx


def test_every_candidate_that_is_looked_at_is_counted_and_the_best_is_kept() -> None:
    """At each state on the way there are 20. The episode goes on after the best graph."""
    search = candidate_search(sampled_episodes=0)
    assert search.name == "candidates"
    result = search.optimise(small_graph(), Budget())
    assert result.effort.rewrites >= 20 * len(result.trajectory.steps)
    assert 0 < len(result.trajectory.steps) < STEPS
    assert result.improvement_percent > 5.0


def test_it_acts_on_other_graphs_and_shapes() -> None:
    """A controller that has only ever seen one memory of BERT, then a longer sentence and another network."""
    method = candidate_search(sampled_episodes=0)
    longer = from_onnx(zoo.build("bert", **dict(zoo.describe("bert").small) | {"sequence": 12}))
    for graph in (small_graph(), longer, small_graph("squeezenet1_1")):
        assert method.optimise(graph, Budget()).improvement_percent > 0.0
