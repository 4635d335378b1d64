"""`rlflow.optimise` from Python."""

import numpy as np

from rlflow import zoo
from rlflow.equivalence.compare import compare


def test_the_library_is_used_from_python_alike(tmp_path):
    import rlflow

    model = zoo.build("tiny_chain")
    optimised = rlflow.optimise(model, rlflow.OptimiseConfig(method="greedy", budget_s=5.0))
    graph = rlflow.from_onnx(optimised.model)
    again = rlflow.to_onnx(graph)
    assert compare(model, again).equivalent
    assert optimised.report.written in ("optimised", "original")
    assert np.isfinite(optimised.report.improvement_percent)
