"""The time that a fragment of a graph (a node or a few) would take inside a whole model.

    time_fragment(model, setting="as_written").ms

is the mean over a few sessions of their fastest run, less the cost of entering and leaving the runtime, which a model
pays once. The cost of launching a node is paid by each node and stays in the price.

*Cold weights, warm activations* (docs/measurements.md, 4). Inside a model, weights come from memory, since all other
weights passed through the caches since their last use, while activations were written and the same operators ran with
other weights a moment ago. So before each timed run a buffer as large as the weights of a large model is written,
then a twin of the session is run, which has weights of its own and warms the code, then the inputs and outputs are
touched.

*Trailing views are launches.* The fragment is timed as the runtime fuses it, without the views at its end
(`rlflow.runtime.timing.trailing_views`), each of which is charged as one launch.

*A probe makes prices comparable.* A machine has slow minutes (4 to 8 % on a virtual one, now and then 60 %), and a
price list takes many minutes. So a probe, always the same product, is timed between the runs of the fragment, and
prices are scaled by its time. That makes up for a slower processor, not for caches that others fill: callers look at
`FragmentTiming.probe_ms`, and time again where the probe was slow.

*Outputs are allocated beforehand* (IOBinding): a plain run copies each output into a fresh NumPy array, which costs
more (page faults, a copy) than many of the nodes that are to be priced.

*Noise only ever adds time*, and a spoilt price is multiplied by the number of layers that it stands for. So a run on
one thread is timed by the processor time of that thread, which stands still while the scheduler runs somebody else; a
run that was interrupted lost its caches and is repeated; and the fastest run counts, not the median. Measured on the
sum of the prices of a layer of BERT-Base, other processes keeping both cores busy against none: wall time, median +
126 %, fastest + 52 %; processor time under an even heavier load, median + 6 %, lower quartile + 6 %, fastest + 4 %. On
a quiet machine all of these agree within 2 %. Prices below 0.1 ms still rose by half and more under load: take prices
on a quiet machine.
"""

import math
import resource
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from statistics import fmean
from typing import NamedTuple

import numpy as np
import onnxruntime as ort
from onnx import ModelProto, TensorProto, helper, numpy_helper

from rlflow.errors import InputError, RLFlowError
from rlflow.runtime.inputs import draw_inputs, symbolic_dimensions
from rlflow.runtime.session import Setting, fused_model, open_session, run
from rlflow.runtime.timing.trailing_views import without_last_views

# Incremented whenever the protocol changes, so that prices of different protocols are never mixed.
PROTOCOL_VERSION = 4
# On a processor with a last-level cache of 480 MB, two Gemms of BERT-Base take 0.84 and 3.5 ms alone after 48 MB were
# written, 0.97 and 4.05 ms after 256 MB, the same after 448 MB and 700 MB, and 1.00 and 4.14 ms inside the model.
EVICTION_BYTES = 256_000_000
MINIMUM_REPETITIONS = 3
_OVERHEAD_REPETITIONS = 25
_CHAINED = 64
# Equal sessions differ for as long as they live, by where their memory lies: by 2 % if a fragment takes 9 ms, by 10 to
# 15 % if it takes half a millisecond. Over eight fragments of BERT-Base, the error of the mean of six sessions with two
# runs each was three quarters of that of three sessions with four runs each (for one of them it was larger).
_SESSIONS = 6
# Each session holds the weights, so that fragments with large ones get fewer.
_LARGE_BYTES = 100_000_000
_SESSIONS_IF_LARGE = 2
# A run that lost its processor is repeated, up to this multiple of the repetitions.
_MOST_ATTEMPTS = 3


@dataclass(frozen=True)
class FragmentTiming:
    """Milliseconds that a fragment adds to a model that contains it, at least 0, and those of the probe beside it."""

    ms: float
    probe_ms: float

    def at_pace(self, probe_ms: float) -> float:
        """Return the milliseconds of the fragment on a machine on which the probe takes `probe_ms`."""
        return self.ms * probe_ms / self.probe_ms


def time_fragment(
    model: ModelProto,
    *,
    setting: Setting,
    repetitions: int = 10,
    threads: int = 1,
    seed: int = 0,
    time_cap_s: float | None = None,
    dimensions: Mapping[str, int] | None = None,
) -> FragmentTiming:
    """Measure the time that `model` adds to a model that contains it.

    Inputs are drawn by `draw_inputs` from `seed`. `repetitions` runs are timed, fewer (but at least 3) once
    `time_cap_s` seconds have passed. The session is not kept. `dimensions` gives symbolic dimensions their sizes;
    the model need not have all of them.

    Raises `InputError` when `repetitions` is below 1, `RLFlowError` when the runtime refuses the fragment.
    """
    if repetitions < 1:
        raise InputError(f"repetitions is {repetitions}; at least 1 run must be timed")

    fused, views = without_last_views(fused_model(model, setting))
    own = set(symbolic_dimensions(model))
    sizes = {name: size for name, size in (dimensions or {}).items() if name in own}
    inputs = draw_inputs(model, np.random.default_rng(seed), sizes)

    fastest = _fastest(fused, inputs, threads, repetitions, time_cap_s)
    # Views that were taken off cost a launch each; entering and leaving the runtime is the model's cost, not theirs.
    ns = fastest.ns + views * launch_ns(threads) - run_overhead_ns(threads)
    return FragmentTiming(max(0.0, ns) / 1e6, fastest.probe_ns / 1e6)


@cache
def run_overhead_ns(threads: int) -> float:
    """Return the nanoseconds of a run of a session without nodes, measured once a process."""
    return _chain_ns(0, threads)


@cache
def launch_ns(threads: int) -> float:
    """Return the nanoseconds of the launch of a node that does nothing, measured once a process."""
    return max(0.0, _chain_ns(_CHAINED, threads) - run_overhead_ns(threads)) / _CHAINED


def _chain_ns(length: int, threads: int) -> float:
    """Measure a run of `length` nodes, one after another, that each view one element, in nanoseconds."""
    nodes = [helper.make_node("Flatten", [f"x{i}"], [f"x{i + 1}"]) for i in range(length)]
    value, result = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 1]) for name in ("x0", f"x{length}"))
    graph = helper.make_graph(nodes, "chain", [value], [result])
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)])
    return _fastest(model, {"x0": np.ones((1, 1), dtype=np.float32)}, threads, _OVERHEAD_REPETITIONS, None).ns


class _BoundRun:
    """A session with fixed buffers for its inputs and outputs; a first, unbound run tells the shapes of the outputs."""

    def __init__(self, session: ort.InferenceSession, inputs: dict[str, np.ndarray]) -> None:
        self._session = session
        self._binding = session.io_binding()
        self.activations: list[np.ndarray] = []
        for name, value in inputs.items():
            self._binding.bind_ortvalue_input(name, self._shared(value))
        for name, value in run(session, inputs).items():
            if isinstance(value, np.ndarray) and value.dtype != object:
                self._binding.bind_ortvalue_output(name, self._shared(value))
            else:
                self._binding.bind_output(name)

    def _shared(self, array: np.ndarray) -> ort.OrtValue:
        self.activations.append(array)
        return ort.OrtValue.ortvalue_from_numpy(array)

    def __call__(self) -> None:
        try:
            self._session.run_with_iobinding(self._binding)
        except Exception as error:  # such as an output whose size is not the declared one: unbound runs ignore that
            reason = " ".join(str(error).split())
            raise RLFlowError(f"ONNX Runtime could not run the fragment in fixed buffers: {reason}") from error

    def touch(self) -> None:
        """Bring all inputs and outputs into the caches."""
        for array in self.activations:
            array.reshape(-1).view(np.uint8).max(initial=0)


class _Run(NamedTuple):
    """A run in one of several equal sessions: nanoseconds, and whether it had the processor all the time."""

    session: int
    ns: int
    undisturbed: bool


class _Fastest(NamedTuple):
    """Nanoseconds of the fragment and of the probe beside it."""

    ns: float
    probe_ns: float


def _fastest(
    model: ModelProto, inputs: dict[str, np.ndarray], threads: int, repetitions: int, time_cap_s: float | None
) -> _Fastest:
    """Time a model and the probe in turns until `repetitions` runs of the model were undisturbed, or time is up."""
    count = _SESSIONS if model.ByteSize() < _LARGE_BYTES else _SESSIONS_IF_LARGE
    sessions = [_BoundRun(open_session(model, "as_written", threads), inputs) for _ in range(count)]
    probes = _probes(threads)
    for session in sessions:
        session()

    deadline = math.inf if time_cap_s is None else time.monotonic() + time_cap_s
    runs: list[_Run] = []
    probed: list[_Run] = []
    for attempt in range(_MOST_ATTEMPTS * repetitions):
        enough = sum(r.undisturbed for r in runs) == repetitions
        if enough or (attempt >= MINIMUM_REPETITIONS and time.monotonic() >= deadline):
            break

        _evict()
        runs.append(_timed(sessions, attempt % count, threads))
        probed.append(_timed(probes, attempt % len(probes), threads))
    return _Fastest(_mean_of_fastest(runs), _mean_of_fastest(probed))


def _timed(sessions: list[_BoundRun], turn: int, threads: int) -> _Run:
    """Time a run of one session right after a run of its twin, which warms the code and not the weights."""
    clock = time.thread_time_ns if threads == 1 else time.perf_counter_ns
    sessions[turn - 1]()
    sessions[turn].touch()
    switches = _preemptions()
    start = clock()
    sessions[turn]()
    elapsed = clock() - start
    return _Run(turn, elapsed, _preemptions() == switches)


def _mean_of_fastest(runs: list[_Run]) -> float:
    """Return the mean over sessions of their fastest run, of undisturbed ones if the session has any."""
    fastest = []
    for session in {r.session for r in runs}:
        own = [r for r in runs if r.session == session]
        undisturbed = [r for r in own if r.undisturbed]
        fastest.append(min(r.ns for r in undisturbed or own))
    return fmean(fastest)


@cache
def _probes(threads: int) -> list[_BoundRun]:
    """Open the sessions of the probe, a matrix product of BERT-Base: (128, 768) by (768, 768)."""
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((128, 768), (768, 768)))
    value, result = (helper.make_tensor_value_info(name, TensorProto.FLOAT, x.shape) for name in "xy")
    product = helper.make_node("MatMul", ["x", "w"], ["y"])
    graph = helper.make_graph([product], "probe", [value], [result], [numpy_helper.from_array(w, "w")])
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)])
    return [_BoundRun(open_session(model, "as_written", threads), {"x": x}) for _ in range(_SESSIONS)]


def _preemptions() -> int:
    """Count how often the scheduler has taken the processor from this thread so far."""
    # Outside Linux only the whole process is counted, so that a few more runs are repeated.
    return resource.getrusage(getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF)).ru_nivcsw


@cache
def _eviction_buffer() -> np.ndarray:
    return np.zeros(EVICTION_BYTES // 8, dtype=np.int64)


def _evict() -> None:
    # Read and write: a plain fill may bypass the caches (non-temporal stores) and so leave them as they are.
    np.add(_eviction_buffer(), 1, out=_eviction_buffer())
