"""A policy that goes on learning, from lessons on a user's own models.

    tuned = fine_tuned(taught_guide.shipped(), [taught.rollouts for taught in lessons], TuningConfig(), seed=0)

The lessons that it learned from before are not at hand, so that it could forget them. Hence few epochs in small steps:
what V reads of rewrites that the new lessons show changes, the rest hardly. What it told of experts stands in where the
new lessons show none (`encoder_fit.remembered`). C stays as it is, trained by what V read before.

The invariant: the same policy, lessons, settings and seed give the same policy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rlflow.agents.match_level.rule_means import RuleMeans
from rlflow.agents.match_level.taught_guide import TaughtGuide
from rlflow.representation.token_rollouts import TokenRollouts
from rlflow.representation.token_shards import merged
from rlflow.world_model.epochs import OnEpoch
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
    trained_on = {
        **policy.trained_on,
        "tuned_on": [*policy.trained_on.get("tuned_on", ()), *rollouts.graphs],
    }
    shares = _greater(policy.shares, RuleMeans.of(rollouts).taken)
    return replace(policy, model=model, trained_on=trained_on, shares=shares)


def _greater(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """Return the greater share of each rule: what experts took on some models does not count less for others."""
    return {rule: max(before.get(rule, 0.0), after.get(rule, 0.0)) for rule in sorted({*before, *after})}
