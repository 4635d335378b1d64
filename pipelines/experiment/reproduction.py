"""A fresh run of the experiment is compared with the published one: is it the same experiment again?

    again = reproduction(["data/results/evaluate/metrics.json"], {"data/rules": Kind.EQUAL}, published, fresh)
    again.reproduced    # False: something differs that must not
    again.unlike        # what: /bert/greedy/steps of data/results/evaluate/metrics.json, 133 and now 131

How a figure reproduces stands in the type of its file (`rlflow.schemas.reproduction`): it is equal, equal up to the
last digits, or a time, which may be any other. Outputs of other forms are compared by their digests.

The invariant: nothing is passed over. What only one of the two runs has is unlike, of whatever kind it is, and a file
that is missing or does not follow its type is a fault.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from experiment.documents import DOCUMENTS
from experiment.results import parsed, type_of
from rlflow import schemas
from rlflow.errors import InputError, RLFlowError
from rlflow.schemas import Kind, Place

_EPSILON = 2.0**-23  # of float32, in which networks learn and ONNX Runtime computes
RELATIVE = math.sqrt(_EPSILON)
"""Half the digits of float32, the rest being left to the rounding of a long computation."""
ABSOLUTE = 16 * _EPSILON
"""For figures that are errors of rounding themselves: the unit of `rlflow.equivalence.tolerance`."""

Interval = list[float]


@dataclass(frozen=True)
class Run:
    """One run of the experiment: the text of a file by its path, None if there is none, and its outputs' digests."""

    name: str
    text: Callable[[str], str | None]
    digests: Mapping[str, str]


@dataclass(frozen=True)
class Compared:
    """A place of a file, and what two runs have there, None for nothing; an output has no places, and its digests are
    compared.

    as_before: the two are as alike as the kind demands. intervals: the figure's of 95 %, where both runs have them.
    """

    file: str
    place: str
    kind: Kind
    published: Any
    fresh: Any
    as_before: bool
    intervals: tuple[Interval, Interval] | None = None

    @property
    def intervals_apart(self) -> bool:
        """True if no value lies in both intervals."""
        if self.intervals is None:
            return False
        published, fresh = self.intervals
        return published[1] < fresh[0] or fresh[1] < published[0]

    @property
    def deviation(self) -> float | None:
        """The largest difference of two numbers, relative to the larger one; None if they are not as many numbers."""
        pairs = _pairs(self.published, self.fresh)
        return None if pairs is None else max((_relative(before, now) for before, now in pairs), default=0.0)


@dataclass(frozen=True)
class Reproduction:
    """All that was compared, and a sentence for each file that could not be."""

    figures: tuple[Compared, ...]
    outputs: tuple[Compared, ...]
    faults: tuple[str, ...]

    @cached_property
    def unlike(self) -> tuple[Compared, ...]:
        """Everything that is not as before, the strictest kind first."""
        found = [compared for compared in (*self.outputs, *self.figures) if not compared.as_before]
        return tuple(sorted(found, key=lambda compared: list(Kind).index(compared.kind)))

    @property
    def reproduced(self) -> bool:
        """True if the fresh run is the published one again."""
        return not self.unlike and not self.faults


def reproduction(files: Iterable[str], outputs: Mapping[str, Kind], published: Run, fresh: Run) -> Reproduction:
    """Compare two runs: the results files at these paths figure by figure, the outputs of these kinds by digest."""
    figures: list[Compared] = []
    faults: list[str] = []
    for file in files:
        try:
            kind, before = _document(file, published)
            kind, now = _document(file, fresh)
        except RLFlowError as error:
            faults.append(str(error))
        else:
            figures += _compared(file, schemas.top(kind), before, now)
    digests = [_output(path, kind, published, fresh) for path, kind in outputs.items()]
    return Reproduction(tuple(figures), tuple(digests), tuple(faults))


def _document(file: str, run: Run) -> tuple[Any, Any]:
    """The file's type, and the document. Raises RLFlowError if it is missing or does not follow its type."""
    kind, text = type_of(Path(file), DOCUMENTS), run.text(file)
    if kind is None:
        raise InputError(f"{file}: no type of documents belongs to a results file of this path")
    if text is None:
        raise InputError(f"{file}: {run.name} has no such file")
    try:
        document = parsed(text)
        schemas.validate(kind, document)
    except (ValueError, RLFlowError) as error:
        raise RLFlowError(f"{file} of {run.name}: {error}") from error
    return kind, document


def _output(path: str, kind: Kind, published: Run, fresh: Run) -> Compared:
    """Digests tell equal from unequal and nothing between: of what need not be equal, both runs need have some."""
    before, now = published.digests.get(path), fresh.digests.get(path)
    as_before = None not in (before, now) and (kind is not Kind.EQUAL or before == now)
    return Compared(path, "", kind, before, now, as_before)


def _compared(
    file: str, place: Place, published: Any, fresh: Any, intervals: tuple[Interval, Interval] | None = None
) -> Iterator[Compared]:
    """Every figure below a place; a list of numbers is one figure, and so is all that only one run has there."""
    before, now = _children(published), _children(fresh)
    if before is None or now is None:
        kind = place.kind or Kind.EQUAL
        nothing = [value is None for value in (published, fresh)]
        as_before = all(nothing) if any(nothing) else _AS_BEFORE[kind](published, fresh)
        yield Compared(file, place.path, kind, published, fresh, as_before, intervals)
        return
    for key in before | now:
        interval = f"{key}_ci95"
        both = (before[interval], now[interval]) if interval in before and interval in now else None
        yield from _compared(file, place.child(key), before.get(key), now.get(key), both)


def _children(document: Any) -> dict[Any, Any] | None:
    """The parts of a document by key or index; None if it is a figure."""
    if isinstance(document, dict):
        return document
    if isinstance(document, list) and any(isinstance(entry, dict | list) for entry in document):
        return dict(enumerate(document))
    return None


def _alike_in_digits(published: Any, fresh: Any) -> bool:
    pairs = _pairs(published, fresh)
    return published == fresh if pairs is None else all(_close(before, now) for before, now in pairs)


def _close(before: float, now: float) -> bool:
    """Equal up to rounding; integers are not rounded."""
    if isinstance(before, int) and isinstance(now, int):
        return before == now
    return abs(before - now) <= ABSOLUTE + RELATIVE * max(abs(before), abs(now))


_AS_BEFORE: dict[Kind, Callable[[Any, Any], bool]] = {
    Kind.EQUAL: operator.eq,
    Kind.DIGITS: _alike_in_digits,
    Kind.TIMING: lambda published, fresh: True,
}


def _pairs(published: Any, fresh: Any) -> list[tuple[float, float]] | None:
    """The numbers of two figures side by side; None if they are not numbers, or not as many."""
    before, now = (value if isinstance(value, list) else [value] for value in (published, fresh))
    numbers = all(isinstance(value, int | float) for value in (*before, *now))
    return list(zip(before, now, strict=True)) if numbers and len(before) == len(now) else None


def _relative(before: float, now: float) -> float:
    return abs(before - now) / max(abs(before), abs(now)) if before != now else 0.0
