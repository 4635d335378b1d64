"""Everything that goes on where it was killed, by name, with other runs of it that must not take what is kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import nn

from rlflow import zoo
from rlflow.agents.collection import CollectionConfig, collect
from rlflow.agents.dream_training import train_in_dream
from rlflow.agents.graph_level.controller_config import ControllerConfig
from rlflow.agents.graph_level.dream import GraphLevelDream
from rlflow.agents.maskable_ppo import train_policy
from rlflow.agents.match_level.cma_es import evolve
from rlflow.agents.match_level.linear_pointer import LinearPointer
from rlflow.agents.match_level.model_free import RealGraph
from rlflow.agents.match_level.pointer_config import CmaEsConfig, MatchLevelControllerConfig, RealEpisodesConfig
from rlflow.agents.ppo_config import PPOConfig
from rlflow.agents.token_collection import collect_tokens
from rlflow.cost.analytic import AnalyticCost
from rlflow.environments import EnvironmentConfig, SubstitutionEnv
from rlflow.kept import Kept, fingerprint
from rlflow.onnx_io import from_onnx
from rlflow.representation import token_archive
from rlflow.representation.rollouts import Rollouts
from rlflow.representation.token_rollouts import Demonstration, TokenRollouts
from rlflow.world_model.graph_level.graph_level_config import GraphLevelDreamConfig
from rlflow.world_model.graph_level.model import GraphLevelModel, WorldModelArguments
from rlflow.world_model.graph_level.trainer import fit_world_model
from rlflow.world_model.match_level.model import MatchLevelModel, MatchLevelModelArguments
from rlflow.world_model.match_level.trainer import fit_token_model
from support import token_worlds, world_models
from support.kind_dream import KindDream
from support.slot_dream import SlotDream, SlotPolicy
from support.token_worlds import FEW, small_process, small_token_rollouts
from support.walks import LIBRARY

OnStep = Callable[..., None]
"""Called after each step, with its number first."""


@dataclass(frozen=True)
class Resumable:
    """run(place, on_step, **changes) returns the bytes that the run ends with; place: None, or what it keeps steps in.

    others() are changes, each of which makes another run; some take seconds to make.
    """

    run: Callable[..., bytes]
    others: Callable[[], Sequence[Mapping[str, Any]]]


def _weights(network: nn.Module) -> bytes:
    return b"".join(value.detach().numpy().tobytes() for value in network.state_dict().values())


def _files(write: Callable[[Path], object]) -> bytes:
    with TemporaryDirectory() as folder:
        write(Path(folder))
        return b"".join(path.read_bytes() for path in sorted(Path(folder).iterdir()))


@cache
def _rollouts() -> Rollouts:
    return world_models.small_rollouts()


def pooled_fit(place: Path | None, on_step: OnStep, **changes: Any) -> bytes:
    """Fit V and M of one vector."""
    settings = {"rollouts": _rollouts(), "config": world_models.SMALL, "seed": 0} | changes
    return _weights(fit_world_model(**settings, checkpoint=place, on_epoch=on_step))


def token_fit(place: Path | None, on_step: OnStep, **changes: Any) -> bytes:
    """Fit V and M over match tokens."""
    settings = {"rollouts": small_token_rollouts(), "config": token_worlds.SMALL, "seed": 0} | changes
    return _weights(fit_token_model(**settings, checkpoint=place, on_epoch=on_step))


def demonstrated(rollouts: TokenRollouts) -> TokenRollouts:
    """Return the same episodes, as if an expert had played them who wants every other kind."""
    episodes = []
    for episode in rollouts.episodes:
        taken = tuple((state.token % 2).astype(np.float32) for state in episode.states)
        demonstration = Demonstration(taken, tuple(3.0 * of_kinds for of_kinds in taken))
        episodes.append(replace(episode, demonstration=demonstration))
    return replace(rollouts, episodes=tuple(episodes))


def _other_token_fits() -> list[dict[str, Any]]:
    """Fits to other episodes, distances, units or demonstrations."""
    rollouts = small_token_rollouts()
    first, *others = rollouts.episodes
    nearer = replace(first.steps[0], distance=first.steps[0].distance * 0)
    changed = (
        replace(first, unit_percent=2 * first.unit_percent),
        replace(first, steps=(nearer, *first.steps[1:])),
    )
    data = [replace(rollouts, episodes=tuple(others)), demonstrated(rollouts)]
    data += [replace(rollouts, episodes=(one, *others)) for one in changed]
    return [{"rollouts": one} for one in data]


_PPO = PPOConfig(total_steps=256, steps_per_update=8, batch_size=32, epochs=2)


def ppo_in_parts(place: Path | None, on_step: OnStep, **changes: Any) -> bytes:
    """Train a policy over slots, whose observations are in named parts."""
    settings = {"config": _PPO, "seed": 0, "fingerprint": "slots"} | changes
    network = {"net_arch": [16]}
    return _weights(
        train_policy(SlotDream(noise=1.0), SlotPolicy, network, **settings, checkpoint=place, on_update=on_step)
    )


def ppo_in_the_pooled_dream(place: Path | None, on_step: OnStep, **changes: Any) -> bytes:
    """Train a controller over (rule, location) in a dream of an untrained model: flat observations."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = GraphLevelModel(WorldModelArguments.of(_rollouts(), world_models.SMALL)).eval().requires_grad_(False)
    config = ControllerConfig(**vars(_PPO), width=16, rule_embedding=4)
    settings = {"seed": 0, "dream": GraphLevelDreamConfig(num_envs=8, max_steps=12)} | changes
    dream = GraphLevelDream.of(model, _rollouts(), settings["dream"])
    training = train_in_dream(dream, config, seed=settings["seed"], checkpoint=place, on_round=on_step)
    return _weights(training.controller.policy)


_EVOLUTION = CmaEsConfig(generations=4, population=6, generations_per_trial=2)


def evolution(place: Path | None, on_step: OnStep, **changes: Any) -> bytes:
    """Evolve a linear controller."""
    settings = {"config": _EVOLUTION, "seed": 0, "fingerprint": "toy"} | changes
    return _weights(evolve(KindDream(), LinearPointer(2), **settings, checkpoint=place, on_update=on_step))


def training_on_a_graph(place: Path | None, on_step: OnStep, **changes: Any) -> bytes:
    """Train a pointer policy on the real graph, through the eyes of an untrained V."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        arguments = MatchLevelModelArguments(small_token_rollouts().vocabulary, LIBRARY.hash, token_worlds.SMALL)
        model = MatchLevelModel(arguments).eval().requires_grad_(False)
    settings = {"seed": 0, "episodes": RealEpisodesConfig(num_envs=4, max_steps=3, max_kinds=48)} | changes
    graph = RealGraph(model, small_process(), settings["episodes"])
    config = MatchLevelControllerConfig(total_steps=96, steps_per_update=8, batch_size=32, epochs=1, width=8)
    found = train_in_dream(graph, config, seed=settings["seed"], checkpoint=place, on_round=on_step)
    return _weights(found.controller.policy)


def pooled_collection(place: Path | None, on_step: OnStep, **changes: Any) -> bytes:
    """Collect episodes over (rule, location)."""
    env = SubstitutionEnv(
        from_onnx(zoo.build("tiny_merge")), LIBRARY, AnalyticCost(), config=EnvironmentConfig(max_steps=8)
    )
    settings = {"config": CollectionConfig(episodes=5, terminate_probability=0.1), "seed": 3} | changes
    collection = collect(env, **settings, checkpoint=place, on_episode=on_step)
    return _files(lambda folder: collection.save(folder, env))


def token_collection(place: Path | None, on_step: OnStep, **changes: Any) -> bytes:
    """Collect episodes over match tokens."""
    settings = {"config": FEW, "seed": 0} | changes
    found = collect_tokens(
        small_process(), "bert", **settings, library_hash=LIBRARY.hash, checkpoint=place, on_episode=on_step
    )
    return _files(lambda folder: token_archive.save(found.rollouts, folder))


def rows(place: Path | None, on_step: OnStep, **changes: Any) -> bytes:
    """Make rows, each of which is kept."""
    made, kept = [], None if place is None else Kept[Any].as_json(place / fingerprint(changes))
    for number in range(4):

        def row(number: int = number) -> dict[str, float]:
            return {"number": number, "third": number / 3} | changes

        new = kept is None or kept.find(str(number)) is None
        made.append(row() if kept is None else kept.get_or(str(number), row))
        if new:
            on_step(number, made[-1])
    return repr(made).encode()


RESUMABLE: Mapping[str, Resumable] = {
    "fit at graph level": Resumable(
        pooled_fit,
        lambda: [
            {"seed": 1},
            {"config": replace(world_models.SMALL, learning_rate=1e-4)},
            {"rollouts": replace(_rollouts(), episodes=_rollouts().episodes[:-1])},
        ],
    ),
    "fit at match level": Resumable(
        token_fit,
        lambda: [{"seed": 1}, {"config": replace(token_worlds.SMALL, learning_rate=1e-4)}, *_other_token_fits()],
    ),
    "PPO, observations in parts": Resumable(
        ppo_in_parts, lambda: [{"seed": 1}, {"fingerprint": "other"}, {"config": replace(_PPO, learning_rate=1e-4)}]
    ),
    "PPO in the dream at graph level": Resumable(
        ppo_in_the_pooled_dream, lambda: [{"seed": 1}, {"dream": GraphLevelDreamConfig(num_envs=8, max_steps=11)}]
    ),
    "evolution": Resumable(
        evolution, lambda: [{"seed": 1}, {"fingerprint": "other"}, {"config": replace(_EVOLUTION, population=7)}]
    ),
    "training on the graph": Resumable(
        training_on_a_graph,
        lambda: [{"seed": 1}, {"episodes": RealEpisodesConfig(num_envs=4, max_steps=4, max_kinds=48)}],
    ),
    "collection at graph level": Resumable(
        pooled_collection, lambda: [{"seed": 4}, {"config": CollectionConfig(episodes=5, terminate_probability=0.2)}]
    ),
    "collection at match level": Resumable(
        token_collection,
        lambda: [
            {"seed": 1},
            {"config": replace(FEW, steps=3)},
            {"config": replace(FEW, led=(0.5,))},
        ],
    ),
    "rows": Resumable(rows, lambda: [{"other": 1}]),
}
