"""A fragment of a graph (a node or a few) that is ready to be run as it would run inside a whole model.

    fragment = prepare(model, setting="as_written", sessions=3)
    evict(EVICTION_BYTES)
    timed(fragment, turn=0).ns                  # one run, of the first session

*Cold weights, warm activations* (docs/measurements.md, 4). Inside a model, weights come from memory, since all other
weights passed through the caches since their last use, while activations were written and the same operators ran with
other weights a moment ago. So before each round of timed runs a buffer as large as the weights of a large model is
written. Then, right before a session is timed, its twin is run, which has weights of its own and warms the code, and
the inputs and outputs are touched.

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
from typing import NamedTuple

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


class BoundRun:
    """A session with fixed buffers for its inputs and outputs; a first, unbound run tells the shapes of the outputs."""

    def __init__(self, session: ort.InferenceSession, inputs: Mapping[str, np.ndarray]) -> None:
        self._session = session
        self._binding = session.io_binding()
        self._activations: list[np.ndarray] = []
        for name, value in inputs.items():
            self._binding.bind_ortvalue_input(name, self._shared(value))
        for name, value in run(session, inputs).items():
            if isinstance(value, np.ndarray) and value.dtype != object:
                self._binding.bind_ortvalue_output(name, self._shared(value))
            else:
                self._binding.bind_output(name)

    def _shared(self, array: np.ndarray) -> ort.OrtValue:
        self._activations.append(array)
        return ort.OrtValue.ortvalue_from_numpy(array)

    def __call__(self) -> None:
        try:
            self._session.run_with_iobinding(self._binding)
        except Exception as error:  # such as an output whose size is not the declared one: unbound runs ignore that
            reason = " ".join(str(error).split())
            raise RLFlowError(f"ONNX Runtime could not run the fragment in fixed buffers: {reason}") from error

    def touch(self) -> None:
        """Bring all inputs and outputs into the caches."""
        for array in self._activations:
            array.reshape(-1).view(np.uint8).max(initial=0)


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

    Inputs are drawn by `draw_inputs` from `seed`. `dimensions` gives symbolic dimensions their sizes; the model need
    not have all of them. Raises `RLFlowError` when the runtime refuses the model.
    """
    own = set(symbolic_dimensions(model))
    sizes = {name: size for name, size in (dimensions or {}).items() if name in own}
    inputs = draw_inputs(model, np.random.default_rng(seed), sizes)
    fused, views = without_last_views(fused_model(model, setting))
    return prepare_as_is(fused, inputs, sessions=sessions, threads=threads, views=views)


def prepare_as_is(
    model: ModelProto, inputs: Mapping[str, np.ndarray], *, sessions: int, threads: int = 1, views: int = 0
) -> Fragment:
    """Open sessions of `model` as it stands. Raises `RLFlowError` when the runtime refuses it."""
    opened = [BoundRun(open_session(model, "as_written", threads), inputs) for _ in range(sessions)]
    for session in opened:
        session()
    return Fragment(opened, views, threads)


def timed(fragment: Fragment, turn: int) -> Run:
    """Time a run of the session whose turn it is, right after a run of its twin, which warms the code alone."""
    place = turn % len(fragment.sessions)
    session, twin = fragment.sessions[place], fragment.sessions[place - 1]
    twin()
    session.touch()
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


@cache
def _eviction_buffer(size_bytes: int) -> np.ndarray:
    return np.zeros(size_bytes // 8, dtype=np.int64)


def _preemptions() -> int:
    """Count how often the scheduler has taken the processor from this thread so far."""
    # Outside Linux only the whole process is counted, so that a few more runs are repeated.
    return resource.getrusage(getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF)).ru_nivcsw
