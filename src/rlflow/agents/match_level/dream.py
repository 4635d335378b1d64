"""The dream over match tokens: the states in which it begins, and the training of a controller in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import torch

from rlflow.agents.dream_training import Dream
from rlflow.agents.maskable_ppo import scaled_to, train_policy
from rlflow.agents.match_level.cma_es import evolve
from rlflow.agents.match_level.controller import MatchLevelController, MatchLevelControllerArguments
from rlflow.agents.match_level.linear_pointer import LinearPointer
from rlflow.agents.match_level.pointer_config import CmaEsConfig, MatchLevelControllerConfig
from rlflow.agents.match_level.pointer_policy import PointerPolicy
from rlflow.errors import InputError
from rlflow.representation.token_rollouts import TokenRollouts
from rlflow.step_reward import INCREMENTAL, StepReward
from rlflow.world_model.match_level.delta_bank import DeltaBank
from rlflow.world_model.match_level.diagnostics import earned, labels, shares_apart
from rlflow.world_model.match_level.dream_env import MatchLevelDreamEnv
from rlflow.world_model.match_level.imagination import matches_apart
from rlflow.world_model.match_level.match_level_config import MatchLevelDreamConfig
from rlflow.world_model.match_level.model import MatchLevelModel
from rlflow.world_model.match_level.precomputed import PrecomputedModel
from rlflow.world_model.match_level.starts import TokenStarts, visited_states
from rlflow.world_model.match_level.token_readout import TokenReadout

_ORIGINAL_PERCENT = 100.0  # the price of the graph before any rewrite


@dataclass(frozen=True)
class MatchLevelDream(Dream[MatchLevelController]):
    """A fitted world model, the tables of classes in which dreams of it begin, and what it says of all tokens."""

    model: MatchLevelModel
    starts: TokenStarts
    config: MatchLevelDreamConfig
    precomputed: PrecomputedModel
    reward: StepReward = INCREMENTAL
    readout: TokenReadout | None = None

    @classmethod
    def of(
        cls,
        model: MatchLevelModel,
        births: DeltaBank,
        rollouts: TokenRollouts,
        config: MatchLevelDreamConfig,
        reward: StepReward = INCREMENTAL,
    ) -> MatchLevelDream:
        """The dream that begins in the states of rollouts, and bears what the model has been fitted on.

        What the rollouts have priced, it knows; of classes that they took, it knows what all of them saved.
        `InputError` where they do not tell of what the reward counts.
        """
        reading, sets, number = births.joined(rollouts.tokens, model.read(rollouts))
        starts = visited_states(rollouts.episodes, config.max_kinds)
        states = replace(starts.states, token=number[starts.states.token])
        known, (taken, saving) = labels(rollouts.episodes), earned(rollouts.episodes)
        precomputed = PrecomputedModel.of(model.memory, reading, sets, config.candidates)
        if not len(sets):
            raise InputError("dream: no choice of the rollouts took all matches of a class: collect more of them")
        counted, share = shares_apart(rollouts.episodes)
        precomputed = precomputed.counted(number[counted], torch.from_numpy(share))
        precomputed = precomputed.priced(number[known.token], torch.from_numpy(known.saving))
        precomputed = precomputed.priced(number[taken], torch.from_numpy(saving))
        quantity = reward.quantity
        readout = None if quantity is None else TokenReadout.of(precomputed, rollouts.episodes, number, quantity)
        return cls(model, replace(starts, states=states), config, precomputed, reward, readout)

    @property
    def best_saving_percent(self) -> float:
        """Return what the best class of a start state saves, 0 where none does; the mean over start states."""
        states = self.starts.states
        number = matches_apart(states.count, self.precomputed.apart[states.token])
        saving = torch.sinh(self.precomputed.saving[states.token]) * number
        return float((saving.amax(dim=1) * states.unit).clamp_min(0.0).mean())

    def from_start(self) -> MatchLevelDream:
        """Return the same dream, where all begin at the original. `InputError` if no episode of the rollouts did."""
        states = self.starts.states
        original = torch.nonzero(self.starts.initial & (states.cost >= _ORIGINAL_PERCENT)).squeeze(-1)
        if not len(original):
            raise InputError(
                "dream: no episode of the rollouts begins at the original, so nothing can be said of those that do: "
                "collect some with rollouts.from_start above 0"
            )
        starts = TokenStarts(states.rows(original), self.starts.initial[original])
        return replace(self, starts=starts)

    def env(self, *, seed: int) -> MatchLevelDreamEnv:
        """Return the dream as a batch of environments."""
        known = (self.model.memory, self.precomputed, self.starts, self.config)
        return MatchLevelDreamEnv(*known, seed=seed, reward=self.reward, readout=self.readout)

    def untrained(self, config: MatchLevelControllerConfig | CmaEsConfig, *, seed: int) -> MatchLevelController:
        """Return a controller of the network that the kind of config has."""
        arguments = MatchLevelControllerArguments.of(self.model, config, self.config.max_steps)
        return MatchLevelController.untrained(arguments, seed=seed)

    def training(
        self, beginner: MatchLevelController, *, seed: int
    ) -> Callable[..., PointerPolicy] | Callable[..., LinearPointer]:
        """Train by MaskablePPO, with rewards on the scale of the best match, or by evolution."""
        env, embedding, config = self.env(seed=seed), beginner.arguments.embedding, beginner.arguments.config
        if isinstance(config, CmaEsConfig):
            network = LinearPointer(embedding)
            network.load_state_dict(beginner.policy.state_dict())
            return partial(evolve, env, network, config, seed=seed, fingerprint=env.fingerprint)
        settings, scaled = {"embedding": embedding, "config": config}, scaled_to(config, self.best_saving_percent)
        train = partial(train_policy, env, PointerPolicy, settings, scaled)
        return partial(train, seed=seed, fingerprint=env.fingerprint, begin=beginner.policy)
