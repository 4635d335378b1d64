"""Settings of rewards: what cannot be meant is refused, with what to do."""

import math
from typing import Any

import pytest

from rlflow.environments.reward_config import RewardConfig
from rlflow.errors import InputError
from rlflow.step_reward import KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_accepted(kind: str) -> None:
    assert RewardConfig(kind).kind == kind


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"kind": "fastest"}, "unknown reward 'fastest': choose one of incremental"),
        ({"every": 0}, "reward.every is 0: measure every 1 or more steps, or null"),
        ({"between": math.nan}, "reward.between is nan"),
        ({"setting": "fast"}, "unknown reward.setting 'fast'"),
        ({"rounds": 4}, "reward.rounds is 4: noise is not told from a gain in under 5"),
        ({"threads": 0}, "reward.threads is 0"),
    ],
)
def test_what_cannot_be_meant_is_refused(settings: dict[str, Any], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        RewardConfig(**settings)
