"""Does an optimised model compute what the original computes? Decided by running both on drawn inputs.

Tolerance. Exact rewrites reorder floating-point sums, so outputs agree up to rounding only. The error of one
reduction (MatMul, LayerNormalization, Softmax, ...) is a small multiple of the machine epsilon relative to
the largest value; along a path of d reductions, rounding errors of random sign add up like a random walk.
Hence, relative to the largest absolute reference value of an output,

    tolerance = 16 * epsilon * sqrt(1 + d)

where d is the largest number of reductions on a path of the *original* graph (a candidate cannot loosen its
own test) and epsilon belongs to the coarsest float type that the original declares or casts to. Integers and
booleans must agree exactly. An error above the tolerance is a failure, always; between 1 and 100 tolerances
the report says "in doubt", since a badly conditioned model can get there by rounding alone.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, ValueInfoProto

from rlflow.errors import InputError, RLFlowError
from rlflow.runtime.inputs import DEFAULT_DIMENSION, draw_inputs, required_inputs, symbolic_dimensions
from rlflow.runtime.session import Setting, open_session, run, structure_of

TOLERANCE_EPSILONS = 16
DOUBT_FACTOR = 100

_EPSILONS: dict[int, float] = {
    TensorProto.BFLOAT16: 2.0**-7,
    TensorProto.FLOAT16: 2.0**-10,
    TensorProto.FLOAT: 2.0**-23,
    TensorProto.DOUBLE: 2.0**-52,
}
_REDUCTIONS = (
    "Attention AveragePool BatchNormalization Conv ConvTranspose CumSum Einsum FusedConv FusedGemm "
    "FusedMatMul GRU Gemm GlobalAveragePool GroupNormalization InstanceNormalization LRN LSTM "
    "LayerNormalization LogSoftmax LpNormalization MatMul MeanVarianceNormalization MultiHeadAttention "
    "RMSNormalization RNN ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMean ReduceProd "
    "ReduceSum ReduceSumSquare SkipLayerNormalization Softmax Sum "
).split()
_RANDOM = frozenset("Bernoulli Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike".split())
# Sizes to try for symbolic dimensions without a value, small ones first: a convolution needs room.
_FALLBACK_SIZES = (DEFAULT_DIMENSION, 16, 64, 224)


@dataclass(frozen=True)
class EquivalenceReport:
    """The verdict, and how far it can be trusted.

    `max_relative_error` is the largest difference over the largest absolute reference value of the same
    output (infinite when the reference is all zero and the other is not); both errors range over finite
    values of float outputs. A draw is vacuous when every reference output is constant, zero or without a
    finite value: it could not tell a wrong model from a right one. `vacuous_outputs` are those that no draw
    could judge.
    """

    equivalent: bool
    reason: str
    max_absolute_error: float
    max_relative_error: float
    tolerance: float
    draws: int
    non_vacuous_draws: int
    worst_output: str | None = None
    vacuous_outputs: tuple[str, ...] = ()

    @property
    def in_doubt(self) -> bool:
        """Not equivalent, but by so little that rounding in a badly conditioned model could explain it."""
        return not self.equivalent and self.tolerance < self.max_relative_error <= DOUBT_FACTOR * self.tolerance

    @property
    def summary(self) -> str:
        """One sentence for a person."""
        evidence = f"{self.non_vacuous_draws} of {self.draws} draws informative"
        if not self.equivalent:
            doubt = "; rounding in a badly conditioned model could explain so little" if self.in_doubt else ""
            return f"not equivalent: {self.reason}{doubt} ({evidence})"
        return (
            f"equivalent: largest relative error {self.max_relative_error:.1e}, "
            f"tolerance {self.tolerance:.1e} ({evidence})"
        )


@dataclass(frozen=True)
class _Difference:
    """One output of one draw. `problem` is empty when it agrees."""

    output: str
    absolute: float
    relative: float
    informative: bool
    problem: str


def compare(
    original: ModelProto | Path,
    optimised: ModelProto | Path,
    *,
    draws: int = 3,
    seed: int = 0,
    threads: int = 1,
    setting: Setting = "as_written",
    dimensions: Mapping[str, int] | None = None,
) -> EquivalenceReport:
    """Compare signatures (names, order, types and shapes of inputs and outputs), then outputs on `draws`
    drawn inputs.

    Symbolic dimensions without a value in `dimensions` get small values, different ones where the original
    runs with them (so that swapped axes show). Both models run in `setting`. An optimised model that does not
    load or run is not equivalent; an original that does not raises RLFlowError. Raises InputError when
    `draws` is below 1.
    """
    if draws < 1:
        raise InputError(f"draws is {draws}; equivalence needs at least 1 drawn input")
    structure = structure_of(original)
    tolerance = tolerance_of(structure)
    if problem := _signature_problem(structure, structure_of(optimised)):
        return _failure(problem, tolerance, draws)
    reference = open_session(original, setting, threads)
    drawn, expected = _reference_runs(structure, reference, draws, seed, dict(dimensions or {}))
    del reference
    try:
        candidate = open_session(optimised, setting, threads)
        actual = [run(candidate, inputs) for inputs in drawn]
    except RLFlowError as error:
        return _failure(str(error), tolerance, draws)
    return _report([_differences(*pair, tolerance) for pair in zip(expected, actual, strict=True)], tolerance)


def draws_at_random(model: ModelProto) -> bool:
    """Whether an operator draws numbers: ONNX Runtime seeds it by its place, so that any rewrite changes them."""
    return _draws(model.graph)


def _draws(graph: GraphProto) -> bool:
    return any(node.op_type in _RANDOM or any(map(_draws, _bodies(node))) for node in graph.node)


def tolerance_of(model: ModelProto) -> float:
    """Largest relative error that rounding explains, from the model's coarsest float type and its reductions
    in a row.
    """
    return TOLERANCE_EPSILONS * _coarsest_epsilon(model.graph) * math.sqrt(1 + _reduction_depth(model.graph))


def _report(by_draw: list[list[_Difference]], tolerance: float) -> EquivalenceReport:
    every = [difference for draw in by_draw for difference in draw]
    failed = [difference for difference in every if difference.problem]
    worst = max(failed or every, key=lambda difference: difference.relative, default=None)
    informative = {difference.output for difference in every if difference.informative}
    return EquivalenceReport(
        equivalent=not failed,
        reason=worst.problem if worst else "",
        max_absolute_error=max((difference.absolute for difference in every), default=0.0),
        max_relative_error=max((difference.relative for difference in every), default=0.0),
        tolerance=tolerance,
        draws=len(by_draw),
        non_vacuous_draws=sum(any(difference.informative for difference in draw) for draw in by_draw),
        worst_output=worst.output if worst else None,
        vacuous_outputs=tuple(sorted({difference.output for difference in every} - informative)),
    )


def _failure(reason: str, tolerance: float, draws: int) -> EquivalenceReport:
    return EquivalenceReport(False, reason, math.inf, math.inf, tolerance, draws, non_vacuous_draws=0)


def _reference_runs(
    structure: ModelProto, session: ort.InferenceSession, draws: int, seed: int, named: dict[str, int]
) -> tuple[list[dict[str, np.ndarray]], list[dict[str, np.ndarray]]]:
    """Drawn inputs and the original's outputs, under the first sizes of symbolic dimensions with which it
    runs.
    """
    free = [name for name in symbolic_dimensions(structure) if name not in named]
    distinct = {name: size for size, name in enumerate(free, start=DEFAULT_DIMENSION)}
    attempts = [(distinct, DEFAULT_DIMENSION)] + [(dict.fromkeys(free, size), size) for size in _FALLBACK_SIZES]
    failure: RLFlowError | None = None
    for sizes, default in attempts:
        rng = np.random.default_rng(seed)
        try:
            drawn = [draw_inputs(structure, rng, named | sizes, default_dimension=default) for _ in range(draws)]
            return drawn, [run(session, inputs) for inputs in drawn]
        except RLFlowError as error:
            failure = failure or error
    advice = f"; give values to its symbolic dimensions {', '.join(free)}" if free else ""
    raise RLFlowError(f"the original model runs on no drawn input{advice}: {failure}") from failure


def _differences(expected: Mapping[str, Any], actual: Mapping[str, Any], tolerance: float) -> list[_Difference]:
    return [
        _difference(label, left, right, tolerance)
        for name in expected
        for label, left, right in _paired(name, expected[name], actual[name])
    ]


def _paired(name: str, left: Any, right: Any) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Arrays of an output to compare; sequences and maps give one per element."""
    if isinstance(left, dict) and isinstance(right, dict) and left.keys() == right.keys():
        for key in left:
            yield from _paired(f"{name}[{key!r}]", left[key], right[key])
    elif isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        for index, pair in enumerate(zip(left, right, strict=True)):
            yield from _paired(f"{name}[{index}]", *pair)
    else:
        yield name, np.asarray(left), np.asarray(right)


def _difference(output: str, expected: np.ndarray, actual: np.ndarray, tolerance: float) -> _Difference:
    informative = _informative(expected)
    if (expected.dtype, expected.shape) != (actual.dtype, actual.shape):
        problem = f"output {output!r} is {_describe(actual)}, should be {_describe(expected)}"
        return _Difference(output, math.inf, math.inf, informative, problem)
    if expected.dtype.kind != "f":
        return _exact_difference(output, expected, actual, informative)
    left, right = expected.astype(np.float64), actual.astype(np.float64)
    finite = np.isfinite(left)
    if not np.array_equal(left[~finite], right[~finite], equal_nan=True) or not np.isfinite(right[finite]).all():
        problem = f"output {output!r} has NaN or infinity where the original has not, or the other way round"
        return _Difference(output, math.inf, math.inf, informative, problem)
    absolute = float(np.abs(left[finite] - right[finite]).max(initial=0.0))
    scale = float(np.abs(left[finite]).max(initial=0.0))
    relative = absolute / scale if scale else (math.inf if absolute else 0.0)
    problem = f"output {output!r} differs by {relative:.2e} of its largest value, tolerance {tolerance:.2e}"
    return _Difference(output, absolute, relative, informative, problem if relative > tolerance else "")


def _exact_difference(output: str, expected: np.ndarray, actual: np.ndarray, informative: bool) -> _Difference:
    wrong = int((expected != actual).sum())
    problem = f"output {output!r} ({expected.dtype}) differs in {wrong} of {expected.size} elements" if wrong else ""
    error = math.inf if wrong else 0.0
    return _Difference(output, error, error, informative, problem)


def _informative(values: np.ndarray) -> bool:
    """Whether a wrong model would be likely to show: a finite value, and not the same value everywhere."""
    finite = values[np.isfinite(values)] if values.dtype.kind == "f" else values.reshape(-1)
    if finite.size == 0:
        return False
    return bool(finite[0]) if values.size == 1 else bool((finite != finite[0]).any())


def _describe(array: np.ndarray) -> str:
    return f"{array.dtype}{list(array.shape)}"


def _signature_problem(original: ModelProto, optimised: ModelProto) -> str:
    """The first difference in names, order, types or shapes of what is fed and of the outputs, or "".

    Before IR version 4 weights are listed among the inputs, too: nobody feeds them.
    """
    sides = {
        "input": (required_inputs(original), required_inputs(optimised)),
        "output": (original.graph.output, optimised.graph.output),
    }
    for kind, (left, right) in sides.items():
        left_names, right_names = [value.name for value in left], [value.name for value in right]
        if left_names != right_names:
            return f"{kind}s are {right_names}, should be {left_names}"
        for expected, actual in zip(left, right, strict=True):
            if not _same_type(expected.type, actual.type):
                declared, wanted = _type_text(actual), _type_text(expected)
                return f"{kind} {expected.name!r} is declared {declared}, should be {wanted}"
    return ""


def _same_type(expected: TypeProto, actual: TypeProto) -> bool:
    """Equal, except that a dimension which the original leaves open may be known."""
    if expected.WhichOneof("value") != "tensor_type" or actual.WhichOneof("value") != "tensor_type":
        return expected == actual
    left, right = expected.tensor_type, actual.tensor_type
    if left.elem_type != right.elem_type:
        return False
    if not left.HasField("shape"):
        return True
    return len(left.shape.dim) == len(right.shape.dim) and all(
        ours.WhichOneof("value") is None or (ours.dim_value, ours.dim_param) == (theirs.dim_value, theirs.dim_param)
        for ours, theirs in zip(left.shape.dim, right.shape.dim, strict=True)
    )


def _type_text(value: ValueInfoProto) -> str:
    tensor = value.type.tensor_type
    dimensions = [dimension.dim_param or dimension.dim_value or "?" for dimension in tensor.shape.dim]
    return f"{TensorProto.DataType.Name(tensor.elem_type)}{dimensions}"


def _coarsest_epsilon(graph: GraphProto) -> float:
    return max((_EPSILONS[element] for element in _element_types(graph) if element in _EPSILONS), default=0.0)


def _element_types(graph: GraphProto) -> Iterator[int]:
    for value in (*graph.input, *graph.output, *graph.value_info):
        yield value.type.tensor_type.elem_type
    for tensor in graph.initializer:
        yield tensor.data_type
    for node in graph.node:
        yield from (attribute.i for attribute in node.attribute if node.op_type == "Cast" and attribute.name == "to")
        for body in _bodies(node):
            yield from _element_types(body)


def _reduction_depth(graph: GraphProto) -> int:
    """Largest number of reductions on one path; a body counts as if it ran once."""
    depth: dict[str, int] = {}
    for node in graph.node:
        own = (node.op_type in _REDUCTIONS) + sum(_reduction_depth(body) for body in _bodies(node))
        reached = own + max((depth.get(name, 0) for name in node.input), default=0)
        depth |= dict.fromkeys(node.output, reached)
    return max(depth.values(), default=0)


def _bodies(node: NodeProto) -> list[GraphProto]:
    return [body for attribute in node.attribute for body in (attribute.g, *attribute.graphs) if body.node]
