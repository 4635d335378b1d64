"""A policy that goes on learning on a user's own models: V from lessons, then C in the dream of episodes that it plays.

    tuned = fine_tuned(taught_guide.shipped(), [taught.rollouts for taught in lessons], TuningConfig(), seed=0)
    tuned = practised(tuned, {"mine": process}, PracticeConfig(), seed=0, library_hash=library.hash)

The lessons that it learned from before are not at hand, so that it could forget them. Hence few epochs in small steps:
what V reads of rewrites that the new lessons show changes, the rest hardly. What it told of experts stands in where the
new lessons show none (`encoder_fit.remembered`). C sees by what V reads, so it goes on after V, which then stays.

The invariant: the same policy, lessons, models, settings and seed give the same policy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from rlflow.agents.dream_training import train_in_dream
from rlflow.agents.match_level.learning import LearningConfig, dream_of_rollouts
from rlflow.agents.match_level.match_level_process import expert_of
from rlflow.agents.match_level.pointer_config import MatchLevelControllerConfig
from rlflow.agents.match_level.rule_means import RuleMeans
from rlflow.agents.match_level.taught_guide import TaughtGuide
from rlflow.agents.token_collection import TokenCollectionConfig, collect_tokens, put_together
from rlflow.processes.token_process import TokenProcess
from rlflow.representation.token_rollouts import TokenRollouts
from rlflow.representation.token_shards import merged
from rlflow.world_model.epochs import OnEpoch
from rlflow.world_model.match_level.match_level_config import MatchLevelDreamConfig
from rlflow.world_model.match_level.trainer import fit_token_model


@dataclass(frozen=True)
class TuningConfig:
    """Epochs of V and of M, and the learning rates with which they begin; a tenth of those of a fit from scratch."""

    encoder_epochs: int = 6
    encoder_learning_rate: float = 2e-4
    epochs: int = 1
    learning_rate: float = 3e-4


def fine_tuned(
    policy: TaughtGuide,
    lessons: Sequence[TokenRollouts],
    config: TuningConfig,
    *,
    seed: int,
    on_epoch: OnEpoch | None = None,
) -> TaughtGuide:
    """Return the policy after more lessons, which are in its vocabulary. `InputError` where they show no step."""
    rollouts, known = merged(list(lessons)), policy.model.arguments.config
    settings = replace(
        known,
        encoder_epochs=config.encoder_epochs,
        encoder_learning_rate=config.encoder_learning_rate,
        births_weight=0.0,  # the head that tells births was thrown away, and a fresh one would lead V astray at first
        epochs=config.epochs,
        learning_rate=config.learning_rate,
        held_out_fraction=0.0,
    )
    model = fit_token_model(rollouts, settings, seed=seed, begin=policy.model, on_epoch=on_epoch)
    return policy.tuned(model, rollouts.graphs, shares=_greater(policy.shares, RuleMeans.of(rollouts).taken))


@dataclass(frozen=True)
class PracticeConfig:
    """Episodes on each graph, the epochs of M on all of them, and the training of C in their dream.

    The other settings of M are those that it was fitted with.
    """

    play: TokenCollectionConfig = field(default_factory=lambda: TokenCollectionConfig(episodes=40))
    epochs: int = 6
    dream: MatchLevelDreamConfig = field(default_factory=MatchLevelDreamConfig)
    ppo: MatchLevelControllerConfig = field(default_factory=lambda: MatchLevelControllerConfig(total_steps=80_000))


def practised(
    policy: TaughtGuide,
    processes: Mapping[str, TokenProcess],
    config: PracticeConfig,
    *,
    seed: int,
    library_hash: str,
    on_step: Callable[[float, str], None] = lambda fraction, text: None,
) -> TaughtGuide:
    """Return the policy after M and C have learned from episodes on graphs, in its vocabulary; V stays as it is.

    processes: of each graph, by a name. Nothing is tried on them to choose among snapshots of C. on_step(fraction,
    text) after each episode and each update.
    """
    played, episodes = 0, len(processes) * config.play.episodes
    updates = config.ppo.rounds(config.dream.num_envs)

    def on_episode(*_: object) -> None:
        nonlocal played
        played += 1
        on_step(0.5 * played / episodes, f"episode {played} of {episodes}")

    def on_round(number: int, _: Mapping[str, float]) -> None:
        on_step(0.5 + 0.5 * number / updates, f"update {number} of {updates} in the dream")

    play = partial(collect_tokens, config=config.play, seed=seed, library_hash=library_hash, on_episode=on_episode)
    expert = expert_of(policy.model)
    rollouts = put_together([play(process, name, expert=expert) for name, process in processes.items()]).rollouts
    settings = replace(policy.model.arguments.config, encoder_epochs=0, epochs=config.epochs, held_out_fraction=0.0)
    learning = LearningConfig(config.play, settings, config.dream, config.ppo)
    dream = dream_of_rollouts(rollouts, learning, seed=seed, begin=policy.model)
    training = train_in_dream(dream, config.ppo, seed=seed, begin=policy.controller, on_round=on_round)
    return replace(policy, controller=training.controller)


def _greater(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """Return the greater share of each rule: what experts took on some models does not count less for others."""
    return {rule: max(before.get(rule, 0.0), after.get(rule, 0.0)) for rule in sorted({*before, *after})}
