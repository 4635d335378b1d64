"""ONNX models, and the passes of five libraries that rewrite them: the backends "onnx" and "onnx-contrib".

    backend = OnnxBackend()
    start = backend.load("zoo/bert?layers=2&layer_norm=decomposed")
    after = backend.apply(start.payload, "onnxscript:layer_normalization")

"onnx" keeps to ONNX's own operators, so that what comes out runs anywhere; "onnx-contrib" may also use those of ONNX
Runtime. A pass is called `library:name`. A program is the bytes of a model in normal form (`normal_form`), and whatever
a library makes of it must be one again: valid, with the same inputs and outputs, of the operators that are allowed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from itertools import islice

from onnx import ModelProto

from rlflow.equivalence.compare import compare
from rlflow.errors import InputError
from rlflow.ir.graph import Graph
from rlflow.onnx_io import graph_of
from rlflow.onnx_io.external_data import MESSAGE_LIMIT_BYTES
from rlflow.onnx_io.model_file import brief
from rlflow.passes.backend import Catalogue, Facts, PassError, Program, Source
from rlflow.passes.onnx import dataset
from rlflow.passes.onnx.actions import (
    CONTRIB,
    CONTRIB_PIPELINES,
    PIPELINES,
    SIMPLIFIERS,
    STANDARD,
    Transformation,
)
from rlflow.passes.onnx.facts import facts_of
from rlflow.passes.onnx.normal_form import normal_form, operations_of
from rlflow.passes.onnx.operators import OPERATIONS
from rlflow.passes.onnx.program_key import program_key
from rlflow.passes.onnx.quiet import quiet
from rlflow.runtime.session import fused_model
from rlflow.runtime.timing.latency import latency_rounds

_STANDARD_DOMAINS = ("", "ai.onnx.ml")
_CONTRIB_DOMAINS = (*_STANDARD_DOMAINS, "com.microsoft")
_MOST_REMEMBERED = 50_000


class _Backend:
    """The work of both backends, with the actions and domains of either."""

    def __init__(
        self,
        catalogue: Catalogue,
        actions: Mapping[str, Transformation],
        domains: tuple[str, ...],
    ) -> None:
        self._catalogue, self._actions, self._domains = catalogue, actions, domains
        self._facts: dict[str, Facts] = {}

    def catalogue(self) -> Catalogue:
        """Return the passes and pipelines, the same in every process."""
        return self._catalogue

    def sources(self) -> tuple[Source, ...]:
        """Return the programs of the dataset, which both backends share."""
        return dataset.sources()

    def load(self, source: str | bytes) -> Program:
        """Read a model and bring it into normal form.

        Raises `InputError` for an unknown address, a file that is no model, or a model that is not valid, has operators
        that the backend does not admit, is too large for one message, or has weights in files that are not there.
        """
        with quiet():
            model = dataset.read(source)
        where = source if isinstance(source, str) else f"the model of {len(source)} bytes"
        if model.ByteSize() > MESSAGE_LIMIT_BYTES:
            raise InputError(f"{where} has more than 2 GB, which no pass can read: choose a smaller model")
        if any(tensor.external_data for tensor in model.graph.initializer):
            raise InputError(f"{where} has weights in other files: give the path of the model, or write them into it")
        if not model.opset_import or not model.graph.node:
            raise InputError(f"{where} is not an ONNX model: it has no nodes or names no opset")
        try:
            with quiet():
                return self._program(normal_form(model, domains=self._domains))
        except Exception as error:
            raise InputError(f"{where} cannot be brought into normal form: {brief(error)}") from error

    def apply(self, program: bytes, name: str) -> Program:
        """Run a pass or a pipeline on a program that is left as it is.

        Raises `PassError` if the library fails or makes something that is no program of this backend.
        """
        transformation = self._transformation(name)
        model = _model(program)
        try:
            with quiet():
                made = transformation(_model(program))
                return self._program(normal_form(made, interface_of=model, domains=self._domains))
        except Exception as error:
            raise PassError(f"{name} cannot be applied here: {brief(error)}") from error

    def graph(self, program: bytes) -> Graph:
        """Return the program as a graph of `rlflow.ir`."""
        return graph_of(_model(program))

    def check(self, original: bytes, program: bytes, *, seed: int) -> str:
        """Run both as they are written, on inputs drawn from `seed`; return how they differ, or ""."""
        report = compare(_model(original), _model(program), draws=2, seed=seed, setting="as_written")
        return "" if report.equivalent else report.summary

    def compiled_operations(self, program: bytes) -> int:
        """Return how many nodes ONNX Runtime is left with when all its optimisations are on."""
        return sum(1 for _ in operations_of(fused_model(_model(program)).graph))

    def times_ms(self, programs: Sequence[bytes], *, rounds: int, runs: int, seed: int) -> Mapping[int, list[float]]:
        """Run the programs in turns on one thread, optimised by ONNX Runtime as users have it."""
        models = {str(place): _model(program) for place, program in enumerate(programs)}
        with closing(latency_rounds(models, setting="deployed", runs_per_round=runs, threads=1, seed=seed)) as endless:
            done = list(islice(endless, rounds))
        return {place: [each.times_ms[str(place)] for each in done] for place in range(len(programs))}

    def _transformation(self, name: str) -> Transformation:
        try:
            return self._actions[name]
        except KeyError:
            known = ", ".join((*self._catalogue.pipelines, *self._catalogue.passes))
            raise InputError(
                f"{self._catalogue.name} has no pass or pipeline {name!r}: choose one of {known}"
            ) from None

    def _program(self, model: ModelProto) -> Program:
        key = program_key(model)
        facts = self._facts.get(key)
        if facts is None:
            if len(self._facts) >= _MOST_REMEMBERED:
                self._facts.clear()
            facts = self._facts[key] = facts_of(model, key)
        return Program(model.SerializeToString(), facts)


class OnnxBackend(_Backend):
    """Passes whose results keep to the operators of ONNX itself."""

    def __init__(self) -> None:
        catalogue = Catalogue(
            name="onnx",
            passes=tuple(STANDARD),
            pipelines=tuple(PIPELINES),
            default="ort_basic",
            simplifiers=SIMPLIFIERS,
            chain=("onnxscript", "onnxslim", "onnxoptimizer", "ort_basic"),
            operations=OPERATIONS,
        )
        super().__init__(catalogue, {**STANDARD, **PIPELINES}, _STANDARD_DOMAINS)


class OnnxContribBackend(_Backend):
    """The same passes and those whose results need ONNX Runtime's own operators."""

    def __init__(self) -> None:
        catalogue = Catalogue(
            name="onnx-contrib",
            passes=(*STANDARD, *CONTRIB),
            pipelines=(*PIPELINES, *CONTRIB_PIPELINES),
            default="ort_extended",
            simplifiers=(*SIMPLIFIERS, *CONTRIB),
            chain=("onnxscript", "onnxslim", "onnxoptimizer", "ort_extended"),
            operations=OPERATIONS,
        )
        super().__init__(catalogue, {**STANDARD, **PIPELINES, **CONTRIB, **CONTRIB_PIPELINES}, _CONTRIB_DOMAINS)


def _model(program: bytes) -> ModelProto:
    model = ModelProto()
    model.ParseFromString(program)
    return model
