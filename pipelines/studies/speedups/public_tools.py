"""Public tools that rewrite ONNX models, each run by its own command in a process of its own.

    made = run_tool("onnxslim", Path("bert.onnx"), Path("by_onnxslim.onnx"))
    made.failure                                            "", or why there is no model that computes the same

A tool may crash, refuse a model, never end, or yield a model that computes something else: that is its result here, in
words, and no error of ours. They are compared as their users have them: with the defaults of their commands.
"""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

from rlflow.equivalence import equivalence
from rlflow.equivalence.report import EquivalenceReport
from rlflow.errors import InputError, RLFlowError

_LONGEST_S = 300.0


class _Tool(NamedTuple):
    """The distribution that brings the tool, its module, and what it is called with."""

    distribution: str
    module: str
    arguments: tuple[str, ...] = ("{original}", "{output}")


_TOOLS = {
    "onnxoptimizer": _Tool("onnxoptimizer", "onnxoptimizer"),
    "onnxruntime_transformers": _Tool(
        "onnxruntime", "onnxruntime.transformers.optimizer", ("--input", "{original}", "--output", "{output}")
    ),
    "onnxsim": _Tool("onnxsim", "onnxsim"),
    "onnxslim": _Tool("onnxslim", "onnxslim"),
}


@dataclass(frozen=True)
class Made:
    """The result of a tool: its version, the seconds that it took, and why its model cannot be used, or "".

    `equivalence` compares its model with the original; None if there is none.
    """

    version: str
    wall_time_s: float
    failure: str = ""
    equivalence: EquivalenceReport | None = None


def names() -> list[str]:
    """The names that `run_tool` knows, sorted."""
    return sorted(_TOOLS)


def run_tool(name: str, original: Path, output: Path, *, draws: int = 3, seed: int = 0) -> Made:
    """Let a tool write its model to `output`, and compare that with the original on `draws` inputs drawn from `seed`.

    Raises `InputError` for an unknown tool.
    """
    if name not in _TOOLS:
        raise InputError(f"there is no public tool {name!r} here: choose one of {', '.join(names())}")
    tool = _TOOLS[name]
    try:
        made_by = version(tool.distribution)
    except PackageNotFoundError:
        return Made("", 0.0, f"it is not installed: pip install {tool.distribution}")
    started = time.perf_counter()
    failure = _run(tool, original, output)
    wall_time_s = time.perf_counter() - started
    if failure:
        return Made(made_by, wall_time_s, failure)
    try:
        report = equivalence(original, output, draws=draws, seed=seed)
    except RLFlowError as error:
        return Made(made_by, wall_time_s, str(error))
    return Made(made_by, wall_time_s, "" if report.equivalent else report.summary, report)


def _run(tool: _Tool, original: Path, output: Path) -> str:
    """Run the tool's command; return why there is no model, or ""."""
    places = {"original": str(original.resolve()), "output": str(output.resolve())}
    arguments = [argument.format(**places) for argument in tool.arguments]
    try:
        done = subprocess.run(
            [sys.executable, "-m", tool.module, *arguments],
            cwd=output.parent,
            capture_output=True,
            text=True,
            timeout=_LONGEST_S,
        )
    except subprocess.TimeoutExpired:
        return f"it did not end within {_LONGEST_S:g} s"
    if done.returncode:
        return f"it ended with exit code {done.returncode}: {_last_line(done.stderr or done.stdout)}"
    return "" if output.is_file() else f"it wrote no model: {_last_line(done.stderr or done.stdout)}"


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1].strip() if lines else "without a word"
