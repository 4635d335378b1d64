"""Steps that were found on a small graph are taken wherever a larger one looks the same, and nowhere else."""

from pathlib import Path

import pytest
from onnx import save
from studies.learned.replayed import Replayed, replayed
from support.detours import COST, INTO, OUT, detours, rules_astray, walked
from support.walks import LIBRARY

from rlflow import zoo
from rlflow.errors import ReplayError
from rlflow.ir.graph import Graph
from rlflow.method import Budget, Ledger, OptimisationResult, Workspace
from rlflow.onnx_io import from_onnx
from rlflow.rules.library import Library
from rlflow.rules.matching.rewriter import Location, Rewriter
from rlflow.rules.matching.sharing import SharingRewriter
from rlflow.search.greedy import Greedy
from rlflow.trajectory import record
from rlflow.trajectory.record import Trajectory
from rlflow.trajectory.replay import replay

PLACES = 3
SWAP = "Mul(a, b) => Mul(b, a)"


def searched(graph: Graph, trajectory: Trajectory, library: Library | None = None) -> OptimisationResult:
    library = library or rules_astray()
    rewriter = SharingRewriter(library.rules)
    return Replayed(library, rewriter, COST, detours(1), trajectory).optimise(graph, Budget())


def test_what_helps_one_place_helps_all():
    """Greedy search, which ends it, finds nothing on either graph."""
    steps = walked(detours(1), (OUT, INTO), rules_astray())
    found = searched(detours(PLACES), steps)
    best = walked(detours(PLACES), (OUT, INTO) * PLACES, rules_astray()).steps[-1].runtime_ms
    assert found.best_ms == best < found.start_ms
    assert [step.rule for step in found.trajectory.steps] == [step.rule for step in steps.steps] * PLACES
    assert found.effort.rewrites <= 2 * (PLACES + 1) + 5, "once more in vain, and those that greedy search looks at"
    *_, last = replay(detours(PLACES), found.trajectory, SharingRewriter(rules_astray().rules))
    assert COST.runtime_ms(last) == found.best_ms


def test_on_the_same_model_the_same_is_done_again():
    """In places that all look alike, of which the way begins with the last."""
    rules = rules_astray()
    work = Workspace.begin(detours(PLACES), SharingRewriter(rules.rules), COST, rules.hash, Ledger(Budget()))
    out, into = (next(n for n, rule in enumerate(rules.rules) if rule.name == name) for name in (OUT, INTO))
    steps = work.trajectory(work.start, work.step(work.step(work.start, Location(out, PLACES - 1)), Location(into, 0)))
    search = Replayed(rules, SharingRewriter(rules.rules), COST, detours(PLACES), steps)
    found = search.optimise(detours(PLACES), Budget())
    assert found.trajectory.steps[:2] == steps.steps
    assert found.trajectory.steps[2].location == PLACES - 2, "then the last of those that are left"


def test_steps_that_undo_each_other_end():
    """A swap makes a place that the same rule would swap back."""
    found = searched(detours(PLACES), walked(detours(1), (SWAP, SWAP, SWAP), rules_astray()))
    assert found.best_ms == found.start_ms
    assert found.effort.rewrites <= 3 + 5


def test_a_place_that_looks_different_is_left_alone():
    """Of a model without such a product; what is left is greedy search."""
    graph = from_onnx(zoo.build("tiny_merge"))
    found = searched(graph, walked(detours(1), (OUT, INTO), rules_astray()), LIBRARY)
    greedy = Greedy(LIBRARY, Rewriter(LIBRARY.rules), COST).optimise(graph, Budget())
    assert found.best_ms == greedy.best_ms < greedy.start_ms


def test_it_is_never_worse_than_the_start():
    """Where the way only leads up."""
    rules = rules_astray().select([rules_astray().get(OUT).id])
    found = searched(detours(PLACES), walked(detours(1), (OUT,), rules), rules)
    assert found.best_ms == found.start_ms
    assert found.effort.rewrites >= 1


def test_a_rule_that_is_missing_is_named():
    rules = rules_astray().select([rules_astray().get(OUT).id])
    with pytest.raises(ReplayError, match="which is not in the library"):
        searched(detours(1), walked(detours(1), (OUT, INTO), rules_astray()), rules)


@pytest.mark.slow
def test_it_is_made_from_files(tmp_path: Path):
    """With a rewriter that matches as that of the steps does, whatever is given."""
    model = zoo.build("tiny_merge")
    save(model, tmp_path / "small.onnx")
    greedy = Greedy(LIBRARY, SharingRewriter(LIBRARY.rules), COST).optimise(from_onnx(model), Budget())
    record.save([greedy.trajectory], tmp_path / "steps.jsonl")
    search = replayed(
        LIBRARY, Rewriter(LIBRARY.rules), COST, model=tmp_path / "small.onnx", trajectory=tmp_path / "steps.jsonl"
    )
    found = search.optimise(from_onnx(model), Budget())
    assert found.best_ms == greedy.best_ms < found.start_ms
    assert found.trajectory.matching == "sharing"
