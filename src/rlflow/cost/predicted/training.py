"""Learning a price model from measured regions.

    model = learn(examples, config, fit_trees)          # what it takes to make a PriceModel

`fit_trees` is a function that boosts trees: the library depends on no such package, and its users need none.

Invariant: equal examples in the same order give equal models, as far as `fit_trees` does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rlflow.cost.border_reorders import ReorderConfig, reorder_ms
from rlflow.cost.predicted import physics
from rlflow.cost.predicted.features import FeatureReader, Features
from rlflow.cost.predicted.noise import Noise
from rlflow.cost.predicted.price_model import Description, PriceModel, assembled, log_ratio, row
from rlflow.cost.region_record import RegionRecord
from rlflow.errors import InputError
from rlflow.onnx_io.tree_ensemble import Tree


@dataclass(frozen=True)
class LearningConfig:
    """`least_regions` is how many regions must have a gram for the trees to know it.

    `model_error` is the relative error that a model has where measurements have none: it keeps the weights of precise
    examples finite.
    """

    least_regions: int = 10
    model_error: float = 0.05


@dataclass(frozen=True)
class Example:
    """A measured region: its features, and its milliseconds at the pace that all examples share.

    Without those of reorders between layouts, which it has as a model by itself, and a graph has only at its borders.
    """

    signature: str
    features: Features
    ms: float
    family: str


@dataclass(frozen=True)
class Machine:
    """The machine at the pace of the examples: milliseconds of the probe and of a region of views, and its reorders."""

    probe_ms: float
    view_ms: float
    reorders: ReorderConfig


@dataclass(frozen=True)
class Table:
    """Examples as the trees see them: (examples, columns) float32, (examples,) targets and weights."""

    rows: np.ndarray
    targets: np.ndarray
    weights: np.ndarray


@dataclass(frozen=True)
class Forest:
    """Boosted trees and the number that they start from."""

    trees: Sequence[Tree]
    base: float


FitTrees = Callable[[Table], Forest]


@dataclass(frozen=True)
class Learned:
    """A price model before it is written."""

    description: Description
    forest: Forest

    def model(self) -> PriceModel:
        """Return the model as ONNX Runtime runs it."""
        return assembled(self.description, self.forest.trees, self.forest.base)

    def with_accuracy(self, accuracy: Mapping[str, Any]) -> Learned:
        """Return the same with what is known of its accuracy."""
        return replace(self, description=replace(self.description, accuracy=accuracy))


def examples_of(records: Iterable[RegionRecord], reorders: ReorderConfig) -> Iterator[Example]:
    """Yield measured regions as examples."""
    reader = FeatureReader()
    for record in records:
        features = reader.features(record.graph, record.graph.order)
        ms = max(0.0, record.ms - reorder_ms(record.graph, reorders))
        yield Example(record.signature, features, ms, record.family)


def learn(
    examples: Sequence[Example],
    machine: Machine,
    noise: Noise,
    config: LearningConfig,
    fit_trees: FitTrees,
) -> Learned:
    """Fit physics to the examples, and trees to what physics leaves. `InputError` if there are no examples."""
    if not examples:
        raise InputError("there are no measured regions to learn prices from: gather some by `make study NAME=prices`")
    ms = [e.ms for e in examples]
    work = [physics.terms(e.features) for e in examples]
    coefficients = physics.fit(work, ms)
    description = Description(
        grams=_known_grams(examples, config.least_regions),
        physics=coefficients,
        ranges=_ranges(examples),
        view_ms=machine.view_ms,
        probe_ms=machine.probe_ms,
        reorders=machine.reorders,
        trained_on=_counted(examples),
        accuracy={},
    )
    targets = [log_ratio(m, physics.milliseconds(coefficients, w)) for m, w in zip(ms, work, strict=True)]
    errors = [(noise.sigma_ms(m) / max(m, noise.us / 1e3)) ** 2 + config.model_error**2 for m in ms]
    table = Table(
        np.stack([row(e.features, description) for e in examples]),
        np.array(targets),
        min(errors) / np.array(errors),
    )
    return Learned(description, fit_trees(table))


def _known_grams(examples: Sequence[Example], least_regions: int) -> tuple[str, ...]:
    regions = Counter(gram for e in examples for gram in e.features.grams)
    return tuple(sorted(gram for gram, count in regions.items() if count >= least_regions))


def _ranges(examples: Sequence[Example]) -> dict[str, tuple[float, float]]:
    numbers = [e.features.numbers for e in examples]
    return {name: (min(n[name] for n in numbers), max(n[name] for n in numbers)) for name in numbers[0]}


def _counted(examples: Sequence[Example]) -> Mapping[str, Any]:
    families = Counter(e.family for e in examples)
    return {"regions": len(examples), "families": dict(sorted(families.items()))}
