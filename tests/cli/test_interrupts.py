"""Ctrl-C in each phase, as a real signal to a real process: nothing is lost, and nothing is half written."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import onnx
import pytest
from support.onnx_models import save, with_drawn_weights

from rlflow.cli.interrupts import first_interrupt
from rlflow.equivalence.compare import compare

LONGEST_S = 240.0
"""By then a phase has come even on a busy machine; the command is ended afterwards."""
HEAVY = """
    <ir_version: 8, opset_import: ["" : 17]>
    heavy (float[256, 1024] x) => (float[256, 1024] y)
    <float[1024, 1024] w, float[1024, 1024] v> { p = MatMul(x, w)  q = MatMul(p, v)  y = Relu(q) }
"""
"""One product saves half of it, which is found at once; a round of timing takes long enough to be interrupted."""


@dataclass
class Command:
    """`rlflow optimise` in a process of its own, which shows its progress as to a person at a terminal."""

    process: subprocess.Popen[bytes]
    seen: bytearray

    @property
    def last(self) -> str:
        return self.seen[-200:].decode(errors="replace")

    def interrupt_when(self, phase: str) -> None:
        deadline_s = time.monotonic() + LONGEST_S
        while phase.encode() not in self.seen:
            assert self.process.poll() is None, f"it ended before {phase!r}: {self.last}"
            assert time.monotonic() < deadline_s, f"it never came to {phase!r}"
            time.sleep(0.02)
        self.process.send_signal(signal.SIGINT)

    def ended(self) -> tuple[int, str]:
        """Exit code and standard output."""
        assert self.process.stdout is not None
        out = self.process.stdout.read().decode()
        return self.process.wait(LONGEST_S), out


@contextmanager
def command(source: Path, target: Path, *options: str) -> Iterator[Command]:
    environment = os.environ | {
        "FORCE_COLOR": "1",
        "COLUMNS": "200",
        "XDG_CACHE_HOME": str(source.parent / "cache"),
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    arguments = [sys.executable, "-m", "rlflow", "optimise", str(source), "-o", str(target), "--json", *options]
    with subprocess.Popen(arguments, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        seen = bytearray()
        reader = threading.Thread(target=_read, args=(process, seen), daemon=True)
        reader.start()
        try:
            yield Command(process, seen)
        finally:
            process.kill()
            reader.join(LONGEST_S)


def _read(process: subprocess.Popen[bytes], seen: bytearray) -> None:
    assert process.stderr is not None
    for piece in iter(lambda: os.read(process.stderr.fileno(), 1024), b""):  # type: ignore[union-attr]
        seen += piece


@pytest.fixture
def heavy(tmp_path: Path) -> Path:
    source = tmp_path / "in.onnx"
    onnx.save(with_drawn_weights(HEAVY), source)
    return source


@pytest.fixture
def endless(tmp_path: Path) -> Path:
    """A model on which iterated search goes on for some time after it has found something, whatever the processor."""
    sizes = {"layers": 2, "hidden": 256, "heads": 4, "intermediate": 1024, "sequence": 64, "vocabulary": 50}
    return save(tmp_path / "in.onnx", "bert", **sizes)


@pytest.mark.slow
def test_before_anything_is_known_the_original_is_copied(heavy: Path) -> None:
    target = heavy.parent / "out.onnx"
    with command(heavy, target, "--budget", "10m") as running:
        running.interrupt_when("reading the model")
        code, out = running.ended()
    report = json.loads(out)
    assert code == 0
    assert (report["written"], report["reason"]) == ("original", "interrupted before anything was found")
    assert target.read_bytes() == heavy.read_bytes()
    assert _left(target) == {"in.onnx", "out.onnx"}


@pytest.mark.parametrize(
    ("phase", "options"),
    [
        ("kicks without gain", ("--method", "iterated")),
        ("checking the result", ("--method", "greedy")),
        ("timing the result", ("--method", "greedy")),
    ],
)
def test_the_best_so_far_is_checked_and_written(
    phase: str, options: tuple[str, ...], request: pytest.FixtureRequest
) -> None:
    """Of ten minutes. While it searches, a first line about what was found is waited for."""
    source: Path = request.getfixturevalue("endless" if "iterated" in options else "heavy")
    target = source.parent / "out.onnx"
    with command(source, target, "--budget", "10m", *options) as running:
        running.interrupt_when(phase)
        code, out = running.ended()
    report = json.loads(out)
    assert code == 0
    assert report["written"] == "optimised"
    assert report["steps"]
    assert report["reason"].startswith(("interrupted: equal within rounding", "faster with probability"))
    assert report["equivalence"]["non_vacuous_draws"]
    assert target.read_bytes() != source.read_bytes()
    assert compare(source, target, draws=1).equivalent
    assert _left(target) == {"in.onnx", "out.onnx"}


@pytest.mark.slow
def test_a_second_one_ends_it_at_once(endless: Path) -> None:
    target = endless.parent / "out.onnx"
    with command(endless, target, "--budget", "10m", "--method", "iterated") as running:
        running.interrupt_when("kicks without gain")
        running.interrupt_when("checking the result")
        code, out = running.ended()
    assert (code, out) == (130, "")
    assert b"interrupted; no file was left half written" in running.seen
    assert _left(target) == {"in.onnx"}


def test_only_the_first_one_is_a_request() -> None:
    """And what Ctrl-C did before, it does again after the block."""
    before: Callable[..., object] | int | None = signal.getsignal(signal.SIGINT)
    with first_interrupt() as is_interrupted:
        assert not is_interrupted()
        signal.raise_signal(signal.SIGINT)
        assert is_interrupted()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) == before


def _left(target: Path) -> set[str]:
    """The names of all files beside the target, hidden drafts included, but for the cache."""
    return {path.name for path in target.parent.iterdir()} - {"cache"}
