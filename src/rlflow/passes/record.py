"""A sequence of passes as a file: which program, which passes, and the program after each of them.

record = PassRecord.of(transitions, "xla", "gpt2/step", found.passes)
write_record(Path("found.json"), record)
replayed(transitions, read_record(Path("found.json")))
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rlflow.atomic_file import written_whole
from rlflow.errors import InputError, ReplayError
from rlflow.git_lfs import require_content
from rlflow.passes.backend import Facts
from rlflow.passes.transitions import Transitions


@dataclass(frozen=True)
class PassStep:
    """A pass, and the key and the operations of the program after it."""

    name: str
    key: str
    operations: int


@dataclass(frozen=True)
class PassRecord:
    """The passes from one program to another; `source` is a name or a path, and `key` that of the start."""

    backend: str
    source: str
    key: str
    operations: int
    steps: tuple[PassStep, ...] = ()

    @classmethod
    def of(cls, transitions: Transitions, backend: str, source: str, start: Facts, names: Iterable[str]) -> PassRecord:
        """Record what passes make of a program; those that change nothing are left out."""
        facts, steps = start, []
        for name in names:
            outcome = transitions.step(facts.key, name)
            if outcome.changed:
                facts = outcome.facts
                steps.append(PassStep(name, facts.key, facts.operations))
        return cls(backend, source, start.key, start.operations, tuple(steps))


def write_record(path: Path, record: PassRecord) -> None:
    """Write a record as JSON, whole or not at all."""
    with written_whole(path) as draft:
        draft.write_text(json.dumps(asdict(record), indent=1) + "\n")


def read_record(path: Path) -> PassRecord:
    """Read what `write_record` wrote. `InputError` if the file holds no such record."""
    require_content(path)
    try:
        written = json.loads(path.read_text())
        steps = tuple(PassStep(**_fields(step, _STEP)) for step in written["steps"])
        return PassRecord(**_fields(written, _RECORD), steps=steps)
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"{path} holds no record of passes ({error!r}): `rlflow passes search` writes one") from None


_STEP = {"name": str, "key": str, "operations": int}
_RECORD = {"backend": str, "source": str, "key": str, "operations": int}


def _fields(written: Mapping[str, Any], kinds: Mapping[str, type]) -> dict[str, Any]:
    """Return the values of these names; `TypeError` for one of another kind."""
    for name, kind in kinds.items():
        if not isinstance(written[name], kind):
            raise TypeError(f"its {name} is {written[name]!r}")
    return {name: written[name] for name in kinds}


def replayed(transitions: Transitions, record: PassRecord, start: Facts) -> Facts:
    """Run the passes of a record again and return the facts of the last program.

    Raises `ReplayError` where a program is another one than was recorded.
    """
    facts = _same(start, record.key, f"the program {record.source}")
    for number, step in enumerate(record.steps, start=1):
        outcome = transitions.step(facts.key, step.name)
        if outcome.error:
            raise ReplayError(f"step {number}: {outcome.error}")
        facts = _same(outcome.facts, step.key, f"the program after step {number}, {step.name},")
    return facts


def _same(facts: Facts, key: str, which: str) -> Facts:
    if facts.key != key:
        raise ReplayError(f"{which} is {facts.key}, and {key} was recorded: replay with the versions that recorded it")
    return facts
