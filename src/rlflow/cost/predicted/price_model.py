"""The price model that ships: physics of each processor, corrected by trees that ONNX Runtime runs.

    model = load()
    place = Place(model.description.processors[name], working_set_mb=440.0)
    model.ms([reader.features(graph, region) for region in regions], place)

Physics tells how time grows with work, for each processor by itself; the trees tell by what factor regions of this kind
differ from that, for all processors together. The trees are an ONNX model, so that a user needs no library of boosted
trees; beside it lies a JSON file with the grams that the trees know, the processors with their coefficients of physics,
the ranges of the numbers, and what all of it was learned from.

Invariant: the same features give the same price on every machine, alone or in a batch. Trees compare float32 numbers
and add up leaves in one thread, and what is left of the differences between libraries of mathematics is rounded away.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from hashlib import sha256
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rlflow.atomic_file import written_whole
from rlflow.cost.border_reorders import ReorderConfig
from rlflow.cost.predicted import physics
from rlflow.cost.predicted.features import NUMBERS, Features
from rlflow.errors import PriceError
from rlflow.onnx_io.model_file import load_model
from rlflow.onnx_io.saving import save_model
from rlflow.onnx_io.tree_ensemble import Tree, tree_ensemble
from rlflow.runtime.session import Session, open_session, run

VERSION = 6  # of the features and terms; raised whenever these mean something else
DESCRIPTION, TREES = "price_model.json", "price_model.onnx"
_SMALL_MS = 0.001  # is added to both sides of a ratio: below it, differences are noise
_DIGITS = 6  # of milliseconds: a price is rounded to nanoseconds


_COLD_MB = 1e3
"""Megabytes that no cache holds: of a model of which it is not known how many a run touches."""
_TRAITS = ("l2_mb", "cache_mb", "avx512", "amx", "threads", "bandwidth_gb_s")

Steps = Sequence[tuple[float, float]]
"""Milliseconds up to so many megabytes: (megabytes, milliseconds), which ascend by megabytes."""


@dataclass(frozen=True)
class Processor:
    """A processor that prices were learned on, as sessions of so many threads use it.

    - `traits`: megabytes of the cache of a core and of the last one, instructions, threads and bandwidth, by the names
      of `_TRAITS`.
    - `physics`: milliseconds for one unit of each term.
    - `view_ms`: milliseconds of a region of mere views, in models whose runs touch up to so many megabytes; the last
      step holds for larger ones as well. A view does no work, but its code and its shapes have left the caches by then.
    - `reorders`: those of the blocked layout, without which regions are priced (`cost/region_cost.py`).
    """

    traits: Mapping[str, float]
    physics: Mapping[str, float]
    view_ms: Steps
    reorders: ReorderConfig


class Place(NamedTuple):
    """The place where a region runs: a processor, and a model whose runs touch so many megabytes."""

    processor: Processor
    working_set_mb: float

    @classmethod
    def of(cls, processor: Processor, working_set_mb: float | None) -> Place:
        """Weights are cold where it is not known how much a run touches."""
        return cls(processor, _COLD_MB if working_set_mb is None else working_set_mb)

    @property
    def cold(self) -> float:
        """The share of the weights that come from memory: none of those of a model that fills half of the last cache,
        all of one that touches twice as much as that cache holds.
        """
        halves = self.working_set_mb / (self.processor.traits["cache_mb"] / 2)
        return min(1.0, max(0.0, math.log2(halves) / 2)) if halves > 0 else 0.0

    @property
    def view_ms(self) -> float:
        """Milliseconds of a region of mere views."""
        steps = self.processor.view_ms
        return next((ms for up_to_mb, ms in steps if self.working_set_mb <= up_to_mb), steps[-1][1])

    def numbers(self) -> list[float]:
        """Return what trees see of it."""
        return [self.working_set_mb, *(self.processor.traits[name] for name in _TRAITS)]


@dataclass(frozen=True)
class Description:
    """The data beside the trees.

    - `grams`: those that the trees know, in the order of their columns, which come after the numbers.
    - `ranges`: of each number, by its name, the least and the largest that was measured.
    - `processors`: by name; `reference` is the one at whose prices experiments are made, wherever they run.
    - `trained_on`, `accuracy`: for people.
    """

    grams: tuple[str, ...]
    ranges: Mapping[str, tuple[float, float]]
    processors: Mapping[str, Processor]
    reference: str
    trained_on: Mapping[str, Any]
    accuracy: Mapping[str, Any]

    @cached_property
    def columns(self) -> dict[str, int]:
        """The column of each gram."""
        return {gram: len(self.ranges) + place for place, gram in enumerate(self.grams)}


class PriceModel:
    """Prices regions by their features, in milliseconds at the pace of a processor that it has learned from."""

    def __init__(self, description: Description, trees: Session) -> None:
        self.description = description
        self._trees = trees

    def ms(self, regions: Sequence[Features], place: Place) -> list[float]:
        """Return the milliseconds of each region, at least 0.

        Trees have met no region in which whole numbers stand for floats: such a one has the price of physics.
        """
        if not regions:
            return []
        rows = np.stack([row(features, place, self.description) for features in regions])
        logs = run(self._trees, {"x": rows})["y"][:, 0]
        return [
            _corrected(physics_ms(features, place), 0.0 if features.is_quantised else float(log))
            for features, log in zip(regions, logs, strict=True)
        ]

    def strangeness(self, features: Features) -> float:
        """Return how far a region is from what was measured: 0 is within.

        It counts the patterns that were not measured often enough to be learned, and the doublings by which a number
        lies outside the measured range.
        """
        unknown = sum(gram not in self.description.columns for gram in features.grams if not gram.startswith("="))
        return unknown + sum(
            _doublings(value, *self.description.ranges[name]) for name, value in features.numbers.items()
        )


def row(features: Features, place: Place, description: Description) -> np.ndarray:
    """Return (columns,) float32: what the trees see of a region."""
    values = np.zeros(_width(description), dtype=np.float32)
    numbers = features.numbers
    values[: len(numbers)] = [numbers[name] for name in description.ranges]
    for gram, count in features.grams.items():
        column = description.columns.get(gram)
        if column is not None:
            values[column] = count
    work = physics.terms(features, place.cold)
    last = [*place.numbers(), *physics.composition(place.processor.physics, work)]
    values[-len(last) :] = last
    return values


def physics_ms(features: Features, place: Place) -> float:
    """Return what a region would take if its time were the sum of what it does."""
    return physics.milliseconds(place.processor.physics, physics.terms(features, place.cold))


def _width(description: Description) -> int:
    """Return the number of columns: numbers, grams, the place, and of what physics a region's time consists."""
    return len(description.ranges) + len(description.grams) + 1 + len(_TRAITS) + len(physics.TERMS) + 1


def log_ratio(ms: float, physics_ms: float) -> float:
    """Return what the trees learn: the logarithm of the factor by which a time differs from physics."""
    return math.log((ms + _SMALL_MS) / (physics_ms + _SMALL_MS))


def _corrected(physics_ms: float, log: float) -> float:
    return round(max(0.0, (physics_ms + _SMALL_MS) * math.exp(log) - _SMALL_MS), _DIGITS)


def _doublings(value: float, low: float, high: float) -> float:
    if value > high:
        return math.log2((value + 1) / (high + 1))
    return math.log2((low + 1) / (value + 1)) if value < low else 0.0


def assembled(description: Description, trees: Sequence[Tree], base: float) -> PriceModel:
    """Make the price model of these trees as it is after saving and loading."""
    return PriceModel(description, open_session(tree_ensemble(trees, _width(description), base), "deployed"))


def save(folder: Path, description: Description, trees: Sequence[Tree], base: float) -> None:
    """Write the two files of a price model, each whole or not at all; the JSON file names the digest of the other."""
    save_model(tree_ensemble(trees, _width(description), base), folder / TREES)
    content = {"version": VERSION, "trees_sha256": sha256((folder / TREES).read_bytes()).hexdigest()}
    with written_whole(folder / DESCRIPTION) as draft:
        draft.write_text(json.dumps(content | asdict(description), indent=1, allow_nan=False) + "\n", encoding="utf-8")


@cache
def load() -> PriceModel:
    """Return the price model that ships with the library. `PriceError` as `read`."""
    with as_file(files(__package__)) as folder:
        return read(folder)


def read(folder: Path) -> PriceModel:
    """Return the price model in a folder.

    `PriceError` if there is none, or if its files do not belong to each other or to this version of the library.
    """
    try:
        content = json.loads((folder / DESCRIPTION).read_text(encoding="utf-8"))
        digest = sha256((folder / TREES).read_bytes()).hexdigest()
        version, expected = content.pop("version"), content.pop("trees_sha256")
        description = _description(content) if version == VERSION else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        made = "make it with `make study NAME=price_model`"
        raise PriceError(f"there is no price model in {folder} ({error}): {made}") from None
    if digest != expected:
        raise PriceError(f"{folder / TREES} is not the file that {DESCRIPTION} describes: make both again")
    if description is None or _learned_from(description) != {(physics.TERMS, NUMBERS)}:
        raise PriceError(
            f"the price model in {folder} was made for other features than those of this library (version {version}, "
            f"here {VERSION}): make it again with `make study NAME=price_model`"
        )
    return PriceModel(description, open_session(load_model(folder / TREES), "deployed"))


def _learned_from(description: Description) -> set[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Return the names of the terms of each processor's physics, with those of all numbers."""
    return {(tuple(processor.physics), tuple(description.ranges)) for processor in description.processors.values()}


def _description(content: Mapping[str, Any]) -> Description:
    ranges = {name: (float(low), float(high)) for name, (low, high) in content["ranges"].items()}
    processors = {
        name: Processor(
            processor["traits"],
            processor["physics"],
            tuple((float(up_to_mb), float(ms)) for up_to_mb, ms in processor["view_ms"]),
            ReorderConfig(**processor["reorders"]),
        )
        for name, processor in content["processors"].items()
    }
    return Description(**{**content, "grams": tuple(content["grams"]), "ranges": ranges, "processors": processors})
