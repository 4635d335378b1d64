"""Kernel times from ONNX Runtime's profile."""

import numpy as np
import pytest

from rlflow import zoo
from rlflow.errors import InputError, RLFlowError
from rlflow.runtime.inputs import draw_inputs
from rlflow.runtime.profile import Fused, ProfileConfig, profile


def profiled(name: str, config: ProfileConfig):
    fused = Fused.of(zoo.build(name))
    return fused, profile(fused, draw_inputs(fused.model, np.random.default_rng(0)), config)


@pytest.mark.parametrize("name", ["mlp", "resnet18", "tiny_chain", "loop"])
def test_each_node_has_a_time_and_they_add_up_to_that_of_the_model(name):
    """What runs in the body of a loop is in the loop's time already."""
    fused, found = profiled(name, ProfileConfig(sessions=2, runs=5))
    assert found.kernel_us.shape == (len(fused.kernels),)
    assert (found.kernel_us >= 0).all()
    assert found.kernel_us.sum() == pytest.approx(found.model_us, rel=1e-6)
    assert found.sigma_us >= 0


def test_the_larger_product_takes_longer():
    """By a hundred times as much work, so that no noise hides it."""
    rng = np.random.default_rng(0)
    fused = Fused.of(zoo.build("mlp", batch=64, inputs=32, hidden=1024, outputs=2))
    found = profile(fused, draw_inputs(fused.model, rng), ProfileConfig(sessions=1, runs=5))
    places = [place for place, kernel in enumerate(fused.kernels) if kernel.operator in ("Gemm", "FusedGemm")]
    assert found.kernel_us[places[-1]] < found.kernel_us[places[1]]


def test_what_is_impossible_is_refused():
    with pytest.raises(RLFlowError):
        profile(Fused.of(zoo.build("mlp")), {})
    for name in ("sessions", "runs", "threads"):
        with pytest.raises(InputError, match=name):
            ProfileConfig(**{name: 0})
