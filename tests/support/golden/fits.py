"""Fits of world models in both formulations, on rollouts of graphs of a few nodes.

A fit has one epoch, enough for every gradient to have a say, on one thread of the processor.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import NamedTuple

import numpy as np

from rlflow.agents.match_level import taught_guide
from rlflow.agents.match_level.chain import FittedWorld
from rlflow.agents.match_level.fine_tuning import TuningConfig, fine_tuned
from rlflow.agents.match_level.rule_means import RuleMeans
from rlflow.world_model.graph_level.diagnostics import open_loop
from rlflow.world_model.graph_level.graph_level_config import GraphLevelDreamConfig
from rlflow.world_model.graph_level.model import GraphLevelModel
from rlflow.world_model.graph_level.trainer import fit_world_model
from rlflow.world_model.held_out import split_episodes
from rlflow.world_model.match_level.delta_bank import DeltaBank
from rlflow.world_model.match_level.diagnostics import by_rule, rule_means, saving_report, savings
from rlflow.world_model.match_level.model import MatchLevelModel
from support import token_worlds, world_models
from support.golden.digests import Value, digest, in_any_order, weights
from support.golden.entries import Compute
from support.golden.rollouts import lesson, pooled, pooled_env
from support.token_worlds import small_token_rollouts

SEED = 0
TOKEN_FIT = replace(token_worlds.SMALL, encoder_epochs=1, epochs=1)
POOLED_FIT = replace(world_models.SMALL, encoder_epochs=1, epochs=1)


def entries() -> Mapping[str, Compute]:
    """Return the fits, and the means of rules beside them."""
    return {
        "match level": _token_fit,
        "graph level": _pooled_fit,
        "match level, the shipped policy fine-tuned": _tuned,
        "rule means": lambda: digest(*vars(means_of_rules()).values()),
    }


class MatchLevelFit(NamedTuple):
    """A world model over match tokens, the birth sets that it dreams of, and its losses by epoch."""

    model: MatchLevelModel
    births: DeltaBank
    course: Mapping[int, Mapping[str, float]]


@cache
def token_world() -> MatchLevelFit:
    """Return the world model over match tokens."""
    rollouts, course = small_token_rollouts(), dict[int, dict[str, float]]()
    world = FittedWorld.fit(rollouts, TOKEN_FIT, seed=SEED, on_epoch=course.__setitem__)
    return MatchLevelFit(world.model, world.births, course)


def _token_fit() -> Value:
    """Return the weights of V and M, their losses, and how well V tells savings of episodes that were held out."""
    rollouts, (model, births, course) = small_token_rollouts(), token_world()
    training, held_out = split_episodes(rollouts.episodes, TOKEN_FIT.held_out_fraction, SEED)
    means = by_rule(rollouts.rule_of, rule_means(rollouts, training))
    told = savings(model.read(rollouts))
    report = saving_report(held_out, rollouts.rule_of, told, means, seed=SEED)
    return {
        "births": in_any_order(digest(value.numpy()) for value in vars(births.sets).values()),
        "losses": digest(sorted(_numbers(course[max(course)]))),
        "told": digest(np.asarray(told)),
        "trust": digest(sorted(_numbers(report))),
        "weights": weights(model.state_dict()),
    }


def _tuned() -> Value:
    """Return the policy that ships after an epoch more, on one lesson."""
    tuning = TuningConfig(encoder_epochs=1, epochs=1)
    shipped = taught_guide.shipped()
    policy = fine_tuned(shipped, [lesson(shipped.model.arguments.vocabulary).rollouts], tuning, seed=SEED)
    return {"rules": digest(policy.shares), "weights": weights(policy.model.state_dict())}


@cache
def pooled_world() -> GraphLevelModel:
    """Return the world model of one vector a graph."""
    return fit_world_model(pooled().rollouts(pooled_env()), POOLED_FIT, seed=SEED)


def _pooled_fit() -> Value:
    """Return the weights of V and M, the latents of all graphs, and how far dreams go astray."""
    model, rollouts = pooled_world(), pooled().rollouts(pooled_env())
    latents = model.latents(rollouts)
    horizons = open_loop(model, rollouts, latents, rollouts.episodes, GraphLevelDreamConfig(num_envs=1), seed=SEED)
    return {
        "latents": digest(latents.numpy()),
        "trust": digest({str(horizon): sorted(_numbers(errors)) for horizon, errors in horizons.items()}),
        "weights": weights(model.state_dict()),
    }


def _numbers(figures: Mapping[str, float]) -> list[str]:
    """Return figures by value, since their names may change and some are not numbers."""
    return [float(value).hex() for value in figures.values()]


@cache
def means_of_rules() -> RuleMeans:
    """Return what the rollouts say of each rule."""
    return RuleMeans.of(small_token_rollouts())
