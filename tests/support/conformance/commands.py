"""Each command on a damaged file: it does its work, or says why not in one sentence, with an exit code.

    said = ran("show", "damaged.onnx")          # as a shell runs it, but in this process
    problem(said)                               # "" or what is wrong with the answer

The invariant that is tried: no exception but ours leaves a command, no message names a temporary file of ours, and
nothing is left behind. A library may crash or hang on what it is given, so a guarded process runs the commands.
"""

from __future__ import annotations

import io
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from shutil import rmtree
from typing import Any

from rlflow.cli.main import main
from support.conformance.bench import Bench
from support.conformance.guarded_process import GuardedProcess

_LONGEST_S = 300.0
_DONE, _SAID_NO, _REFUSED = "done", "ended with exit code 1", "refused with exit code 2"
_GROUPS = ("rules", "passes")
_WRITTEN = {"out.onnx", "out.onnx.reproducer", "new"}


@dataclass(frozen=True)
class Said:
    """The answer of a command: its exit code, what it wrote, and an exception that it did not catch, or ""."""

    code: int
    out: str
    err: str
    escaped: str = ""


def ran(*arguments: str) -> Said:
    """Run `rlflow` with these arguments in this process."""
    out, err, argv = io.StringIO(), io.StringIO(), sys.argv
    code, escaped = 0, ""
    sys.argv = ["rlflow", *arguments]
    try:
        with redirect_stdout(out), redirect_stderr(err):
            main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except Exception as error:
        escaped = f"{type(error).__name__}: {error}"
    finally:
        sys.argv = argv
    return Said(code, out.getvalue(), err.getvalue(), escaped)


def problem(said: Said) -> str:
    """Say what is wrong with an answer, or "" if it is as it should be."""
    text = said.out + said.err
    if said.escaped or "Traceback" in text:
        return f"traceback: {said.escaped or text[-500:]}"
    if said.code not in (0, 1, 2):
        return f"exit code {said.code}: {text[-300:]}"
    if f"{tempfile.gettempdir()}/rlflow-" in text:
        return f"names a temporary file: {text[-500:]}"
    lines = said.err.strip("\n").split("\n")
    errors = [line for line in lines if line.startswith("rlflow: ")]
    if said.code == 2 and (len(errors) != 1 or lines[-1] != errors[0]):
        return f"not one sentence: {said.err[-500:]}"
    return ""


def answer_of(job: Path) -> str:
    """Run the command whose arguments the file `job` holds; return what became of it, or what is wrong."""
    said = ran(*json.loads(job.read_text()))
    return problem(said) or (_DONE, _SAID_NO, _REFUSED)[said.code]


Reader = Callable[[Bench, Path], Sequence[object]]
"""The command line that reads a file."""
_SEARCH = ("--budget", "2s", "--method", "greedy", "--cost-model", "analytic")
_TRAIN = ("--effort", 1, "--epochs", 1)
_PASS = "onnxoptimizer:eliminate_identity"

_OF_MODELS: Mapping[Reader, float] = {
    lambda b, f: ("show", f): 60,
    lambda b, f: ("show", f, "--text"): 8,
    lambda b, f: ("show", b.sound["model"], "--after", f): 8,
    lambda b, f: ("replay", b.sound["trajectory"], f): 4,
    lambda b, f: ("equivalence", f, b.sound["model"], "--draws", 1): 3,
    lambda b, f: ("equivalence", b.sound["model"], f, "--draws", 1): 3,
    lambda b, f: ("optimise", f, "-o", b.out, *_SEARCH): 4,
    lambda b, f: ("train", f, "--policy-out", b.folder / "new", *_TRAIN): 0.5,
    lambda b, f: ("passes", "apply", f, _PASS): 0.3,
    lambda b, f: ("passes", "search", f, "--max-passes", 1, "--width", 1): 0.1,
}
READERS: Mapping[str, Mapping[Reader, float]] = {
    "model": _OF_MODELS,
    "data": _OF_MODELS,
    "inputs": {lambda b, f: ("equivalence", b.sound["model"], b.sound["model"], "--inputs", f): 1},
    "trajectory": {lambda b, f: ("replay", f, b.sound["model"]): 1},
    "text": {lambda b, f: ("show", f): 1},
    "record": {lambda b, f: ("passes", "replay", f): 1},
    "equations": {lambda b, f: ("rules", "recall", f, "--library", b.sound["library"]): 1},
    "library": {
        lambda b, f: ("rules", "list", "--library", f): 1,
        lambda b, f: ("rules", "show", "split-matmul-2", "--library", f): 1,
        lambda b, f: ("rules", "diff", f): 1,
        lambda b, f: ("rules", "certify", "--library", f): 1,
        lambda b, f: ("rules", "verify", "--library", f): 0.1,
        lambda b, f: ("replay", b.sound["trajectory"], b.sound["model"], "--rules", f): 1,
        lambda b, f: ("optimise", b.sound["model"], "-o", b.out, "--rules", f, *_SEARCH): 1,
    },
    "policy": {
        lambda b, f: ("train", b.sound["model"], "--policy-out", b.folder / "new", "--policy", f.parent, *_TRAIN): 1,
        lambda b, f: (
            *("optimise", b.sound["model"], "-o", b.out, "--method", "rlflow"),
            *("--policy", f.parent, "--budget", "2s"),
        ): 1,
    },
}
"""By the kind of file the commands that read it, and how often they are drawn: those that take long less often."""
_KINDS: Mapping[str, float] = {
    "model": 80,
    "data": 9,
    "inputs": 1.5,
    "trajectory": 2,
    "text": 5,
    "record": 0.1,
    "equations": 0.4,
    "library": 1.6,
    "policy": 0.4,
}


@dataclass
class Answers:
    """What commands said to damaged files, by the command; `failures` has the seed that makes each again."""

    outcomes: dict[str, Counter[str]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """As schema `conformance` describes it."""
        commands = {
            name: {"files": found.total(), "done": found[_DONE], "refused": found[_REFUSED], "said_no": found[_SAID_NO]}
            for name, found in sorted(self.outcomes.items())
        }
        files = sum(command["files"] for command in commands.values()) + len(self.failures)
        return {"files": files, "by_command": commands, "failures": len(self.failures)}

    def take(self, seeds: Iterable[int]) -> None:
        """A file and a command for each seed."""
        with tempfile.TemporaryDirectory() as folder, GuardedProcess(answer_of, longest_s=_LONGEST_S) as answer:
            bench, job = Bench(Path(folder) / "bench"), Path(folder) / "job.json"
            for seed in seeds:
                random = Random(seed)
                kind = random.choices(list(_KINDS), list(_KINDS.values()))[0]
                names, file = bench.damage(kind, random)
                reader = random.choices(list(READERS[kind]), list(READERS[kind].values()))[0]
                arguments = [str(part) for part in reader(bench, file)]
                job.write_text(json.dumps(arguments))
                outcome = answer(job)
                left = {path.name for path in bench.folder.iterdir()} - bench.names
                if left - (_WRITTEN if outcome == _DONE else {"out.onnx.reproducer"}):
                    outcome = f"files left behind: {sorted(left)}"
                if outcome in (_DONE, _SAID_NO, _REFUSED):
                    self.outcomes.setdefault(_command(arguments), Counter())[outcome] += 1
                else:
                    self.failures.append(f"seed {seed}, {kind}, {names}, {' '.join(arguments)}: {outcome}")
                _remove(bench.folder / name for name in left)
                bench.mend()


def _command(arguments: Sequence[str]) -> str:
    return " ".join(arguments[: 2 if arguments[0] in _GROUPS else 1])


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        if path.is_dir():
            rmtree(path)
        else:
            path.unlink()
