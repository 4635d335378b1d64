"""Evolve a linear controller in the dream by CMA-ES, as Ha and Schmidhuber (2018) did theirs (Hansen 2016).

    policy = evolve(dream, LinearPointer(64), CmaEsConfig(), seed=0, fingerprint=dream.fingerprint)

Every generation draws controllers around the present mean and lets each play one episode in every dream. All of a
generation play in the same dreams, so that they differ by what they do and not by luck. The algorithm is pycma's,
unchanged.

The invariant: an evolution that was killed and resumed ends with the same weights, to the bit. Generations depend on
the seed and on the returns so far alone, so a checkpoint holds these, and resuming tells them again.
"""

from __future__ import annotations

import logging
from pathlib import Path

import cma
import numpy as np
import torch
from torch.nn.utils import parameters_to_vector

from rlflow import kept
from rlflow.agents.maskable_ppo import OnUpdate
from rlflow.agents.match_level.linear_pointer import LinearPointer
from rlflow.agents.match_level.pointer_config import CmaEsConfig
from rlflow.agents.scores import mean_return
from rlflow.agents.selection import Selection
from rlflow.world_model.checkpoint import read_checkpoint, write_checkpoint
from rlflow.world_model.dream_env import DreamEnv

log = logging.getLogger(__name__)


def evolve(
    env: DreamEnv,
    policy: LinearPointer,
    config: CmaEsConfig,
    *,
    seed: int,
    fingerprint: str,
    on_update: OnUpdate | None = None,
    checkpoint: Path | None = None,
    selection: Selection[LinearPointer] | None = None,
) -> LinearPointer:
    """Return `policy` with the weights of the last mean, or of the best snapshot by `selection`; frozen.

    fingerprint: names the dream. on_update(number, metrics) after each generation: best and mean return in percent, and
    step size. checkpoint: a file written after every generation; if it is there and of this run, the evolution goes on.
    """
    policy.requires_grad_(False)
    run = kept.fingerprint(config, seed, fingerprint, selection is not None)
    told = _restored(checkpoint, run, selection)
    strategy = _strategy(policy, config, seed)

    for number in range(config.generations):
        drawn = strategy.ask()
        if number < len(told):
            strategy.tell(drawn, [-value for value in told[number]])
            continue

        dreams = int(np.random.default_rng([seed, number]).integers(2**62))
        told.append([_mean_return(env, policy, weights, dreams) for weights in drawn])
        strategy.tell(drawn, [-value for value in told[-1]])

        finished = number + 1
        metrics = {
            "best_return_percent": max(told[-1]),
            "return_percent": float(np.mean(told[-1])),
            "sigma": float(strategy.sigma),
        }
        if selection is not None and (finished == config.generations or finished % config.generations_per_trial == 0):
            _set_weights(policy, strategy.mean)
            metrics["real_score_percent"] = selection.consider(policy)
        log.info("generation %d: %s", finished, {name: round(value, 4) for name, value in metrics.items()})
        if checkpoint is not None:
            state = {
                "returns": torch.tensor(told, dtype=torch.float64),
                "selection": selection.state_dict() if selection is not None else None,
            }
            write_checkpoint(checkpoint, run, finished, state)
        if on_update is not None:
            on_update(finished, metrics)

    _set_weights(policy, strategy.mean)
    if selection is not None:
        selection.choose(policy)
    return policy.eval()


def _strategy(policy: LinearPointer, config: CmaEsConfig, seed: int) -> cma.CMAEvolutionStrategy:
    """The evolution before its first generation, drawing from a generator of its own."""
    generator = np.random.default_rng(seed)
    settings = {
        "popsize": config.population,
        "randn": lambda *shape: generator.standard_normal(shape),
        "seed": np.nan,  # pycma would seed numpy's global generator
        "verbose": -9,
    }
    return cma.CMAEvolutionStrategy(parameters_to_vector(policy.parameters()).numpy(), config.initial_sigma, settings)


def _restored(checkpoint: Path | None, run: str, selection: Selection[LinearPointer] | None) -> list[list[float]]:
    """The returns of the generations that a checkpoint of this run tells of; the selection goes on from it."""
    found = read_checkpoint(checkpoint, run) if checkpoint is not None else None
    if found is None:
        return []
    _, state = found
    if selection is not None:
        selection.load_state_dict(state["selection"])
    returns: list[list[float]] = state["returns"].tolist()
    return returns


def _mean_return(env: DreamEnv, policy: LinearPointer, weights: np.ndarray, dreams: int) -> float:
    """The mean return of these weights over one episode in each dream, all of them seeded with `dreams`."""
    _set_weights(policy, weights)
    env.seed(dreams)
    return mean_return(env, lambda observation: policy.distribution(torch.from_numpy(observation)).mode().numpy())


def _set_weights(policy: LinearPointer, weights: np.ndarray) -> None:
    parameters = list(policy.parameters())
    parts = torch.from_numpy(weights).float().split([parameter.numel() for parameter in parameters])
    for parameter, part in zip(parameters, parts, strict=True):
        parameter.copy_(part)
