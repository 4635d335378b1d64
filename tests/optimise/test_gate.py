"""A rewritten model that is wrong or slower beyond noise is not delivered."""

import pytest

from rlflow.optimise.gate import is_faster, is_slower
from rlflow.optimise.report import LatencyChange
from rlflow.runtime.session import Setting
from rlflow.runtime.timing.statistics import Ratio


@pytest.mark.parametrize(
    ("ratio", "faster", "slower"),
    [
        (Ratio(2.0, 1.9, 2.1), True, False),
        (Ratio(0.5, 0.4, 0.6), False, True),
        (Ratio(1.05, 0.9, 1.2), False, False),
        (Ratio(0.95, 0.9, 1.1), False, False),
    ],
)
def test_slower_is_what_is_slower_beyond_noise(ratio: Ratio, faster: bool, slower: bool) -> None:
    latency: dict[Setting, LatencyChange] = {"deployed": LatencyChange(1.0, 1.0 / ratio.value, ratio)}
    assert (is_faster(latency, "deployed"), is_slower(latency, "deployed")) == (faster, slower)
