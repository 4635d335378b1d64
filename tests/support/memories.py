"""A small recurrent memory M, and states and actions that it reads."""

from typing import Any

import torch
from torch import Tensor

from rlflow.world_model.graph_level.graph_level_config import GraphLevelModelConfig
from rlflow.world_model.graph_level.latent_state import State
from rlflow.world_model.graph_level.mdn_rnn import MDNRNN

R, L, B, T = 3, 6, 4, 5
CONFIG = GraphLevelModelConfig(latent=4, hidden=8, mixtures=2, rule_embedding=3, head_width=16, max_count_change=2)


def memory(**changes: Any) -> MDNRNN:
    torch.manual_seed(0)
    return MDNRNN(R, L, GraphLevelModelConfig(**{**vars(CONFIG), **changes}))


def states(*batch: int) -> State:
    generator = torch.Generator().manual_seed(1)
    return State(
        z=torch.randn(*batch, 4, generator=generator),
        counts=torch.randint(1, L, (*batch, R), generator=generator).float(),
        cost=100 * torch.rand(*batch, generator=generator),
    )


def actions(*batch: int) -> Tensor:
    generator = torch.Generator().manual_seed(2)
    return torch.stack([torch.randint(R + 1, batch, generator=generator), torch.zeros(batch, dtype=torch.int64)], -1)
