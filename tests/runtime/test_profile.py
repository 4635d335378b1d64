"""Kernel times from ONNX Runtime's profile."""

import numpy as np
import pytest

from rlflow import zoo
from rlflow.errors import RLFlowError
from rlflow.runtime.inputs import draw_inputs
from rlflow.runtime.profile import Kernel, profile


def test_each_run_has_the_kernels_that_the_setting_makes_of_a_model():
    """As written there are a product and its sum, as deployed the two are one."""
    model = zoo.build("mlp")
    inputs = draw_inputs(model, np.random.default_rng(0))
    written = profile(model, inputs, setting="as_written", runs=3)
    assert len(written) == 3
    kernels = [[kernel for kernel, _ in run] for run in written]
    assert kernels[0] == kernels[1] == kernels[2]
    assert [kernel.operator for kernel in kernels[0]] == [node.op_type for node in model.graph.node]
    assert all(us >= 0 for run in written for _, us in run)
    (deployed,) = profile(model, inputs)
    assert len(deployed) < len(kernels[0])


def test_every_run_has_all_kernels():
    """Of a few microseconds each, which begin in the one in which the kernel before them ends."""
    model = zoo.build("tiny_chain")
    runs = profile(model, draw_inputs(model, np.random.default_rng(0)), setting="as_written", runs=200)
    assert {tuple(kernel for kernel, _ in run) for run in runs} == {tuple(kernel for kernel, _ in runs[0])}
    assert len(runs[0]) == len(model.graph.node)


def test_types_and_shapes_are_told():
    model = zoo.build("tiny_scale")
    (run,) = profile(model, draw_inputs(model, np.random.default_rng(0)), setting="as_written")
    kernel = run[0].kernel
    assert isinstance(kernel, Kernel)
    assert kernel.results[0].startswith("float[")
    assert len(kernel.operands) == len(model.graph.node[0].input)


def test_a_loop_is_one_kernel():
    """What runs in its body is in its time already."""
    model = zoo.build("loop")
    (run,) = profile(model, draw_inputs(model, np.random.default_rng(0)), setting="as_written")
    assert [kernel.operator for kernel, _ in run] == [
        node.op_type for node in model.graph.node if node.op_type != "Constant"
    ]


def test_a_model_that_stops_is_an_error():
    model = zoo.build("mlp")
    with pytest.raises(RLFlowError):
        profile(model, {})
