"""A fragment of a graph (a node or a few) that is ready to be run as it would run inside a whole model.

    fragment = prepare(model, setting="as_written", sessions=3)
    evict(EVICTION_BYTES)
    timed(fragment, turn=0).ns                  # one run, of the first session

*Cold weights, warm activations* (docs/measurements.md, 4). Inside a model, weights come from memory, since all other
weights passed through the caches since their last use, while activations were written and the same operators ran with
other weights a moment ago. So before each round of timed runs a buffer as large as the weights of a large model is
written. Then, right before a session is timed, its twins are run, which have weights of their own.

*All but the weights is shared.* The twins read and write the same inputs and outputs, and what is computed on the way
lies in one arena, as the activations of a whole model do. Otherwise a twin would warm the code alone: the regions of
MobileNetV2, whose convolutions bring images into the blocked layout and back, took twice as long as the model.

*Trailing views are launches.* A fragment is run as the runtime fuses it, without the views at its end
(`rlflow.runtime.timing.trailing_views`), of which only the number is kept.

*Outputs are allocated beforehand* (IOBinding): a plain run copies each output into a fresh NumPy array, which costs
more (page faults, a copy) than many of the nodes that are to be priced.

*Noise only ever adds time.* A run on one thread is timed by the processor time of that thread, which stands still while
the scheduler runs somebody else; a run that was interrupted lost its caches, and says so. Measured on the sum of the
prices of a layer of BERT-Base, other processes keeping both cores busy against none: wall time, median + 126 %, fastest
+ 52 %; processor time under an even heavier load, median + 6 %, lower quartile + 6 %, fastest + 4 %. On a quiet machine
all of these agree within 2 %. Prices below 0.1 ms still rose by half and more under load: take prices on a quiet
machine.
"""

import resource
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import cycle, islice
from typing import Any, NamedTuple

import numpy as np
import onnxruntime as ort
from onnx import ModelProto

from rlflow.errors import RLFlowError
from rlflow.runtime.inputs import draw_inputs, symbolic_dimensions
from rlflow.runtime.session import Setting, fused_model, open_session, run
from rlflow.runtime.timing.clock import clock_ns
from rlflow.runtime.timing.trailing_views import without_last_views

# On a processor with a last-level cache of 480 MB, two Gemms of BERT-Base take 0.84 and 3.5 ms alone after 48 MB were
# written, 0.97 and 4.05 ms after 256 MB, the same after 448 MB and 700 MB, and 1.00 and 4.14 ms inside the model.
EVICTION_BYTES = 256_000_000

# Weights are not in the arena, where the next session's would take the place of those that were evicted.
_IN_SHARED_ARENA = {"session.use_env_allocators": "1", "session.use_device_allocator_for_initializers": "1"}
_AS_REQUESTED = 1
# A cache takes in what is used again and again: after one run of a twin, MobileNetV2's regions were 38 % dearer than
# inside the model, after two 12 %, after four 5 %, after six 2 %. Of long runs two do.
_LEAST_TWIN_RUNS, _MOST_TWIN_RUNS = 2, 5
_TWINS_NS = 20_000_000

_MASKED_SCORE = -1e4


class BoundRun:
    """A session with fixed buffers for its inputs and outputs; outputs without one are allocated in each run."""

    def __init__(self, session: ort.InferenceSession, buffers: Mapping[str, ort.OrtValue]) -> None:
        self.buffers = buffers  # which hold the memory that the runtime only points to
        self._session = session
        self._binding = session.io_binding()
        for value in session.get_inputs():
            self._binding.bind_ortvalue_input(value.name, buffers[value.name])
        for value in session.get_outputs():
            if value.name in buffers:
                self._binding.bind_ortvalue_output(value.name, buffers[value.name])
            else:
                self._binding.bind_output(value.name)

    def __call__(self) -> None:
        try:
            self._session.run_with_iobinding(self._binding)
        except Exception as error:  # such as an output whose size is not the declared one: unbound runs ignore that
            reason = " ".join(str(error).split())
            raise RLFlowError(f"ONNX Runtime could not run the fragment in fixed buffers: {reason}") from error


@dataclass(frozen=True)
class Fragment:
    """Equal sessions of a fragment, each of which has run once, and the number of views that were taken off its end."""

    sessions: Sequence[BoundRun]
    views: int
    threads: int


class Run(NamedTuple):
    """A run in one of the sessions: nanoseconds, and whether it had processor and clock all the time."""

    session: int
    ns: int
    undisturbed: bool


def prepare(
    model: ModelProto,
    *,
    setting: Setting,
    sessions: int,
    threads: int = 1,
    seed: int = 0,
    dimensions: Mapping[str, int] | None = None,
) -> Fragment:
    """Open sessions of `model` as the runtime fuses it, without its last views.

    Inputs are drawn by `draw_inputs` from `seed`, those of a Softmax as attention reads them. `dimensions` gives
    symbolic dimensions their sizes; the model need not have all of them. Raises `RLFlowError` when the runtime refuses
    the model.
    """
    own = set(symbolic_dimensions(model))
    sizes = {name: size for name, size in (dimensions or {}).items() if name in own}
    inputs = draw_inputs(model, np.random.default_rng(seed), sizes)
    fused, views = without_last_views(fused_model(model, setting))
    return prepare_as_is(fused, _half_masked(model, inputs), sessions=sessions, threads=threads, views=views)


def _half_masked(model: ModelProto, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Mask the second half of each row that a Softmax reads.

    Behind a mask, which most attention has, ONNX Runtime takes eight times as long over a Softmax, since what is masked
    becomes numbers that are too small for the processor's fast path.
    """
    scores = {node.input[0] for node in model.graph.node if node.op_type == "Softmax"}
    masked = {name: np.array(value) for name, value in inputs.items() if name in scores and value.ndim}
    for value in masked.values():
        value[..., value.shape[-1] // 2 :] += _MASKED_SCORE
    return {**inputs, **masked}


def prepare_as_is(
    model: ModelProto, inputs: Mapping[str, np.ndarray], *, sessions: int, threads: int = 1, views: int = 0
) -> Fragment:
    """Open sessions of `model` as it stands. Raises `RLFlowError` when the runtime refuses it."""
    _share_arena()
    opened = [open_session(model, "as_written", threads, entries=_IN_SHARED_ARENA) for _ in range(sessions)]
    buffers = _buffers({**inputs, **run(opened[0], inputs)})  # the first, unbound run tells the shapes of the outputs
    bound = [BoundRun(session, buffers) for session in opened]
    for session in bound:
        session()
    return Fragment(bound, views, threads)


def timed(fragment: Fragment, turn: int) -> Run:
    """Time a run of the session whose turn it is, right after its twins have warmed all but its weights."""
    place = turn % len(fragment.sessions)
    session = fragment.sessions[place]
    twins = [twin for twin in fragment.sessions if twin is not session]
    start = clock_ns(fragment.threads)
    for runs, twin in enumerate(islice(cycle(twins), _MOST_TWIN_RUNS)):
        if runs >= _LEAST_TWIN_RUNS and clock_ns(fragment.threads) - start > _TWINS_NS:
            break
        twin()
    switches = _preemptions()
    start = clock_ns(fragment.threads)
    session()
    elapsed = clock_ns(fragment.threads) - start
    return Run(place, elapsed, elapsed > 0 and _preemptions() == switches)


def evict(size_bytes: int) -> None:
    """Fill the caches with something else: a buffer of this size."""
    # Read and write: a plain fill may bypass the caches (non-temporal stores) and so leave them as they are.
    buffer = _eviction_buffer(size_bytes)
    np.add(buffer, 1, out=buffer)


def _buffers(values: Mapping[str, Any]) -> dict[str, ort.OrtValue]:
    """Return a buffer of each tensor, all its own."""
    tensors = {name: value for name, value in values.items() if isinstance(value, np.ndarray) and value.dtype != object}
    return {name: ort.OrtValue.ortvalue_from_numpy(value) for name, value in tensors.items()}


@cache
def _share_arena() -> None:
    """Make the arena in which all fragments of this process have what they compute on the way."""
    place = ort.OrtMemoryInfo("Cpu", ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, ort.OrtMemType.DEFAULT)
    ort.create_and_register_allocator(place, ort.OrtArenaCfg({"arena_extend_strategy": _AS_REQUESTED}))


@cache
def _eviction_buffer(size_bytes: int) -> np.ndarray:
    return np.zeros(size_bytes // 8, dtype=np.int64)


def _preemptions() -> int:
    """Count how often the scheduler has taken the processor from this thread so far."""
    # Outside Linux only the whole process is counted, so that a few more runs are repeated.
    return resource.getrusage(getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF)).ru_nivcsw
