"""The bandwidth of memory, by a pass over more bytes than a core's share of the caches holds.

    bandwidth_gb_s(threads=1)       9.8

It takes about a second, so that it is asked for only where a machine is unknown.
"""

from functools import cache

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper

from rlflow.runtime.session import open_session
from rlflow.runtime.timing.clock import clock_ns, shortest_ns

_ELEMENTS = 32 * 2**20
_RUNS = 5


@cache
def bandwidth_gb_s(threads: int) -> float:
    """Return the gigabytes a second that sessions of so many threads read and write: the best of five runs."""
    session, x = _pass_over_memory(threads)
    y = ort.OrtValue.ortvalue_from_numpy(np.empty_like(x))  # named, since it keeps the array that is written
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", ort.OrtValue.ortvalue_from_numpy(x))
    binding.bind_ortvalue_output("y", y)
    times_ns = []
    for _ in range(1 + _RUNS):
        start = clock_ns(threads)
        session.run_with_iobinding(binding)
        times_ns.append(clock_ns(threads) - start)
    return 2 * x.nbytes / shortest_ns(times_ns[1:])


def _pass_over_memory(threads: int) -> tuple[ort.InferenceSession, np.ndarray]:
    x = np.ones(_ELEMENTS, np.float32)
    value, result = (helper.make_tensor_value_info(name, TensorProto.FLOAT, x.shape) for name in "xy")
    graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "bandwidth", [value], [result])
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)])
    return open_session(model, "as_written", threads), x
