"""The methods of this project on the leaderboard: entries with their courses, and the page that tells of them."""

from collections.abc import Callable
from pathlib import Path

import pytest
from studies.leaderboard.write_page import curves, page

from rlflow.leaderboard import disagreement, standings
from rlflow.optimise.methods import METHODS


def test_the_page_is_that_of_the_committed_entries(repository: Path) -> None:
    rows = standings(repository / "data/leaderboard")
    assert (repository / "docs/leaderboard.md").read_text() == page(rows), (
        "write it anew: make study NAME=leaderboard.write_page"
    )
    methods = {entry.method for entries in rows.values() for entry in entries}
    assert {"greedy", "rlflow"} <= methods & {*METHODS.names()}


def test_the_picture_has_a_panel_for_each_row_and_a_line_for_each_course(repository: Path) -> None:
    rows = standings(repository / "data/leaderboard")
    figure = curves(rows)
    assert [axes.get_title() for axes in figure.axes] == [f"{model}, {cost}" for model, cost in rows]
    for axes, entries in zip(figure.axes, rows.values(), strict=True):
        ends = {line.get_label(): line.get_ydata()[-1] for line in axes.get_lines()}
        assert ends == pytest.approx({entry.method: entry.saved_percent for entry in entries}, abs=1e-3)


@pytest.mark.study
def test_methods_enter_with_what_they_have_found(store_root: Path, study: Callable[..., Path]) -> None:
    tiny = ("graphs=[tiny_merge]", "costs=[gpu]", "methods=[greedy,chains]", "rewrites=50", "processes=1")
    study("leaderboard", *tiny)
    board = store_root / "data/leaderboard"
    (entries,) = standings(board).values()
    assert sorted(entry.method for entry in entries) == ["chains", "greedy"]
    for entry in entries:
        assert disagreement(entry) is None
        assert entry.course[-1].saved_percent == pytest.approx(entry.saved_percent)
        assert entry.rewrites is not None
        assert entry.course[-1].rewrites <= entry.rewrites
    assert "| tiny_merge |" in (store_root / "docs/leaderboard.md").read_text()
    assert (store_root / "docs/images/leaderboard.png").stat().st_size > 1000
