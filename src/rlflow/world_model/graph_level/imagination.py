"""One imagined step: M's prediction, sampled and kept within what the rollouts have shown."""

import torch
from torch import Tensor

from rlflow.nn.masking import sample_categorical
from rlflow.world_model.graph_level.graph_level_config import GraphLevelDreamConfig
from rlflow.world_model.graph_level.mdn_rnn import MDNRNN, Hidden, Prediction, State


def imagine(
    memory: MDNRNN,
    state: State,
    action: Tensor,
    hidden: Hidden,
    config: GraphLevelDreamConfig,
    generator: torch.Generator | None,
) -> tuple[State, Tensor, Tensor, Hidden]:
    """Next state, reward (B,) in percent, terminated (B,) bool and recurrent state, for valid actions (B, 2).

    An imperfect model invites exploitation (paper section 2.3): a reward is clipped to the range seen under its
    rule and reduced by `pessimism` times its expected error (Yu et al. 2020, MOPO), z is clipped to the range of the
    visited states, counts to 0 .. L. Terminate leaves the graph as it is.
    """
    prediction, hidden = memory.step(state, action, hidden)
    rule = action[..., 0]
    terminate = rule == memory.num_rules

    change = prediction.latent_change.sample(config.temperature, scale_sigma=config.scale_sigma, generator=generator)
    low, high = memory.state_low[: memory.latent], memory.state_high[: memory.latent]
    moved = State(
        z=torch.clamp(state.z + change, low, high),
        counts=(state.counts + count_changes(memory, prediction, config, generator)).clamp(0, memory.max_locations),
        cost=state.cost + prediction.cost_change,
    )

    following = State(
        z=torch.where(terminate[:, None], state.z, moved.z),
        counts=torch.where(terminate[:, None], state.counts, moved.counts),
        cost=torch.where(terminate, state.cost, moved.cost),
    )

    reward = torch.clamp(prediction.reward, memory.reward_low[rule], memory.reward_high[rule])
    reward = torch.where(terminate, reward, reward - config.pessimism * prediction.reward_sigma)
    return following, reward, terminate | (prediction.terminated_logit > 0), hidden


def count_changes(
    memory: MDNRNN, prediction: Prediction, config: GraphLevelDreamConfig, generator: torch.Generator | None
) -> Tensor:
    """Whole changes of the match counts (B, R): the likeliest, or drawn at the temperature."""
    logits = prediction.count_change_logits
    if config.count_changes == "mode" or config.temperature == 0:
        choice = logits.argmax(dim=-1)
    else:
        choice = sample_categorical(logits / config.temperature, generator)
    return (choice - memory.max_change).float()
