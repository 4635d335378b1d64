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

from rlflow.cost.border_reorders import ReorderConfig
from rlflow.cost.predicted import physics
from rlflow.cost.predicted.features import Features
from rlflow.cost.predicted.noise import Noise
from rlflow.cost.predicted.price_model import (
    Description,
    Place,
    PriceModel,
    Processor,
    Steps,
    assembled,
    log_ratio,
    physics_ms,
    row,
)
from rlflow.cost.region_record import GraphRecord
from rlflow.errors import InputError
from rlflow.onnx_io.tree_ensemble import Tree

_QUIET = 0.25
"""Quantile of the times of a region over graphs."""


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
    """A region with its features, and its milliseconds on a processor, in a model whose runs touch so much."""

    signature: str
    features: Features
    ms: float
    processor: str
    working_set_mb: float


@dataclass(frozen=True)
class Machine:
    """A processor before physics is fitted to what was measured on it."""

    traits: Mapping[str, float]
    view_ms: Steps
    reorders: ReorderConfig

    def with_physics(self, coefficients: Mapping[str, float]) -> Processor:
        return Processor(self.traits, coefficients, self.view_ms, self.reorders)


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


def examples_of(regions: Mapping[str, Mapping[str, Features]], graphs: Iterable[GraphRecord]) -> Iterator[Example]:
    """Yield what was measured in these graphs, a region once for each processor and each working set.

    `regions` has, for each processor, the features of regions by their signature. Noise adds time, and the machine was
    slower on some days: of all graphs that have a region, the quietest count.

    `InputError` for a graph of a processor that `regions` has not.
    """
    met: dict[tuple[str, str, float], list[float]] = {}
    for graph in graphs:
        if graph.processor not in regions:
            raise InputError(f"name {graph.processor} among the processors of conf/study/price_model.yaml")
        for signature, time in graph.regions.items():
            met.setdefault((signature, graph.processor, graph.working_set_mb), []).append(time.ms)
    for (signature, processor, working_set_mb), times_ms in met.items():
        ms = float(np.quantile(times_ms, _QUIET))
        yield Example(signature, regions[processor][signature], ms, processor, working_set_mb)


def learn(
    examples: Sequence[Example],
    machines: Mapping[str, Machine],
    reference: str,
    noise: Noise,
    config: LearningConfig,
    fit_trees: FitTrees,
) -> Learned:
    """Fit the physics of each machine to its examples, and trees to what physics leaves.

    `InputError` if there are no examples of a machine.
    """
    processors = {name: machine.with_physics(_physics(examples, name, machine)) for name, machine in machines.items()}
    description = Description(
        grams=_known_grams(examples, config.least_regions),
        ranges=_ranges(examples),
        processors=processors,
        reference=reference,
        trained_on=_counted(examples),
        accuracy={},
    )
    places = [Place(processors[e.processor], e.working_set_mb) for e in examples]
    expected_ms = [physics_ms(e.features, place) for e, place in zip(examples, places, strict=True)]
    errors = [(noise.sigma_ms(e.ms) / max(e.ms, noise.us / 1e3)) ** 2 + config.model_error**2 for e in examples]
    table = Table(
        np.stack([row(e.features, place, description) for e, place in zip(examples, places, strict=True)]),
        np.array([log_ratio(e.ms, ms) for e, ms in zip(examples, expected_ms, strict=True)]),
        min(errors) / np.array(errors),
    )
    return Learned(description, fit_trees(table))


def _physics(examples: Sequence[Example], name: str, machine: Machine) -> Mapping[str, float]:
    own = [e for e in examples if e.processor == name]
    if not own:
        raise InputError(f"there are no measured regions of {name} to learn prices from: `make study NAME=prices`")
    places = [Place(machine.with_physics({}), e.working_set_mb) for e in own]
    work = [physics.terms(e.features, place.cold) for e, place in zip(own, places, strict=True)]
    return physics.fit(work, [e.ms for e in own])


def _known_grams(examples: Sequence[Example], least_regions: int) -> tuple[str, ...]:
    regions = Counter(gram for e in examples for gram in e.features.grams)
    return tuple(sorted(gram for gram, count in regions.items() if count >= least_regions))


def _ranges(examples: Sequence[Example]) -> dict[str, tuple[float, float]]:
    numbers = [e.features.numbers for e in examples]
    return {name: (min(n[name] for n in numbers), max(n[name] for n in numbers)) for name in numbers[0]}


def _counted(examples: Sequence[Example]) -> Mapping[str, Any]:
    processors = Counter(e.processor for e in examples)
    return {"regions": len({e.signature for e in examples}), "times": dict(sorted(processors.items()))}
