"""One process draws the bars of all."""

from contextlib import nullcontext
from multiprocessing import get_context

import pytest
from rich.console import Console
from tracking import progress
from tracking.progress import Advance, bars_of, shown_progress, tell, told_progress


def test_what_another_process_tells_is_shown(monkeypatch: pytest.MonkeyPatch):
    """All of it, before the bars go; who tells later is not disturbed."""
    shown: list[Advance] = []
    monkeypatch.setattr(progress, "shown_progress", lambda: nullcontext(shown.append))
    with told_progress() as told:
        tell(told, Advance("small, epochs", 0.1, "3"))
        teller = get_context("spawn").Process(target=tell, args=(told, Advance("large, epochs", 0.5, "15")))
        teller.start()
        teller.join()
    assert shown == [("small, epochs", 0.1, "3"), ("large, epochs", 0.5, "15")]
    tell(told, Advance("small, epochs", 1.0, "6"))
    assert len(shown) == 2


def test_each_work_has_a_bar_of_its_own(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    """Drawn on standard error, so that standard output stays for results."""
    monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal
    monkeypatch.setenv("COLUMNS", "100")
    with shown_progress() as show:
        show(Advance("small, epochs", 0.5, "3"))
        show(Advance("large, epochs", 0.25, ""))
        show(Advance("small, epochs", 1.0, "6"))
    drawn = capsys.readouterr()
    assert "small, epochs: 6" in drawn.err
    assert "large, epochs" in drawn.err
    assert drawn.out == ""


def test_the_time_left_is_told_of_long_steps():
    """A training that goes on from a checkpoint at half of its way, with steps of ten minutes: two of them are left."""
    now = [0.0]
    bars = bars_of(Console(), clock=lambda: now[0])
    work = bars.add_task("bert, updates", total=1.0)
    for step in (5, 6, 7):
        bars.update(work, completed=step / 10)
        now[0] += 600.0
    bars.update(work, completed=0.8)
    assert bars.tasks[0].time_remaining == pytest.approx(2 * 600.0, abs=1.0)


def test_bars_say_that_their_time_is_the_time_left(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    with shown_progress() as show:
        show(Advance("small, epochs", 0.5, "3"))
    assert "left" in capsys.readouterr().err
