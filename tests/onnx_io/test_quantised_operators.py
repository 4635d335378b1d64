"""onnx's own tests of quantised operators, all of them: read and written again, they compute the same bits.

They feed scales and zero points, which models store. So each is read as it is, where all of them are carried, and with
all operands but the first stored, where those that are understood are.
"""

from functools import cache
from typing import Any

import onnx
import pytest
from onnx import numpy_helper
from support.conformance.backend import Case, Survival, case_of, load_tests, run_case

from rlflow.onnx_io import from_onnx

WORDS = ("quantizelinear", "qlinear", "matmulinteger", "convinteger")
LEAST = 30
UNDERSTOOD = {"test_quantizelinear", "test_dequantizelinear"}
"""By one scale and one zero point, of uint8; the others have them along an axis, in blocks, or are of other types."""


@cache
def of_quantised_operators() -> list[Any]:
    """Those that ONNX Runtime can run are fewer: it has no kernels for some types."""
    found = [test for test in load_tests("node") if any(word in test.name for word in WORDS)]
    assert len(found) >= LEAST
    return found


def with_stored_operands(case: Case) -> Case:
    """The model with all inputs but the first as weights, of the values that the test feeds."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    ((feeds, _), *_) = case.runs
    first, *others = model.graph.input
    model.graph.initializer.extend(numpy_helper.from_array(feeds[value.name], value.name) for value in others)
    del model.graph.input[1:]
    return run_case(case.name, model, [{first.name: feeds[first.name]}])


@pytest.mark.parametrize("stored", [False, True], ids=["fed", "stored"])
def test_not_a_bit_changes(stored: bool) -> None:
    tally, understood = Survival(), set()
    for test in of_quantised_operators():
        case = case_of(test)
        if case is None:
            continue
        case = with_stored_operands(case) if stored else case
        tally.import_and_export(case)
        nodes = from_onnx(case.model).nodes.values()
        understood |= {case.name for node in nodes if node.op.endswith("antizeLinear") and not node.is_opaque}
    assert tally.differences == []
    assert tally.survived == tally.run_by_onnx_runtime >= LEAST / 2
    assert understood == (UNDERSTOOD if stored else set())
