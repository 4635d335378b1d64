"""Models of integers, booleans and narrow floats: rules that move data fire on them, and not a bit is changed.

Each model turns much and reads little of it, so that it runs much faster if it reads first; all that is turned and read
are elements of that type.
"""

import numpy as np
import onnx
import pytest
from onnx import parser

import rlflow
from rlflow.runtime.inputs import draw_inputs
from rlflow.runtime.session import SETTINGS, open_session, run

MODELS = {
    "float16": """
        halves (float16[16, 256, 512] x, float16[16, 256, 512] z) => (float16[16, 512, 1] y)
        <int64[1] first = {0}, int64[1] end = {1}, int64[1] axis = {2}> {
            both = Concat<axis = 0>(x, z)
            turned = Transpose<perm = [0, 2, 1]>(both)
            read = Slice(turned, first, end, axis)
            one, other = Split<axis = 0, num_outputs = 2>(read)
            y = Mul(one, other)
        }""",
    "bfloat16": """
        brain (float[16, 256, 512] x) => (float[16, 512, 1] y)
        <int64[1] first = {0}, int64[1] end = {1}, int64[1] axis = {2}> {
            halves = Cast<to = 16>(x)
            turned = Transpose<perm = [0, 2, 1]>(halves)
            read = Slice(turned, first, end, axis)
            y = Cast<to = 1>(read)
        }""",
    "int8": """
        quantised (float[16, 256, 512] x) => (float[16, 512, 1] y)
        <float scale = {0.01}, int8 zero = {3}, int64[1] first = {0}, int64[1] end = {1}, int64[1] axis = {2}> {
            bytes = QuantizeLinear(x, scale, zero)
            turned = Transpose<perm = [0, 2, 1]>(bytes)
            read = Slice(turned, first, end, axis)
            y = DequantizeLinear(read, scale, zero)
        }""",
    "int64": """
        tokens (int64[256, 2048] ids, int64[256, 2048] more, float[100, 8] table) => (float[1, 256, 8] y)
        <int64[1] last = {-1}, int64[1] end = {9223372036854775807}, int64[1] axis = {0}, int64 hundred = {100}> {
            both = Add(ids, more)
            turned = Transpose<perm = [1, 0]>(both)
            read = Slice(turned, last, end, axis)
            within = Mod(read, hundred)
            y = Gather<axis = 0>(table, within)
        }""",
    "bool": """
        masks (float[16, 256, 512] x, float[16, 256, 512] z) => (float[16, 512, 1] y)
        <float one = {1.0}, float zero = {0.0}, int64[1] first = {0}, int64[1] end = {1}, int64[1] axis = {2}> {
            less = Less(x, z)
            turned = Transpose<perm = [0, 2, 1]>(less)
            read = Slice(turned, first, end, axis)
            y = Where(read, one, zero)
        }""",
}
GATE = rlflow.GateConfig(draws=1, rounds=2, runs_per_round=1)


def model_of(text: str) -> onnx.ModelProto:
    model = parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]>{text}')
    onnx.checker.check_model(model, full_check=True)
    return model


@pytest.mark.parametrize(
    "dtype", [pytest.param(dtype, marks=() if dtype == "int8" else pytest.mark.slow) for dtype in MODELS]
)
def test_a_model_of_such_elements_is_rewritten_and_computes_the_same_bits(dtype: str) -> None:
    model = model_of(MODELS[dtype])
    found = rlflow.optimise(
        model, method="greedy", cost_model="analytic", budget_s=120.0, gate=GATE, setting="as_written", shortlist=0
    )
    assert found.written == "optimised", found.reason
    library = rlflow.load_library()
    assert all(dtype in library.get(step.rule).element_types for step in found.result.trajectory.steps)
    feeds = draw_inputs(model, np.random.default_rng(0))
    for setting in SETTINGS:
        before, after = (run(open_session(each, setting), feeds) for each in (model, found.model))
        assert before["y"].tobytes() == after["y"].tobytes()
