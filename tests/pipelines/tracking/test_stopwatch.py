import time
from pathlib import Path

from tracking.stopwatch import Stopwatch


def test_time_of_earlier_processes_counts(tmp_path: Path):
    (tmp_path / "elapsed.txt").write_text("100.0")
    stopwatch = Stopwatch(tmp_path / "elapsed.txt")
    time.sleep(0.01)
    first = stopwatch.tick()
    assert 100.01 <= first < stopwatch.tick()
    assert Stopwatch(tmp_path / "elapsed.txt").tick() >= first


def test_time_before_the_last_tick_survives_a_kill(tmp_path: Path):
    """The second stopwatch is the process that comes after; the first one never says goodbye."""
    first = Stopwatch(tmp_path / "elapsed.txt")
    time.sleep(0.02)
    ticked = first.tick()
    assert Stopwatch(tmp_path / "elapsed.txt").tick() > ticked >= 0.02
