"""Fit M on the latents of a frozen V."""

from collections.abc import Iterator

import torch
from torch import Tensor

from rlflow.world_model.graph_level.dataset import Sequences
from rlflow.world_model.graph_level.graph_level_config import GraphLevelModelConfig
from rlflow.world_model.graph_level.losses import world_model_loss
from rlflow.world_model.graph_level.mdn_rnn import MDNRNN, State
from rlflow.world_model.optimisation import descend


class MemoryFit:
    """M's share of the fit: passes over whole episodes.

    The gradient is truncated every `sequence_length` steps; the recurrent state is carried across and starts at zero
    with each episode.
    """

    def __init__(
        self,
        memory: MDNRNN,
        latents: Tensor,
        training: Sequences,
        held_out: Sequences | None,
        config: GraphLevelModelConfig,
    ) -> None:
        self.memory, self.latents, self.config = memory, latents, config
        self.training, self.held_out = training, held_out
        memory.set_scale(*training.valid_transitions(latents))
        self.optimiser = torch.optim.Adam(memory.parameters())

    def run_epoch(self, epoch: int, generator: torch.Generator) -> dict[str, float]:
        """Run one pass; returns the mean of every loss, also on the held-out episodes."""
        config, parameters = self.config, list(self.memory.parameters())
        self.memory.train()
        totals: dict[str, float] = {}
        batches = list(self._batches(generator))
        for number, batch in enumerate(batches):
            h, c = self.memory.initial_hidden(len(batch.valid))
            chunks = list(batch.chunks(config.sequence_length))
            for part, padded in enumerate(chunks):
                going = (
                    padded.valid[:, 0].nonzero().squeeze(-1)
                )  # the others have ended, and nothing is learned of them
                chunk = padded.rows(going)
                state, change = chunk.transitions(self.latents)
                noisy = State(_with_noise(state.z, config.latent_noise, generator), state.counts, state.cost)
                prediction, hidden, _ = self.memory.sequence(noisy, chunk.action, (h[going], c[going]))
                h, c = (kept.index_copy(0, going, new.detach()) for kept, new in zip((h, c), hidden, strict=True))

                loss, terms = world_model_loss(prediction, change, chunk.valid, self.memory, config.loss_weights)
                progress = (epoch + (number + part / len(chunks)) / len(batches)) / config.epochs
                descend(loss, self.optimiser, parameters, config.learning_rate, progress, config.max_gradient_norm)

                share = chunk.valid.sum().item() / self.training.valid.sum().item()
                for name, value in {"loss": loss.item(), **terms}.items():
                    totals[name] = totals.get(name, 0.0) + share * value
        metrics = {f"memory/{name}": value for name, value in totals.items()}
        return metrics | self._held_out_losses()

    def _batches(self, generator: torch.Generator) -> Iterator[Sequences]:
        """Whole episodes in random order, cut to the longest of each batch."""
        order = torch.randperm(len(self.training.valid), generator=generator)
        for rows in order.split(self.config.episodes_per_batch):
            batch = self.training.rows(rows)
            yield next(batch.chunks(int(batch.valid.sum(dim=1).max())))

    @torch.no_grad()
    def _held_out_losses(self) -> dict[str, float]:
        if self.held_out is None:
            return {}
        self.memory.eval()
        state, change = self.held_out.transitions(self.latents)
        hidden = self.memory.initial_hidden(len(self.held_out.valid))
        prediction, _, _ = self.memory.sequence(state, self.held_out.action, hidden)
        weights = self.config.loss_weights
        loss, terms = world_model_loss(prediction, change, self.held_out.valid, self.memory, weights)
        return {f"held_out/{name}": value for name, value in {"loss": loss.item(), **terms}.items()}


def _with_noise(z: Tensor, scale: float, generator: torch.Generator) -> Tensor:
    """z as a dream might hold it: M must live with the errors of its own predictions."""
    return z + scale * torch.randn(z.shape, generator=generator)
