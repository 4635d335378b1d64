"""Train a controller over match tokens in the dream, by PPO or by evolution, and score it there."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from rlflow.agents.dream_training import DreamTraining, train_and_score, untrained_network
from rlflow.agents.maskable_ppo import scaled_to, train_policy
from rlflow.agents.scores import mean_return
from rlflow.agents.selection import Judge, Selection
from rlflow.agents.tokens.cma_es import evolve
from rlflow.agents.tokens.config import CmaEsConfig, TokenControllerConfig
from rlflow.agents.tokens.controller import TokenController, TokenControllerArguments, policy_settings
from rlflow.agents.tokens.linear_pointer import LinearPointer
from rlflow.agents.tokens.pointer_policy import PointerPolicy
from rlflow.errors import InputError
from rlflow.representation.token_rollouts import TokenRollouts
from rlflow.world_model.tokens.birth_memory import BirthMemory
from rlflow.world_model.tokens.config import TokenDreamConfig
from rlflow.world_model.tokens.diagnostics import labels
from rlflow.world_model.tokens.dream_env import TokenDreamEnv
from rlflow.world_model.tokens.knowledge import Knowledge
from rlflow.world_model.tokens.model import TokenWorldModel
from rlflow.world_model.tokens.starts import TokenStarts, visited_states

OnRound = Callable[[int, dict[str, float]], None]
"""Called after every update of PPO, or after every generation, with its number and its metrics."""

_ORIGINAL_PERCENT = 100.0  # the price of the graph before any rewrite


@dataclass(frozen=True)
class TokenDream:
    """A fitted world model, what it says of all tokens, and the states in which dreams of it begin."""

    model: TokenWorldModel
    knowledge: Knowledge
    starts: TokenStarts
    config: TokenDreamConfig

    @classmethod
    def of(
        cls, model: TokenWorldModel, births: BirthMemory, rollouts: TokenRollouts, config: TokenDreamConfig
    ) -> TokenDream:
        """The dream that begins in the states of rollouts, and bears what the model has been fitted on.

        What the rollouts have priced, it knows.
        """
        reading, sets, number = births.joined(rollouts.tokens, model.read(rollouts))
        starts = visited_states(rollouts.episodes, config.max_kinds)
        states = dataclasses.replace(starts.states, token=number[starts.states.token])
        known = labels(rollouts.episodes)
        knowledge = Knowledge.of(model.memory, reading, sets, config.candidates)
        knowledge = knowledge.priced(number[known.token], torch.from_numpy(known.saving))
        return cls(model, knowledge, dataclasses.replace(starts, states=states), config)

    @property
    def best_saving_percent(self) -> float:
        """Return what the best match of a start state saves, 0 where none does; the mean over start states."""
        states = self.starts.states
        saving = self.knowledge.saving[states.token].masked_fill(states.count == 0, -torch.inf)
        return float((torch.sinh(saving.amax(dim=1)) * states.unit).clamp_min(0.0).mean())

    def at(self, temperature: float) -> TokenDream:
        """Return the same dream at another temperature."""
        return dataclasses.replace(self, config=dataclasses.replace(self.config, temperature=temperature))

    def from_original(self) -> TokenDream:
        """The same dream, where all begin at the original, as episodes on a real graph do."""
        states = self.starts.states
        original = torch.nonzero(self.starts.initial & (states.cost >= _ORIGINAL_PERCENT)).squeeze(-1)
        if not len(original):
            raise InputError(
                "dream: no episode of the rollouts begins at the original, so nothing can be said of those that do: "
                "collect some with rollouts.from_start above 0"
            )
        starts = TokenStarts(states.rows(original), self.starts.initial[original])
        return dataclasses.replace(self, starts=starts)

    def env(self, *, seed: int) -> TokenDreamEnv:
        """The dream as a batch of environments."""
        return TokenDreamEnv(self.model.memory, self.knowledge, self.starts, self.config, seed=seed)


def train_in_dream(
    dream: TokenDream,
    config: TokenControllerConfig | CmaEsConfig,
    *,
    seed: int,
    checkpoint: Path | None = None,
    on_round: OnRound | None = None,
    judge: Judge[TokenController] | None = None,
) -> DreamTraining[TokenController]:
    """Train by what the config is of; only the judge, if there is one, takes real steps."""
    arguments = TokenControllerArguments.of(dream.model, config)
    env = dream.env(seed=seed)

    def train(selection: Selection[Any] | None) -> PointerPolicy | LinearPointer:
        if isinstance(config, CmaEsConfig):
            return evolve(
                env,
                LinearPointer(arguments.embedding),
                config,
                seed=seed,
                fingerprint=env.fingerprint,
                on_generation=on_round,
                checkpoint=checkpoint,
                selection=selection,
            )
        return train_policy(
            env,
            PointerPolicy,
            policy_settings(arguments.embedding, config),
            scaled_to(config, dream.best_saving_percent),
            seed=seed,
            fingerprint=env.fingerprint,
            on_update=on_round,
            checkpoint=checkpoint,
            selection=selection,
        )

    return train_and_score(
        train,
        lambda policy: TokenController(policy, arguments),
        untrained(arguments, seed=seed),
        lambda controller: dream_score(dream, controller, seed=seed),
        judge,
    )


def dream_score(dream: TokenDream, controller: TokenController, *, seed: int) -> float:
    """Mean return, in percent, of one episode in each of the batch's dreams.

    The dreams begin at the original, and the controller takes its most probable actions. What it says of reality is
    the return of such an episode on the graph (`real_env.real_return`).
    """
    return mean_return(dream.from_original().env(seed=seed), controller.act)


def untrained(arguments: TokenControllerArguments, *, seed: int) -> TokenController:
    """The same network before training: the baseline of a score."""
    return TokenController(untrained_network(arguments.new_policy, seed=seed), arguments)
