"""The leaderboard: what an entry is worth is found by replaying it, and nothing else is believed."""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from rlflow.cost.base import CostContext
from rlflow.cost.models import COST_MODELS
from rlflow.errors import InputError, ReplayError
from rlflow.leaderboard import Entry, Point, disagreement, standings, submit, verify
from rlflow.method import Budget, OptimisationResult
from rlflow.rules import library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.search.greedy import Greedy
from rlflow.zoo.named import graph_of

BOARD = Path(__file__).parents[1] / "data/leaderboard"


@cache
def found(cost: str = "gpu") -> OptimisationResult:
    """What greedy search saves of a model with a name, by more than one step."""
    rules = library.load()
    method = Greedy(rules, Rewriter(rules.rules), COST_MODELS.get(cost)(CostContext()))
    return method.optimise(graph_of("bert_tiny"), Budget())


def entry(**changes: object) -> Entry:
    return replace(Entry("bert_tiny", "gpu", "greedy", found().trajectory, rewrites=30), **changes)


def test_an_entry_saves_what_its_steps_save(tmp_path: Path) -> None:
    """Whatever its record or whoever submits it says of that."""
    assert len(found().trajectory.steps) > 1
    boasting = replace(found().trajectory, steps=tuple(replace(s, runtime_ms=0.0) for s in found().trajectory.steps))
    for told in (entry(), entry(saved_percent=99.0), entry(trajectory=boasting)):
        assert verify(told).saved_percent == pytest.approx(found().improvement_percent, rel=1e-9)
    verified = submit(entry(saved_percent=99.0), tmp_path)
    (written,) = standings(tmp_path)["bert_tiny", "gpu"]
    assert written.saved_percent == verified.saved_percent == pytest.approx(found().improvement_percent, rel=1e-9)
    assert disagreement(written) is None


def test_a_part_of_the_steps_is_worth_less_and_ranks_below(tmp_path: Path) -> None:
    """So does nothing at all, and of two that save the same the one of more rewrites; unknown efforts come last."""
    start = replace(found().trajectory, steps=())
    part = replace(found().trajectory, steps=found().trajectory.steps[:1])
    for one in (
        entry(method="nothing", trajectory=start),
        entry(method="unknown", rewrites=None),
        entry(method="part", trajectory=part),
        entry(method="longer", rewrites=31),
        entry(),
    ):
        submit(one, tmp_path)
    ranked = standings(tmp_path)["bert_tiny", "gpu"]
    assert [one.method for one in ranked] == ["greedy", "longer", "unknown", "part", "nothing"]
    assert ranked[-1].saved_percent == 0.0
    submit(entry(rewrites=40), tmp_path)
    assert len(standings(tmp_path)["bert_tiny", "gpu"]) == 5, "of a method and a seed, the last entry counts"


def test_what_does_not_replay_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    steps = found().trajectory.steps
    forged = replace(found().trajectory, steps=(replace(steps[0], hash="0" * 16), *steps[1:]))
    with pytest.raises(ReplayError, match="step 1 "):
        submit(entry(trajectory=forged), tmp_path)
    with pytest.raises(ReplayError, match="starts from graph"):
        submit(entry(model="bert_small"), tmp_path)
    with pytest.raises(InputError, match="no model 'bert_tin': did you mean bert_tiny"):
        submit(entry(model="bert_tin"), tmp_path)
    with pytest.raises(InputError, match="no cost model 'gpus'"):
        submit(entry(cost="gpus"), tmp_path)
    with pytest.raises(InputError, match="measured prices are those of this machine alone"):
        submit(entry(cost="measured"), tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_file_of_a_models_name_is_not_that_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bert_tiny").write_bytes(b"no model")
    assert verify(entry()).saved_percent == pytest.approx(found().improvement_percent, rel=1e-9)


@pytest.mark.parametrize("method", ["", "../greedy", "a b", ".hidden"])
def test_a_method_has_a_name_that_a_file_may_have(method: str) -> None:
    with pytest.raises(InputError, match="is no name of a method"):
        entry(method=method)


def test_an_entry_is_the_same_after_it_was_written(tmp_path: Path) -> None:
    whole = entry(seconds=1.5, processor="a", seed=3, course=(Point(1, 0.1, 2.0), Point(5, 0.3, 4.0)))
    assert Entry.from_json(whole.to_json()) == whole
    for text in ("{", "{}", json.dumps({"trajectory": {}}), whole.to_json().replace('"cost"', '"price"')):
        with pytest.raises(InputError, match=r"not an entry of the leaderboard|not a trajectory"):
            Entry.from_json(text)


def test_a_file_that_was_not_verified_or_was_moved_is_named(tmp_path: Path) -> None:
    submit(entry(), tmp_path)
    (file,) = tmp_path.rglob("*.json")
    moved = file.with_name("other-0.json")
    moved.write_bytes(file.read_bytes())
    with pytest.raises(InputError, match=r"other-0\.json was not written by"):
        standings(tmp_path)
    moved.unlink()
    file.write_text(entry().to_json())
    with pytest.raises(InputError, match=r"greedy-0\.json was not written by"):
        standings(tmp_path)


def test_an_entry_that_holds_no_more_says_why() -> None:
    saved = f"it saves {found().improvement_percent:.4f} %"
    assert disagreement(entry(saved_percent=50.0)) == f"{saved}, and 50.0000 % were written"
    assert "starts from graph" in str(disagreement(entry(model="bert_small", saved_percent=1.0)))


def test_the_committed_entries_are_read_and_each_row_has_several() -> None:
    rows = standings(BOARD)
    assert rows
    assert all(len(entries) > 1 for entries in rows.values())


@pytest.mark.slow  # minutes
def test_the_committed_entries_hold() -> None:
    problems = {entry.place(BOARD): disagreement(entry) for row in standings(BOARD).values() for entry in row}
    assert {place: problem for place, problem in problems.items() if problem} == {}
