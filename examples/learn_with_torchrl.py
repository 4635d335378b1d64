"""PPO of TorchRL, with its mask of actions, learns to rewrite a small graph: pip install 'rlflow[learn,torchrl]'."""

import gymnasium
import torch
from tensordict.nn import TensorDictModule
from torch import nn
from torchrl.collectors import Collector
from torchrl.envs import ActionMask, Compose, DTypeCastTransform, GymWrapper, RewardScaling, TransformedEnv
from torchrl.modules import MaskedCategorical, ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

from rlflow.environments.class_observations import CHOICE_FEATURES

UPDATES, FRAMES, EPOCHS = 10, 256, 8
SAVING = CHOICE_FEATURES.index("saving_percent")
torch.manual_seed(0)
made = gymnasium.make("rlflow/TinyTranspose-v0", max_choices=12, max_steps=8)
in_torch = GymWrapper(made, categorical_action_encoding=True)
as_bool = DTypeCastTransform(torch.int8, torch.bool, in_keys=["action_mask"])
env = TransformedEnv(in_torch, Compose(RewardScaling(0.0, 0.01), as_bool, ActionMask()))
env.set_seed(0)


class Scores(nn.Module):
    """A score for each choice by its row, and one for terminate, by a row of zeros."""

    def __init__(self) -> None:
        super().__init__()
        self.row = nn.Sequential(nn.Linear(len(CHOICE_FEATURES), 32), nn.Tanh(), nn.Linear(32, 1))

    def forward(self, choices: torch.Tensor) -> torch.Tensor:
        rows = nn.functional.pad(choices, (0, 0, 0, 1)).clone()
        rows[..., SAVING] /= 100
        return self.row(rows)[..., 0]


scores = TensorDictModule(Scores(), in_keys=["choices"], out_keys=["logits"])
keys = {"logits": "logits", "mask": "action_mask"}
actor = ProbabilisticActor(
    scores, spec=env.action_spec, in_keys=keys, distribution_class=MaskedCategorical, return_log_prob=True
)
critic = ValueOperator(nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1)), in_keys=["cost"])
advantage = GAE(gamma=1.0, lmbda=0.95, value_network=critic)
loss = ClipPPOLoss(actor, critic, entropy_coeff=0.01)
optimiser = torch.optim.Adam(loss.parameters(), lr=5e-3)

collector = Collector(env, actor, frames_per_batch=FRAMES, total_frames=UPDATES * FRAMES)
for update, batch in enumerate(collector):
    for _ in range(EPOCHS):
        advantage(batch)
        terms = loss(batch)
        optimiser.zero_grad()
        sum(terms[name] for name in ("loss_objective", "loss_critic", "loss_entropy")).backward()
        optimiser.step()
    episodes = batch["next", "done"].sum().clamp(min=1)
    print(f"update {update}: an episode saves about {100 * (batch['next', 'reward'].sum() / episodes).item():.1f} %")
collector.shutdown()
