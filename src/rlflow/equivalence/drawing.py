"""The inputs on which an original is run: drawn so that faults show, and drawn anew where none could.

Sizes of dynamic dimensions are the first at which the model runs. An input of `rlflow.runtime.revealing_inputs` that
the model refuses gives way to an ordinary one. Where all outputs are constant, numbers become larger, then sizes,
before it is said that nothing can be told.

Invariant: what is drawn under a number depends on the seed, that number, the loudness and the sizes alone, so that more
can be added later.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from onnx import ModelProto

from rlflow.equivalence.difference import is_informative
from rlflow.errors import InputError, RLFlowError
from rlflow.ops.use import Use
from rlflow.runtime.input_domains import uses_of
from rlflow.runtime.inputs import DEFAULT_DIMENSION, draw_inputs, symbolic_dimensions
from rlflow.runtime.revealing_inputs import Manner, exceptional_inputs, revealing_inputs
from rlflow.runtime.runtimes import YARDSTICK, OpenModel

# Sizes to try for dynamic dimensions without a value, small ones first; a convolution needs large ones.
_FALLBACK_SIZES = (DEFAULT_DIMENSION, 16, 64, 224)
_LOUDER = (4.0, 32.0, 256.0)
"""By what numbers are multiplied, one after the other, where they make all outputs constant."""

Inputs = dict[str, np.ndarray]
Outputs = dict[str, Any]


@dataclass(frozen=True)
class Sizes:
    """The sizes of dynamic dimensions by name, and of all others."""

    named: Mapping[str, int]
    other: int = DEFAULT_DIMENSION


@dataclass
class Reference:
    """Inputs, and what an original computes of each, with which candidates are compared.

    Its `outputs` in the first setting, by name for each input, are the yardstick; `others` are those in other settings.
    `sizes` are those of dynamic dimensions at which the inputs were drawn, if they were. `accepted` are relative errors
    that may be made in a setting, where these are more than rounding explains.
    """

    inputs: list[Inputs] = field(default_factory=list)
    outputs: list[Outputs] = field(default_factory=list)
    setting: str = YARDSTICK
    others: Mapping[str, list[Outputs]] = field(default_factory=dict)
    sizes: Sizes | None = None
    accepted: Mapping[str, float] = field(default_factory=dict)

    @property
    def settings(self) -> tuple[str, ...]:
        return (self.setting, *self.others)

    def in_setting(self, setting: str) -> list[Outputs]:
        """Return the outputs in one of its settings."""
        return self.outputs if setting == self.setting else self.others[setting]

    def only(self, number: int) -> Reference:
        """Return what is known of one of the inputs."""
        return self._of([number])

    def _of(self, numbers: Sequence[int]) -> Reference:
        inputs, outputs = ([each[number] for number in numbers] for each in (self.inputs, self.outputs))
        others = {setting: [outputs[number] for number in numbers] for setting, outputs in self.others.items()}
        return replace(self, inputs=inputs, outputs=outputs, others=others)

    def add(self, model: OpenModel, inputs: Inputs) -> Outputs:
        """Run the model once more."""
        outputs = model.run(inputs)
        self.inputs.append(inputs)
        self.outputs.append(outputs)
        return outputs

    @property
    def runs(self) -> list[tuple[Inputs, Outputs]]:
        """Inputs with outputs."""
        return list(zip(self.inputs, self.outputs, strict=True))

    @property
    def exceptional(self) -> list[bool]:
        """For each of the inputs, True if it holds a NaN or an infinity."""
        return [any(v.dtype.kind == "f" and not np.isfinite(v).all() for v in each.values()) for each in self.inputs]

    @property
    def ordinary(self) -> Reference:
        """The part on inputs that hold neither: kernels treat these in ways of their own, in each setting another."""
        return self._of([number for number, is_exceptional in enumerate(self.exceptional) if not is_exceptional])

    @property
    def tell(self) -> bool:
        """True if a wrong model would be likely to show."""
        return any(map(is_informative, self.outputs))


@dataclass(frozen=True)
class Drawing:
    """The drawing of inputs of one model from one seed."""

    model: ModelProto
    seed: int = 0

    @cached_property
    def uses(self) -> dict[str, Use]:
        """The uses of the model's values, by name."""
        return uses_of(self.model)

    def runs(
        self,
        session: OpenModel,
        draws: int,
        dimensions: Mapping[str, int],
        end_s: float = math.inf,
        *,
        exceptional: bool,
    ) -> Reference:
        """Run the model on so many inputs, and on exceptional ones if these are asked for.

        After `end_s`, by `time.perf_counter`, nothing is drawn any more but the first. Raises `InputError` when `draws`
        is below 1 or the seed below 0, and `RLFlowError` for a model that runs on no drawn input.
        """
        if draws < 1:
            raise InputError(f"draws is {draws}; equivalence needs at least 1 drawn input")
        if self.seed < 0:
            raise InputError(f"the seed is {self.seed}: give a whole number of 0 or more")
        runs = self._telling_runs(session, draws, dimensions, end_s)
        if exceptional:
            self._add_exceptional(runs, session)
        return runs

    def add(self, runs: Reference, session: OpenModel, number: int, loudness: float = 1.0) -> None:
        """Run the model on the input under a number too; on an ordinary one if it refuses that."""
        manner, own = Manner(self.seed + number, loudness), (self.seed, number, round(loudness))
        assert runs.sizes is not None, "what was not drawn is not drawn further"
        named, other = runs.sizes.named, runs.sizes.other
        sizes: dict[str, Any] = {"dimensions": named, "default_dimension": other, "uses": self.uses}
        try:
            inputs = revealing_inputs(self.model, np.random.default_rng(own), manner, **sizes)
            runs.add(session, inputs)
        except RLFlowError:
            runs.add(session, draw_inputs(self.model, np.random.default_rng(own), **sizes))

    def _telling_runs(self, session: OpenModel, draws: int, dimensions: Mapping[str, int], end_s: float) -> Reference:
        """The first runs that tell something, or else the first ones."""
        free = [name for name in symbolic_dimensions(self.model) if name not in dimensions]
        found: Reference | None = None
        failure: RLFlowError | None = None
        for sizes in _attempts(free, dimensions):
            try:
                runs = self._runs_at(sizes, session, draws, end_s)
            except RLFlowError as error:
                failure = failure or error
                continue
            found = runs if runs.tell else found or runs
            if runs.tell or not free or time.perf_counter() >= end_s:
                break
        if found is None:
            advice = f"; give values to its symbolic dimensions {', '.join(free)}" if free else ""
            raise RLFlowError(f"the original model runs on no drawn input{advice}: {failure}") from failure
        return found

    def _runs_at(self, sizes: Sizes, session: OpenModel, draws: int, end_s: float) -> Reference:
        """The same at these sizes, where larger numbers may tell what ordinary ones do not."""
        first: Reference | None = None
        for loudness in (1.0, *_LOUDER):
            runs = Reference(sizes=sizes)
            for number in range(draws):
                self.add(runs, session, number, loudness)
                if time.perf_counter() >= end_s:
                    break
            first = first or runs
            if runs.tell or time.perf_counter() >= end_s:
                return runs
        return first or runs

    def _add_exceptional(self, runs: Reference, session: OpenModel) -> None:
        """Make them of the first ordinary ones, and keep those on which the model runs and tells something."""
        first = next((k for k in range(len(runs.inputs)) if not Manner(self.seed + k).is_stray), 0)
        for inputs in exceptional_inputs(
            runs.inputs[first], np.random.default_rng((self.seed, len(runs.inputs))), self.uses
        ):
            try:
                outputs = session.run(inputs)
            except RLFlowError:
                continue
            if is_informative(outputs):
                runs.inputs.append(inputs)
                runs.outputs.append(outputs)


def _attempts(free: list[str], dimensions: Mapping[str, int]) -> Iterator[Sizes]:
    """Sizes of the dynamic dimensions that are free, different ones first so that swapped axes show."""
    yield Sizes({**dimensions, **{name: size for size, name in enumerate(free, start=DEFAULT_DIMENSION)}})
    for size in _FALLBACK_SIZES:
        yield Sizes({**dimensions, **dict.fromkeys(free, size)}, size)
