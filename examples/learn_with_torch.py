"""PPO in one file of PyTorch, over environments side by side in shared memory: pip install 'rlflow[learn]'.

One small network scores each choice by its row of the table, however many there are; terminate has a row of zeros.
"""

import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical

from rlflow.environments import make_vec
from rlflow.environments.class_observations import CHOICE_FEATURES

ENVS, STEPS, UPDATES, EPOCHS = 4, 64, 15, 8
torch.manual_seed(0)
envs = make_vec("rlflow/Substitution-v0", ENVS, model="tiny_transpose", max_choices=12, max_steps=8)
scale = torch.tensor([1 / 100 if name == "saving_percent" else 1.0 for name in CHOICE_FEATURES])
actor = nn.Sequential(nn.Linear(len(CHOICE_FEATURES), 32), nn.Tanh(), nn.Linear(32, 1))
critic = nn.Sequential(nn.Linear(len(CHOICE_FEATURES) + 1, 32), nn.Tanh(), nn.Linear(32, 1))
optimiser = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=5e-3)


def read(observation: dict[str, np.ndarray]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    rows = nn.functional.pad(torch.tensor(observation["choices"]) * scale, (0, 0, 0, 1))
    return rows, torch.tensor(observation["action_mask"]).bool(), torch.tensor(observation["cost"]) / 100


def judged(rows: torch.Tensor, mask: torch.Tensor, cost: torch.Tensor) -> tuple[Categorical, torch.Tensor]:
    logits = actor(rows)[..., 0].masked_fill(~mask, -1e9)
    best = rows.masked_fill(~mask[..., None], 0.0).amax(-2)
    return Categorical(logits=logits), critic(torch.cat([best, cost], -1))[..., 0]


observation, over = envs.reset(seed=0)[0], np.zeros(ENVS, bool)
for update in range(UPDATES):
    kept = []
    for _ in range(STEPS):
        seen = read(observation)
        with torch.no_grad():
            policy, value = judged(*seen)
        action = policy.sample()
        observation, reward, terminated, truncated, _ = envs.step(action.numpy())
        fresh, over = over, terminated | truncated  # after an end the next action is ignored, and an episode begins
        earned, ends = torch.tensor(reward / 100).float(), (torch.tensor(over), torch.tensor(fresh))
        kept.append((*seen, action, policy.log_prob(action), value, earned, *ends))
    rows, mask, cost, actions, old, values, rewards, over_at, fresh_at = map(torch.stack, zip(*kept, strict=True))
    returns, following = torch.zeros_like(values), judged(*read(observation))[1].detach()
    for t in reversed(range(STEPS)):
        following = returns[t] = rewards[t] + torch.where(over_at[t], 0.0, following)
    for _ in range(EPOCHS):
        policy, value = judged(rows, mask, cost)
        ratio, gain = (policy.log_prob(actions) - old).exp(), returns - values
        gain = (gain - gain.mean()) / (gain.std() + 1e-8)
        clipped = torch.minimum(ratio * gain, ratio.clamp(0.8, 1.2) * gain)
        losses = -clipped + 0.5 * (value - returns) ** 2 - 0.01 * policy.entropy()
        optimiser.zero_grad()
        losses[~fresh_at].mean().backward()
        optimiser.step()
    print(f"update {update}: an episode saves {100 * returns[:-8][fresh_at[:-8]].mean():.1f} % of the price")
envs.close()
