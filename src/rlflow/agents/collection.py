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
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from rlflow.agents.random_agent import RandomAgent
from rlflow.atomic_file import written_whole
from rlflow.environments.substitution_env import SubstitutionEnv, SubstitutionState
from rlflow.errors import InputError, RLFlowError
from rlflow.representation.graph_arrays import GraphArrays
from rlflow.representation.rollouts import Episode, Rollouts
from rlflow.trajectory import record
from rlflow.trajectory.record import Trajectory

CHECKPOINT_INTERVAL_S = 60.0

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class CollectionConfig:
    """The number of episodes, the longest time that they may take (None: no limit), and the random agent's settings."""

    episodes: int = 200
    time_limit_s: float | None = None
    terminate_probability: float = 0.0
    concentration: float | None = None


@dataclass
class Collection:
    """Distinct graphs, the place of each graph's hash among them, episodes, and the trajectories that repeat them."""

    graphs: list[GraphArrays] = field(default_factory=list)
    places: dict[str, int] = field(default_factory=dict)
    episodes: list[Episode] = field(default_factory=list)
    trajectories: list[Trajectory] = field(default_factory=list)
    matches_beyond_limit: int = 0

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
    before: Collection | None = None,
    ways: Sequence[Trajectory] = (),
    checkpoint: Path | None = None,
    on_episode: Callable[[int, Episode], None] | None = None,
) -> Collection:
    """Play episodes one after another, until there are enough of them or the time is over.

    before: a collection to which they are added. ways: from the start, on which they begin; at the start itself where
    there are none. checkpoint: a folder; if it holds a collection, episodes are added to that one. on_episode(number,
    episode) after each.
    """
    agent = RandomAgent(env.actions, config.terminate_probability, config.concentration)
    enough = config.episodes + (len(before.episodes) if before is not None else 0)
    collection = _resumed(checkpoint, env) or before or Collection()
    started = saved = time.monotonic()
    for number in range(len(collection.episodes), enough):
        if config.time_limit_s is not None and time.monotonic() - started >= config.time_limit_s:
            log.info("time limit of %.0f s reached after %d episodes", config.time_limit_s, number)
            break

        episode = _play(env, agent, collection, ways, np.random.default_rng([seed, number]))
        if on_episode is not None:
            on_episode(number, episode)

        if checkpoint is not None and time.monotonic() - saved >= CHECKPOINT_INTERVAL_S:
            collection.save(checkpoint, env)
            saved = time.monotonic()

    if checkpoint is not None:
        collection.save(checkpoint, env)
    return collection


def _resumed(checkpoint: Path | None, env: SubstitutionEnv) -> Collection | None:
    if checkpoint is None or not (checkpoint / "collection.json").exists():
        return None
    try:
        return Collection.load(checkpoint, env)
    except RLFlowError as error:
        log.warning("%s; starting afresh", error)
        return None


def _play(
    env: SubstitutionEnv,
    agent: RandomAgent,
    collection: Collection,
    ways: Sequence[Trajectory],
    rng: np.random.Generator,
) -> Episode:
    """Play one episode and add it to the collection."""
    env.reset(seed=int(rng.integers(2**31)))
    rule_weights = agent.draw_rule_weights(rng)
    if ways:
        _go(env, ways[int(rng.integers(len(ways)))], rng)

    # T + 1 states, T steps
    states = [env.state]
    actions: list[tuple[int, int]] = []
    rewards: list[float] = []
    ended = terminated = False
    while not ended:
        action = agent.act(env.state.counts, rule_weights, rng)
        _, reward, terminated, truncated, _ = env.step(action)
        ended = terminated or truncated
        actions.append(action)
        rewards.append(reward)
        states.append(env.state)

    episode = Episode(
        graph_index=np.array([_place(state, collection) for state in states], dtype=np.int64),
        action=np.array(actions, dtype=np.int64),
        reward=np.array(rewards, dtype=np.float32),
        terminated=np.array([False] * (len(rewards) - 1) + [terminated]),
        counts=np.array([state.counts for state in states], dtype=np.int64),
        cost=np.array([state.percent for state in states], dtype=np.float32),
    )
    collection.matches_beyond_limit += sum(state.beyond for state in states[1:])
    collection.episodes.append(episode)
    collection.trajectories.append(env.trajectory())
    return episode


def _go(env: SubstitutionEnv, way: Trajectory, rng: np.random.Generator) -> None:
    """Take the first steps of a way, any number of them that leaves some of the horizon."""
    numbers = {rule.id: number for number, rule in enumerate(env.library.rules)}
    for step in way.steps[: int(rng.integers(min(len(way.steps) + 1, env.config.max_steps)))]:
        env.step((numbers[step.rule], step.location))


def _place(state: SubstitutionState, collection: Collection) -> int:
    """The place of a graph among the distinct ones; a new graph is added at their end."""
    place = collection.places.setdefault(state.hash, len(collection.graphs))
    if place == len(collection.graphs):
        collection.graphs.append(state.arrays)
    return place
