"""The pace of the machine right now: the time of a small matrix product that is always the same.

    pace_ms(threads=1)      0.5, and 0.8 while something else fills the caches or shares the core

Beside a measurement, it tells a slow model from a slow moment.
"""

from functools import cache

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

from rlflow.runtime.session import open_session
from rlflow.runtime.timing.clock import clock_ns, shortest_ns

_ROWS, _WIDTH = 64, 512
_RUNS = 5


def pace_ms(threads: int) -> float:
    """Return the milliseconds of the product now, by the shortest of five runs: some may be interrupted."""
    session, inputs = _product(threads)
    times_ns = []
    for _ in range(_RUNS):
        start = clock_ns(threads)
        session.run(None, inputs)
        times_ns.append(clock_ns(threads) - start)
    return shortest_ns(times_ns) / 1e6


@cache
def _product(threads: int) -> tuple[ort.InferenceSession, dict[str, np.ndarray]]:
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((_ROWS, _WIDTH), (_WIDTH, _WIDTH)))
    value, result = (helper.make_tensor_value_info(name, TensorProto.FLOAT, x.shape) for name in "xy")
    product = helper.make_node("MatMul", ["x", "w"], ["y"])
    graph = helper.make_graph([product], "pace", [value], [result], [numpy_helper.from_array(w, "w")])
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)])
    return open_session(model, "as_written", threads), {"x": x}
