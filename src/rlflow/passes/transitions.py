"""Programs that passes have led to, each pass run once: the states behind an environment and behind every search.

    transitions = Transitions(backend, Path("transitions.sqlite"))
    start = transitions.start("gpt2/step?layers=2")
    outcome = transitions.step(start.key, "algsimp")
    outcome.facts.operations, outcome.changed, outcome.error

Random episodes meet the same programs again and again (20 to 65 % of all steps), and so do agents and seeds that learn
on the same programs. Therefore the answer of a pass on a program is kept in a file, which processes may share. Kept are
keys, counts and costs, which are small. Programs themselves are held in memory up to a limit; one that has been dropped
is made again, by the passes that first led to it.

Two ways to a program may write it differently, in names or in the order of equal parts, and a pass may depend on that.
Therefore a program is always the one of the way that the file has, whichever way an episode has come.

Invariant: an answer from the file is the one that the backend would give.
"""

from __future__ import annotations

import json
import sqlite3
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

from rlflow.errors import InputError
from rlflow.passes.backend import Facts, PassBackend, PassCost, PassError, Program

_TABLES = """
create table if not exists programs(key text primary key, counts text, cost text, source text, parent text, pass text);
create table if not exists owner(backend text);
create table if not exists starts(source text primary key, key text);
create table if not exists steps(key text, pass text, after text, error text, primary key (key, pass)) without rowid;
"""
Way = tuple[str | None, str | None, str | None]
"""The source of a program, or the program and the pass that led to it."""
_AS_BYTES: Way = (None, None, None)
"""Of a program that nothing could make again."""
_PATIENCE_S = 60.0
_MOST_BYTES = 256_000_000


@dataclass(frozen=True)
class Outcome:
    """The program after a pass. If the pass failed, that is the program before it, and `error` says why."""

    facts: Facts
    changed: bool
    error: str = ""


class Transitions:
    """The programs of a backend and the passes between them, remembered in a file, or in memory if there is none.

    hits and misses count the steps that were known and those for which the compiler was called.
    """

    def __init__(self, backend: PassBackend, path: Path | None = None, *, most_bytes: int = _MOST_BYTES) -> None:
        self.backend, self.most_bytes = backend, most_bytes
        self.hits = self.misses = 0
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
        # Autocommit: another process may read what is known at any time, and wait for the lock as long as it takes.
        self._file = sqlite3.connect(path or ":memory:", timeout=_PATIENCE_S, isolation_level=None)
        self._file.execute("pragma journal_mode = wal")
        self._file.execute("pragma synchronous = off")  # what a crash of the machine loses can be computed again
        self._file.executescript(_TABLES)
        self._require_own(path)
        self._payloads: OrderedDict[str, bytes] = OrderedDict()
        self._held_bytes = 0
        self._facts: dict[str, Facts] = {}
        self._pinned: dict[str, bytes] = {}  # programs that came as bytes, which nothing could make again

    def _require_own(self, path: Path | None) -> None:
        """Raise `InputError` unless the file is new, or was begun with the same passes of the same compiler."""
        known = self.backend.catalogue()
        own = json.dumps([known.name, known.passes, known.pipelines])
        with self._file:
            self._file.execute("begin immediate")  # two processes may begin a file at once
            row = self._file.execute("select backend from owner").fetchone()
            if row is None:
                self._file.execute("insert into owner values (?)", (own,))
        if row is not None and row[0] != own:
            raise InputError(
                f"{path} has the transitions of other passes than those of {known.name}: name another file"
            )

    def start(self, source: str | bytes) -> Facts:
        """The facts of a program of the dataset by its name, or of the content of a file, before any pass."""
        if isinstance(source, bytes):
            program = self.backend.load(source)
            self._pinned[program.facts.key] = program.payload
            self._keep(program, _AS_BYTES)
            return program.facts
        row = self._file.execute("select key from starts where source = ?", (source,)).fetchone()
        if row is not None:
            return self.facts(row[0])
        program = self.backend.load(source)
        self._keep(program, (source, None, None))
        self._file.execute("insert or ignore into starts values (?, ?)", (source, program.facts.key))
        return program.facts

    def step(self, key: str, name: str) -> Outcome:
        """Run a pass or a pipeline on a known program, unless its answer is known."""
        row = self._file.execute("select after, error from steps where key = ? and pass = ?", (key, name)).fetchone()
        if row is not None:
            self.hits += 1
            return Outcome(self.facts(row[0]), row[0] != key, row[1])
        self.misses += 1
        payload = self.payload(key)
        try:
            program = self.backend.apply(payload, name)
        except PassError as failure:
            outcome = Outcome(self.facts(key), False, str(failure))
        else:
            if program.facts.key != key:  # a program that only looks different is the one that is there
                self._keep(program, (None, key, name))
            outcome = Outcome(program.facts, program.facts.key != key)
        self._file.execute(
            "insert or ignore into steps values (?, ?, ?, ?)", (key, name, outcome.facts.key, outcome.error)
        )
        return outcome

    def facts(self, key: str) -> Facts:
        """The facts of a program that was met."""
        if key not in self._facts:
            row = self._file.execute("select counts, cost from programs where key = ?", (key,)).fetchone()
            if row is None:
                raise InputError(f"there is no program {key} in these transitions: start from one of the dataset")
            counts = tuple((operation, count) for operation, count in json.loads(row[0]))
            self._facts[key] = Facts(key, counts, PassCost(*json.loads(row[1])))
        return self._facts[key]

    def payload(self, key: str) -> bytes:
        """The bytes of a program that was met, made again by the passes that led to it if they were dropped."""
        if key in self._pinned:
            return self._pinned[key]
        if key not in self._payloads:
            program = self._made_again(key)
            if program.facts.key != key:
                raise PassError(f"what led to program {key} now leads to {program.facts.key}: begin the file anew")
            self._hold(key, program.payload)
        self._payloads.move_to_end(key)
        return self._payloads[key]

    def close(self) -> None:
        """Close the file; the caller owns the backend."""
        self._file.close()

    def _made_again(self, key: str) -> Program:
        match self._way_to(key):
            case None:
                raise InputError(f"there is no program {key} in these transitions: start from one of the dataset")
            case (None, str(parent), str(name)):
                return self.backend.apply(self.payload(parent), name)
            case (str(source), _, _):
                return self.backend.load(source)
        raise InputError(f"the program {key} came to these transitions as bytes: start from these")

    def _way_to(self, key: str) -> Way | None:
        row: Way | None = self._file.execute(
            "select source, parent, pass from programs where key = ?", (key,)
        ).fetchone()
        return row

    def _keep(self, program: Program, way: Way) -> None:
        """Keep the facts of a program, and the program itself unless the file has another way to it."""
        facts = program.facts
        cost = (facts.cost.flops, facts.cost.transcendentals, facts.cost.bytes_accessed)
        self._file.execute(
            "insert or ignore into programs values (?, ?, ?, ?, ?, ?)",
            (facts.key, json.dumps(facts.counts), json.dumps(cost), *way),
        )
        self._facts[facts.key] = facts
        if self._way_to(facts.key) in (way, _AS_BYTES):
            self._hold(facts.key, program.payload)

    def _hold(self, key: str, payload: bytes) -> None:
        if key in self._payloads:
            return
        self._payloads[key] = payload
        self._held_bytes += len(payload)
        while self._held_bytes > self.most_bytes and len(self._payloads) > 1:
            self._held_bytes -= len(self._payloads.popitem(last=False)[1])
