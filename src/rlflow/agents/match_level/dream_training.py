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
from rlflow.agents.match_level.cma_es import evolve
from rlflow.agents.match_level.controller import MatchLevelController, MatchLevelControllerArguments, policy_settings
from rlflow.agents.match_level.linear_pointer import LinearPointer
from rlflow.agents.match_level.pointer_config import CmaEsConfig, MatchLevelControllerConfig
from rlflow.agents.match_level.pointer_policy import PointerPolicy
from rlflow.agents.scores import mean_return
from rlflow.agents.selection import Judge, Selection
from rlflow.errors import InputError
from rlflow.representation.token_rollouts import TokenRollouts
from rlflow.world_model.match_level.delta_bank import DeltaBank
from rlflow.world_model.match_level.diagnostics import labels
from rlflow.world_model.match_level.dream_env import MatchLevelDreamEnv
from rlflow.world_model.match_level.match_level_config import MatchLevelDreamConfig
from rlflow.world_model.match_level.model import MatchLevelModel
from rlflow.world_model.match_level.precomputed import PrecomputedModel
from rlflow.world_model.match_level.starts import TokenStarts, visited_states

OnRound = Callable[[int, dict[str, float]], None]
"""Called after every update of PPO, or after every generation, with its number and its metrics."""

_ORIGINAL_PERCENT = 100.0  # the price of the graph before any rewrite


@dataclass(frozen=True)
class MatchLevelDream:
    """A fitted world model, what it says of all tokens, and the states in which dreams of it begin."""

    model: MatchLevelModel
    precomputed: PrecomputedModel
    starts: TokenStarts
    config: MatchLevelDreamConfig

    @classmethod
    def of(
        cls, model: MatchLevelModel, births: DeltaBank, rollouts: TokenRollouts, config: MatchLevelDreamConfig
    ) -> MatchLevelDream:
        """The dream that begins in the states of rollouts, and bears what the model has been fitted on.

        What the rollouts have priced, it knows.
        """
        reading, sets, number = births.joined(rollouts.tokens, model.read(rollouts))
        starts = visited_states(rollouts.episodes, config.max_kinds)
        states = dataclasses.replace(starts.states, token=number[starts.states.token])
        known = labels(rollouts.episodes)
        precomputed = PrecomputedModel.of(model.memory, reading, sets, config.candidates)
        precomputed = precomputed.priced(number[known.token], torch.from_numpy(known.saving))
        return cls(model, precomputed, dataclasses.replace(starts, states=states), config)

    @property
    def best_saving_percent(self) -> float:
        """Return what the best match of a start state saves, 0 where none does; the mean over start states."""
        states = self.starts.states
        saving = self.precomputed.saving[states.token].masked_fill(states.count == 0, -torch.inf)
        return float((torch.sinh(saving.amax(dim=1)) * states.unit).clamp_min(0.0).mean())

    def at(self, temperature: float) -> MatchLevelDream:
        """Return the same dream at another temperature."""
        return dataclasses.replace(self, config=dataclasses.replace(self.config, temperature=temperature))

    def from_original(self) -> MatchLevelDream:
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

    def env(self, *, seed: int) -> MatchLevelDreamEnv:
        """The dream as a batch of environments."""
        return MatchLevelDreamEnv(self.model.memory, self.precomputed, self.starts, self.config, seed=seed)


def train_in_dream(
    dream: MatchLevelDream,
    config: MatchLevelControllerConfig | CmaEsConfig,
    *,
    seed: int,
    checkpoint: Path | None = None,
    on_round: OnRound | None = None,
    judge: Judge[MatchLevelController] | None = None,
) -> DreamTraining[MatchLevelController]:
    """Train by what the config is of; only the judge, if there is one, takes real steps."""
    arguments = MatchLevelControllerArguments.of(dream.model, config)
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
        lambda policy: MatchLevelController(policy, arguments),
        untrained(arguments, seed=seed),
        lambda controller: dream_score(dream, controller, seed=seed),
        judge,
    )


def dream_score(dream: MatchLevelDream, controller: MatchLevelController, *, seed: int) -> float:
    """Mean return, in percent, of one episode in each of the batch's dreams.

    The dreams begin at the original, and the controller takes its most probable actions. What it says of reality is
    the return of such an episode on the graph (`real_env.real_return`).
    """
    return mean_return(dream.from_original().env(seed=seed), controller.act)


def untrained(arguments: MatchLevelControllerArguments, *, seed: int) -> MatchLevelController:
    """The same network before training: the baseline of a score."""
    return MatchLevelController(untrained_network(arguments.new_policy, seed=seed), arguments)
