"""`rlflow leaderboard` as a person meets it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from rlflow import schemas
from rlflow.cost.analytic import gpu
from rlflow.cost.base import CostContext
from rlflow.method import Budget
from rlflow.rules import library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.schemas.leaderboard import LeaderboardShow
from rlflow.search.greedy import Greedy
from rlflow.trajectory import record
from rlflow.zoo.named import graph_of


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What greedy search finds, and on the second line nothing."""
    rules = library.load()
    result = Greedy(rules, Rewriter(rules.rules), gpu(CostContext())).optimise(graph_of("bert_tiny"), Budget())
    path = tmp_path_factory.mktemp("recorded") / "trajectories.jsonl"
    record.save([result.trajectory, replace(result.trajectory, steps=())], path)
    return path


def test_methods_are_entered_ranked_and_checked(rlflow, recorded: Path, tmp_path: Path) -> None:
    board = ("--board", tmp_path / "board")
    row = ("--model", "bert_tiny", "--cost-model", "gpu")
    code, out, err = rlflow("leaderboard", "submit", recorded, *row, "--method", "idle", "--number", 2, *board)
    assert (code, err) == (0, "")
    assert "idle saves 0.000 % of bert_tiny at gpu prices in 0 steps, which is number 1." in out
    code, out, err = rlflow("leaderboard", "submit", recorded, *row, "--method", "mine", "--rewrites", 30, *board)
    assert (code, err) == (0, "")
    assert "which is number 1." in out

    code, out, _ = rlflow("leaderboard", "show", *board, "--json")
    document = json.loads(out)
    schemas.validate(LeaderboardShow, document)
    assert [(one["rank"], one["method"]) for one in document] == [(1, "mine"), (2, "idle")]
    code, out, _ = rlflow("leaderboard", "show", *board)
    assert out.splitlines()[0] == "bert_tiny at gpu prices"
    assert "mine" in out.splitlines()[2]
    assert rlflow("leaderboard", "check", *board)[:2] == (0, "2 entries hold.\n")


def test_what_does_not_hold_is_named(rlflow, recorded: Path, tmp_path: Path) -> None:
    board = ("--board", tmp_path / "board")
    submitted = ("leaderboard", "submit", recorded, "--model", "bert_tiny", "--cost-model", "gpu", "--method", "mine")
    assert rlflow(*submitted, *board)[0] == 0
    (file,) = (tmp_path / "board").rglob("*.json")
    content = json.loads(file.read_text())
    file.write_text(json.dumps(content | {"saved_percent": 99.0}))
    code, _, err = rlflow("leaderboard", "check", *board)
    assert code == 1
    assert "and 99.0000 % were written" in err


def test_what_cannot_be_used_is_refused_in_a_sentence(rlflow, recorded: Path, tmp_path: Path) -> None:
    board = ("--board", tmp_path / "board")
    code, _, err = rlflow("leaderboard", "show", *board)
    assert code == 2
    assert "has no such row" in err
    submitted = ("leaderboard", "submit", recorded, "--model", "bert_tiny", "--method", "mine", "--number", 3)
    code, _, err = rlflow(*submitted, *board)
    assert code == 2
    assert "has 2 trajectories: there is no number 3" in err
