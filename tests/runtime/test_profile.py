"""Kernel times from ONNX Runtime's profile."""

import numpy as np
import pytest

from rlflow import zoo
from rlflow.errors import InputError, RLFlowError
from rlflow.runtime.inputs import draw_inputs
from rlflow.runtime.profile import Fused, ProfileConfig, adding_up_to, profile


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


@pytest.mark.parametrize(
    ("total", "added_up"),
    [
        (54.0, [8.0, 18.0, 28.0]),  # a profile took 2 us of each
        (63.0, [11.0, 21.0, 31.0]),  # a launch takes 1 us beside each
        (138.0, [26.0, 46.0, 66.0]),  # 3 us at most; by the rest, the session without a profile was twice as slow
        (25.5, [3.5, 8.5, 13.5]),  # or twice as fast
        (0.0, [0.0, 0.0, 0.0]),
    ],
)
def test_a_session_that_is_slow_is_slow_for_all_kernels(total, added_up):
    assert adding_up_to(total, np.array([10.0, 20.0, 30.0])) == pytest.approx(added_up, abs=1e-6)


def test_what_is_impossible_is_refused():
    with pytest.raises(RLFlowError):
        profile(Fused.of(zoo.build("mlp")), {})
    for name in ("sessions", "runs", "threads"):
        with pytest.raises(InputError, match=name):
            ProfileConfig(**{name: 0})
