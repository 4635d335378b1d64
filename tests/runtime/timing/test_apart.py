"""A fragment that kills its process costs no other fragment its time."""

import numpy as np
from onnx import ModelProto, parser

from rlflow.errors import RLFlowError
from rlflow.runtime.isolation import ProcessDeath
from rlflow.runtime.timing.apart import time_batch_apart
from rlflow.runtime.timing.batches import BatchConfig, FragmentTiming

QUICK = BatchConfig(sessions=2, turns=1, eviction_bytes=1 << 20)


def fragment(nodes: str) -> ModelProto:
    return parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : 17]> f (float[4] x) => (float[4] y) '
        f"<float none = {{0}}, int64 least = {{{-(2**63)}}}, int64 one = {{1}}> {{{nodes}}}"
    )


HARMLESS = fragment("y = Exp(x)")
DEADLY = fragment(
    "z = Mul(x, none) w = Cast <to = 7> (z) a = Add(w, least) b = Sub(w, one) q = Div(a, b) y = Cast <to = 1> (q)"
)
REFUSED = fragment("y = Unknown(x)")


def test_each_has_its_own_end() -> None:
    """The least whole number over -1 is SIGFPE; what ONNX Runtime refuses is an error as it is without a process."""
    timings = time_batch_apart([HARMLESS, DEADLY, REFUSED], setting="as_written", config=QUICK)
    first, second, third = timings
    assert isinstance(first, FragmentTiming)
    assert np.isfinite(first.ms)
    assert isinstance(second, ProcessDeath)
    assert "SIGFPE" in str(second)
    assert isinstance(third, RLFlowError)
    assert not isinstance(third, ProcessDeath)


def test_nothing_starts_no_process() -> None:
    assert time_batch_apart([], setting="as_written", config=QUICK) == []
