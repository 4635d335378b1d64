"""The noise of a price."""

import pytest

from rlflow.cost.predicted.noise import Noise


@pytest.mark.parametrize(("ms", "sigma_ms"), [(0.0, 0.0015), (1.0, 0.0265), (10.0, 0.2515)])
def test_noise_is_a_share_and_some_microseconds(ms: float, sigma_ms: float) -> None:
    assert Noise(share=0.025, us=1.5).sigma_ms(ms) == pytest.approx(sigma_ms, rel=1e-12)
