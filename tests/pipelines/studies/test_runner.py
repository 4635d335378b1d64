"""Cells run in processes of their own; none runs twice, whatever happened to the one that started them."""

import json
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from studies.headroom.cells import Cell, Key, rows
from studies.runner import gathered

from rlflow.cost.base import CostContext
from rlflow.method import Budget

LATEST_S = 60.0
"""Seconds after which a first row is missed."""
STUDY = """
import pickle, sys
from pathlib import Path
from studies.headroom.cells import rows

cells, folder = pickle.loads(Path(sys.argv[1]).read_bytes())
for key, row in rows(cells, processes=1, folder=folder):
    pass
"""


def cell(model: Path, method: str, budget: Budget | None = None) -> Cell:
    return Cell(model, method, {}, budget or Budget(expansions=5), "analytic", CostContext(), (10,), draws=1, seed=0)


def key(method: str) -> Key:
    return "tiny_merge", "analytic", method


def start(cells: dict[Key, Cell], folder: Path, scratch: Path) -> subprocess.Popen:
    """Start a study in another process, which is a group of its own with those that it starts."""
    handed = scratch / "study.pickle"
    handed.write_bytes(pickle.dumps((cells, folder)))
    return subprocess.Popen([sys.executable, "-c", STUDY, str(handed)], start_new_session=True)


def test_rows_are_gathered_in_the_order_of_the_cells_and_gaps_are_named() -> None:
    """They come in another order, and one of them does not come."""
    cells, came = [("a", 0), ("b", 0), ("c", 1)], [(("c", 1), 3), (("a", 0), 1)]
    logged: list[tuple[str, int]] = []
    progress: list[tuple[float, str]] = []

    def on_row(key: tuple[str, int], row: int) -> str:
        logged.append(key)
        return f"{row} found"

    found = gathered(cells, came, on_row, lambda fraction, text: progress.append((fraction, text)))
    assert list(found.items()) == [(("a", 0), 1), (("c", 1), 3)]
    assert logged == [("c", 1), ("a", 0)]
    assert progress == [(0.0, "3 cells"), (1 / 3, "c 1: 3 found"), (2 / 3, "a 0: 1 found")]
    assert [key for key in cells if key not in found] == [("b", 0)]


@pytest.mark.slow
def test_a_cell_whose_process_fails_costs_the_others_nothing(tiny_merge: Path, tmp_path: Path, caplog):
    """Its memory is its own: what this process holds is not counted."""
    ballast = np.ones(400 * 2**20 // 8)
    cells = {key(method): cell(tiny_merge, method) for method in ("unheard_of", "greedy")}
    found = dict(rows(cells, processes=2, folder=tmp_path))
    assert list(found) == [key("greedy")]
    assert "tiny_merge-analytic-unheard_of has no result: InputError: there is no method 'unheard_of'" in caplog.text
    memory_mb = found[key("greedy")]["memory_mb"]
    assert memory_mb is None or memory_mb < ballast.nbytes / 2**20
    assert [file.name for file in tmp_path.iterdir()] == ["tiny_merge-analytic-greedy.json"]


@pytest.mark.slow
def test_a_study_that_was_killed_goes_on_where_it_was(tiny_merge: Path, tmp_path: Path):
    """Killed during its second cell. The first one's row was spoiled since, so that making it anew would show."""
    folder = tmp_path / "rows"
    cells = {key("greedy"): cell(tiny_merge, "greedy"), key("random"): cell(tiny_merge, "random", Budget(time_s=600.0))}
    study = start(cells, folder, tmp_path)
    first = folder / "tiny_merge-analytic-greedy.json"
    since = time.monotonic()
    while not first.exists():
        assert study.poll() is None
        assert time.monotonic() - since < LATEST_S
        time.sleep(0.05)
    os.killpg(study.pid, signal.SIGKILL)
    study.wait()
    first.write_text(json.dumps(json.loads(first.read_text()) | {"evaluations": 12345}))

    cells[key("random")] = cell(tiny_merge, "random")
    found = dict(rows(cells, processes=1, folder=folder))
    assert found[key("greedy")]["evaluations"] == 12345
    assert found[key("random")]["evaluations"] == 5
