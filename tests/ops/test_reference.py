"""The interpreter: a whole graph in numpy against ONNX Runtime, and what it refuses."""

import numpy as np
import pytest

from rlflow import zoo
from rlflow.equivalence.tolerance import tolerance_of
from rlflow.errors import GraphError
from rlflow.onnx_io import from_onnx
from rlflow.ops.reference import evaluate
from rlflow.runtime.inputs import draw_inputs
from rlflow.runtime.session import open_session, run

UNDERSTOOD = ("bert", "mlp", "tiny_chain", "tiny_merge", "tiny_transpose", "tiny_scale")


@pytest.mark.parametrize("name", UNDERSTOOD)
def test_zoo_models(name: str) -> None:
    small = {"layers": 2, "hidden": 16, "heads": 2, "intermediate": 32, "sequence": 8, "vocabulary": 50}
    model = zoo.build(name, **(small if name == "bert" else {}))
    feeds = draw_inputs(model, np.random.default_rng(0))
    expected = run(open_session(model, "as_written"), feeds)
    actual = evaluate(from_onnx(model), feeds)
    assert list(actual) == list(expected)
    for output, value in expected.items():
        assert actual[output].dtype == value.dtype
        largest = float(np.abs(value).max())
        assert largest > 0
        assert float(np.abs(actual[output] - value).max()) <= tolerance_of(model) * largest


def test_an_opaque_node_is_refused_by_name() -> None:
    graph = from_onnx(zoo.build("loop"))
    with pytest.raises(GraphError, match=r"Loop .* is not understood and cannot be evaluated"):
        evaluate(graph, {"x": np.zeros((4, 16), np.float32)})
