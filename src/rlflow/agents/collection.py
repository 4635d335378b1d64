"""Collect episodes of a random agent in the real environment, for the world model to be fitted on.

    collection = collect(env, CollectionConfig(episodes=200), seed=0, checkpoint=folder)
    rollouts = collection.rollouts(env)

Most steps of different episodes meet the same graphs, so each distinct graph is stored once, and an episode stores the
places of its graphs in that list.

The invariant: episode k depends on (seed, k) alone, so a collection that was killed and resumed is the same as one that
ran through.
"""

import json
import logging
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np

from rlflow.agents.episode_shards import played_once
from rlflow.agents.random_agent import RandomAgent, Stepped, play
from rlflow.atomic_file import written_whole
from rlflow.environments.end_to_end import EndToEnd, latency_saved
from rlflow.environments.substitution_env import SubstitutionEnv, SubstitutionState
from rlflow.environments.transition import Transition
from rlflow.errors import InputError
from rlflow.kept import Kept, fingerprint
from rlflow.representation.graph_arrays import GraphArrays
from rlflow.representation.rollouts import Episode, GraphBank, Rollouts
from rlflow.trajectory import record
from rlflow.trajectory.record import Trajectory

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class CollectionConfig:
    """The number of episodes, the longest time that they may take (None: no limit), and the random agent's settings."""

    episodes: int = 200
    time_limit_s: float | None = None
    terminate_probability: float = 0.0
    concentration: float | None = None


@dataclass
class Collection(GraphBank):
    """The bank of the graphs of episodes, the episodes, and the trajectories that repeat them."""

    episodes: list[Episode] = field(default_factory=list)
    trajectories: list[Trajectory] = field(default_factory=list)
    matches_beyond_limit: int = 0

    def add(self, other: "Collection") -> None:
        """Add the episodes of another collection."""
        numbers = [self.place(key, partial(other.graphs.__getitem__, number)) for key, number in other.places.items()]
        places = np.array(numbers, dtype=np.int64)
        self.episodes += [replace(episode, graph_index=places[episode.graph_index]) for episode in other.episodes]
        self.trajectories += other.trajectories
        self.matches_beyond_limit += other.matches_beyond_limit

    def rollouts(self, env: SubstitutionEnv) -> Rollouts:
        """The episodes in the form in which V and M read them."""
        return Rollouts(
            graphs=tuple(self.graphs),
            episodes=tuple(self.episodes),
            action_space=env.actions,
            rule_ids=tuple(rule.id for rule in env.library.rules),
            vocabulary=env.vocabulary,
            library_hash=env.library.hash,
        )

    def save(self, folder: Path, env: SubstitutionEnv) -> None:
        """Write the rollouts, the trajectories, and the hashes of the graphs, which belong to neither."""
        self.rollouts(env).save(folder)
        record.save(self.trajectories, folder / "trajectories.jsonl")
        details = {"hashes": list(self.places), "matches_beyond_limit": self.matches_beyond_limit}
        with written_whole(folder / "collection.json") as draft:
            draft.write_text(json.dumps(details) + "\n")

    @classmethod
    def load(cls, folder: Path, env: SubstitutionEnv) -> "Collection":
        """Read what `save` wrote. `InputError` if it is incomplete, or was not collected in such an environment."""
        rollouts, own = Rollouts.load(folder), cls().rollouts(env)
        for part in ("rule_ids", "action_space", "vocabulary"):
            if getattr(rollouts, part) != getattr(own, part):
                raise InputError(f"collection: {folder} has another {part.replace('_', ' ')}; run collect_rollouts")

        trajectories = record.load(folder / "trajectories.jsonl")
        try:
            details = json.loads((folder / "collection.json").read_text())
        except (OSError, ValueError) as error:
            raise InputError(f"collection: {folder} cannot be read ({error}); run collect_rollouts") from error

        lengths = len(rollouts.graphs), len(rollouts.episodes)
        if lengths != (len(details["hashes"]), len(trajectories)):
            raise InputError(f"collection: the files of {folder} do not belong together; run collect_rollouts")

        places = {name: place for place, name in enumerate(details["hashes"])}
        return cls(
            graphs=list(rollouts.graphs),
            places=places,
            episodes=list(rollouts.episodes),
            trajectories=trajectories,
            matches_beyond_limit=details["matches_beyond_limit"],
        )


def collect(
    env: SubstitutionEnv,
    config: CollectionConfig,
    *,
    seed: int,
    timed: EndToEnd | None = None,
    checkpoint: Path | None = None,
    on_episode: Callable[[int, Episode], None] | None = None,
) -> Collection:
    """Play episodes one after another, until there are enough of them or the time is over.

    timed: times the graphs on the way, so that the rollouts tell of latency, too. checkpoint: a folder; episodes that
    lie there already are not played again, unless seed, settings, rules or vocabulary were others. on_episode(number,
    episode) after each that is played.
    """
    agent = RandomAgent(env.actions, config.terminate_probability, config.concentration)
    collection = Collection()

    def one(number: int) -> Collection:
        return _played(env, agent, collection, timed, np.random.default_rng([seed, number]))

    def told(number: int, part: Collection) -> None:
        if on_episode is not None:
            on_episode(number, part.episodes[0])

    shards = None
    if checkpoint is not None:
        settings = replace(config, episodes=0, time_limit_s=None)
        run = fingerprint(seed, settings, env.library.hash, env.actions, env.vocabulary, timed and timed.config)
        shards = Kept(checkpoint / run, partial(Collection.save, env=env), partial(Collection.load, env=env))
    numbers = _in_time(range(config.episodes), config.time_limit_s)
    for part in played_once(numbers, shards, one, told):
        collection.add(part)
    return collection


def _in_time(numbers: Iterable[int], time_limit_s: float | None) -> Iterator[int]:
    """Yield the numbers until the time is over."""
    started = time.monotonic()
    for number in numbers:
        if time_limit_s is not None and time.monotonic() - started >= time_limit_s:
            log.info("time limit of %.0f s reached after %d episodes", time_limit_s, number)
            return
        yield number


def _played(
    env: SubstitutionEnv, agent: RandomAgent, known: GraphBank, timed: EndToEnd | None, rng: np.random.Generator
) -> Collection:
    """Play one episode; the arrays of graphs that are known are taken from there."""
    part = Collection()
    visited = list[SubstitutionState]()

    def observe() -> tuple[int, np.ndarray, float]:
        state = env.state
        return part.place(state.hash, partial(_arrays, state, known)), state.counts, state.percent

    def step(action: tuple[int, int]) -> Stepped:
        _, _, terminated, truncated, _ = env.step(action)
        part.matches_beyond_limit += env.state.beyond
        visited.append(env.state)
        taken = Transition(visited, terminated or truncated)
        change = taken.change
        return Stepped(change.saved, terminated, truncated, change.memory_saved, latency_saved(timed, taken))

    env.reset(seed=int(rng.integers(2**31)))
    visited.append(env.state)
    weights = agent.draw_rule_weights(rng)
    part.episodes.append(play(agent, weights, observe, step, rng))
    part.trajectories.append(env.trajectory())
    return part


def _arrays(state: SubstitutionState, known: GraphBank) -> GraphArrays:
    place = known.places.get(state.hash)
    return state.arrays if place is None else known.graphs[place]
