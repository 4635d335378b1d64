"""A leaderboard of what methods have found, in which nothing counts that cannot be done again.

    entry = Entry("bert", "gpu", "my-agent", trajectory, rewrites=2000)
    found = submit(entry, Path("data/leaderboard"))          Verified(saved_percent=16.1, steps=98)
    standings(Path("data/leaderboard"))[("bert", "gpu")]     the entries of a row, the best first

A row is a model by its name (`rlflow.zoo.named`) at the prices of a cost model as it is without settings. `predicted`
prices are those of its reference processor, so that they are the same on every machine.

The invariant: an entry's saving is computed here and never taken from its author. It is the price of the graph that the
shipped rules lead to along its trajectory, whose model computes the same as the original. Efforts and seconds are the
author's word, and called so.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rlflow.atomic_file import written_whole
from rlflow.cost.base import CostContext
from rlflow.cost.measured import MeasuredCost
from rlflow.cost.models import COST_MODELS
from rlflow.equivalence.compare import compare
from rlflow.errors import EquivalenceError, InputError, RLFlowError
from rlflow.onnx_io import to_onnx
from rlflow.rules import library
from rlflow.rules.matching.sharing import rewriter_of
from rlflow.trajectory.record import Trajectory
from rlflow.trajectory.replay import of_its_rules, replay
from rlflow.zoo.named import built

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_ROUNDING_PERCENT = 1e-3
"""Prices are sums of floats, which processors round each in their own way."""
_DRAWS = 3
Row = tuple[str, str]
"""A model and a cost model."""


@dataclass(frozen=True)
class Point:
    """On the way to a method's result: after so many rewrites and seconds, the best graph saved so much."""

    rewrites: int
    seconds: float
    saved_percent: float


@dataclass(frozen=True)
class Entry:
    """A method's result on a row, by one seed.

    trajectory: the rewrites that lead to its graph. rewrites: those that it has carried out to find them. seconds: that
    this took on `processor`. course: its best so far. saved_percent: as it was verified; None before that.
    """

    model: str
    cost: str
    method: str
    trajectory: Trajectory
    seed: int = 0
    rewrites: int | None = None
    seconds: float | None = None
    processor: str = ""
    course: tuple[Point, ...] = ()
    saved_percent: float | None = None

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.method):
            raise InputError(f"{self.method!r} is no name of a method: letters, digits, and _ . - between them")

    @property
    def row(self) -> Row:
        return self.model, self.cost

    def place(self, board: Path) -> Path:
        """Return the file of the entry: one for each row, method and seed."""
        return board / self.model / self.cost / f"{self.method}-{self.seed}.json"

    def to_json(self) -> str:
        content = asdict(self) | {"trajectory": json.loads(self.trajectory.to_json())}
        return json.dumps(content) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Entry:
        """`InputError` if the text is no entry."""
        try:
            content: dict[str, Any] = json.loads(text)
            content["trajectory"] = Trajectory.from_json(json.dumps(content["trajectory"]))
            content["course"] = tuple(Point(**point) for point in content["course"])
            return cls(**content)
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"not an entry of the leaderboard: {error}") from None


@dataclass(frozen=True)
class Verified:
    """The worth of an entry by itself: the saving of its last graph, and the steps that lead there."""

    saved_percent: float
    steps: int


def verify(entry: Entry) -> Verified:
    """Replay an entry, price its last graph, and compare that with the original on drawn inputs.

    `InputError` for a model or a cost model that there is not, or a cost model that measures, `ReplayError` for a
    trajectory of another model or by other rules, `EquivalenceError` if the last graph computes something else.
    """
    graph = built(entry.model)
    prices = COST_MODELS.get(entry.cost)(CostContext())
    if isinstance(prices, MeasuredCost):
        raise InputError(f"{entry.cost} prices are those of this machine alone: choose a cost model without a clock")
    rewriter = rewriter_of(entry.trajectory.matching, library.load().rules)
    *_, last = replay(graph, entry.trajectory, of_its_rules(entry.trajectory, rewriter))
    report = compare(to_onnx(graph), to_onnx(last), draws=_DRAWS)
    if not report.equivalent:
        raise EquivalenceError(
            f"what {entry.method} has found of {entry.model} computes something else: {report.reason}"
        )
    before, after = prices.runtime_ms(graph), prices.runtime_ms(last)
    return Verified(100.0 * (before - after) / before, len(entry.trajectory.steps))


def submit(entry: Entry, board: Path) -> Verified:
    """Verify an entry and write it, in place of an older one of its row, method and seed; raises what `verify` does."""
    found = verify(entry)
    with written_whole(entry.place(board)) as draft:
        draft.write_text(replace(entry, saved_percent=found.saved_percent).to_json())
    return found


def standings(board: Path) -> Mapping[Row, list[Entry]]:
    """Return the entries of each row, the best first; of equal ones that of fewer rewrites.

    `InputError` naming a file that is no entry.
    """
    rows: dict[Row, list[Entry]] = defaultdict(list)
    for file in sorted(board.glob("*/*/*.json")):
        entry = _read(file)
        if entry.place(board) != file or entry.saved_percent is None:
            raise InputError(f"{file} was not written by `rlflow leaderboard submit`")
        rows[entry.row].append(entry)
    return {row: sorted(entries, key=_order) for row, entries in sorted(rows.items())}


def is_level(one: Entry, other: Entry) -> bool:
    """Return True where two verified entries save the same but for rounding."""
    assert one.saved_percent is not None
    assert other.saved_percent is not None
    return abs(one.saved_percent - other.saved_percent) <= _ROUNDING_PERCENT


def disagreement(entry: Entry) -> str | None:
    """Verify a written entry again; return in a sentence what does not hold any more, None if all does."""
    try:
        found = verify(entry)
    except RLFlowError as error:
        return str(error)
    if not is_level(entry, replace(entry, saved_percent=found.saved_percent)):
        return f"it saves {found.saved_percent:.4f} %, and {entry.saved_percent:.4f} % were written"
    return None


def _read(file: Path) -> Entry:
    try:
        return Entry.from_json(file.read_text())
    except (OSError, UnicodeDecodeError, InputError) as error:
        raise InputError(f"{file}: {error}") from None


def _order(entry: Entry) -> tuple[float, float, str, int]:
    saved, rewrites = entry.saved_percent or 0.0, entry.rewrites
    unknown = float("inf")
    return -round(saved / _ROUNDING_PERCENT), unknown if rewrites is None else rewrites, entry.method, entry.seed
