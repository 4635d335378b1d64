"""Observations as vectors, and who sees the costs."""

import numpy as np
import pytest
import torch
from gymnasium import spaces
from support.pass_agents import trained

from rlflow.passes.agents.features import PassFeatures

SPACE = spaces.Dict(
    {"counts": spaces.Box(0.0, np.inf, (2,), np.float32), "cost": spaces.Box(0.0, np.inf, (3,), np.float32)}
)


@pytest.mark.parametrize(("hidden", "cost"), [("", [-0.5, 0.0, 1.0]), ("cost", [0.0, 0.0, 0.0])])
def test_counts_are_logarithms_and_costs_are_changes(hidden: str, cost: list[float]) -> None:
    seen = PassFeatures(SPACE, hidden)(
        {"cost": torch.tensor([[50.0, 100.0, 200.0]]), "counts": torch.tensor([[0.0, np.e - 1.0]])}
    )
    assert seen[0, :3].tolist() == pytest.approx(cost)
    assert seen[0, 3:].tolist() == pytest.approx([0.0, 1.0])


@pytest.mark.parametrize("algorithm", ["ppo", "maskable_ppo"])
def test_costs_for_the_value_function_alone(algorithm: str) -> None:
    """The policy is the same whatever the costs are, and the value is not."""
    _, agent = trained(algorithm, cost_features="value")
    policy = agent.model.policy
    parts = {name: np.zeros((1, space.shape[0]), np.float32) for name, space in policy.observation_space.spaces.items()}  # type: ignore[union-attr, attr-defined]
    logits, values = [], []
    for percent in (20.0, 100.0):
        tensors, _ = policy.obs_to_tensor(parts | {"cost": np.full((1, 3), percent, np.float32)})
        with torch.no_grad():
            logits.append(policy.get_distribution(tensors).distribution.logits)  # type: ignore[operator]
            values.append(policy.predict_values(tensors))  # type: ignore[operator]
    assert torch.equal(*logits)
    assert not torch.equal(*values)
