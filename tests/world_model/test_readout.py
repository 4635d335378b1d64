"""What is read off features: known exactly where it is linear in them, however seldom it was looked at."""

import math

import pytest
import torch

from rlflow.errors import InputError
from rlflow.world_model.readout import Readout

WEIGHTS = torch.tensor([1.0, -2.0, 0.0, 0.5])


def steps(number: int) -> torch.Tensor:
    return torch.randn(number, len(WEIGHTS), generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("every", [1, 5, 20])
def test_weights_are_found_from_what_stretches_of_steps_have_changed(every: int):
    """20 stretches of 20 steps are five times as many as there are weights."""
    features = steps(400)
    change = torch.full((400,), math.nan)
    change[every - 1 :: every] = (features @ WEIGHTS).reshape(-1, every).sum(dim=1)
    readout = Readout.fit(features, change, "latency")
    torch.testing.assert_close(readout.weights, WEIGHTS, atol=1e-4, rtol=0.0)
    torch.testing.assert_close(readout(features), features @ WEIGHTS, atol=1e-3, rtol=0.0)


def test_it_tells_of_no_more_than_was_seen():
    features = steps(50)
    readout = Readout.fit(features, features @ WEIGHTS, "memory")
    low, high = (features @ WEIGHTS).min().item(), (features @ WEIGHTS).max().item()
    far = readout(torch.stack([1000.0 * WEIGHTS, -1000.0 * WEIGHTS]))
    assert far.tolist() == pytest.approx([high, low], abs=1e-3)


def test_steps_after_the_last_look_count_for_nothing():
    features = steps(60)
    change = features @ WEIGHTS
    known = Readout.fit(features[:50], change[:50], "memory")
    change[50:] = math.nan
    assert torch.equal(Readout.fit(features, change, "memory").weights, known.weights)


@pytest.mark.parametrize(("quantity", "how"), [("memory", "collect them again"), ("latency", "reward=end_to_end")])
def test_what_nobody_has_looked_at_is_refused(quantity: str, how: str):
    with pytest.raises(InputError, match=f"do not tell what steps save of the {quantity}: .*{how}"):
        Readout.fit(steps(3), torch.full((3,), math.nan), quantity)  # type: ignore[arg-type]
