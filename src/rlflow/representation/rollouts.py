"""Episodes of a random agent in the real environment: all that V and M are fitted on.

Episodes mostly revisit graphs, so the graphs are stored once (`Rollouts.graphs`) and an episode holds indices: the
episode that goes from graph 0 to 4 and back has graph_index (0, 4, 0), with two actions and two rewards.

The invariant: rollouts that load are whole. Every length, index, count and number is checked when one is built, so
nothing later needs to.
"""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated

import numpy as np

from rlflow.atomic_file import written_whole
from rlflow.errors import InputError
from rlflow.representation.action_space import ActionSpace
from rlflow.representation.graph_arrays import GraphArrays
from rlflow.representation.packing import Along, pack, unpack
from rlflow.representation.vocabulary import Vocabulary

FORMAT_VERSION = 2

_WHERE_KNOWN = ("memory_saved", "latency_saved")
"""Arrays that are stored if any of their numbers is known."""


@dataclass(frozen=True)
class Episode:
    """T steps through T + 1 states.

    graph_index: (T+1,) int64 into `Rollouts.graphs`. action: (T, 2) int64 (rule, location), terminate is (R,
    0). reward: (T,) float32. terminated: (T,) bool, true where the agent chose terminate; reaching the
    horizon is not termination. counts: (T+1, R) int64 matches per rule, at most L. cost: (T+1,) float32,
    runtime in percent of the start's. memory_saved: (T,) float32, of the memory accesses, in percent of the start's;
    NaN where nobody has looked. latency_saved: (T,) float32, of the latency, likewise, since it was measured before;
    NaN where it was not measured after the step.
    """

    graph_index: Annotated[np.ndarray, Along("steps", extra=1)]
    action: Annotated[np.ndarray, Along("steps")]
    reward: Annotated[np.ndarray, Along("steps")]
    terminated: Annotated[np.ndarray, Along("steps")]
    counts: Annotated[np.ndarray, Along("steps", extra=1)]
    cost: Annotated[np.ndarray, Along("steps", extra=1)]
    memory_saved: Annotated[np.ndarray, Along("steps")]
    latency_saved: Annotated[np.ndarray, Along("steps")]

    def __post_init__(self) -> None:
        steps = len(self.reward)
        states = {"graph_index": self.graph_index, "counts": self.counts, "cost": self.cost}
        wrong = [name for name, array in states.items() if len(array) != steps + 1]
        wrong += [name for name in ("action", "terminated", *_WHERE_KNOWN) if len(getattr(self, name)) != steps]
        if wrong:
            raise InputError(f"episode of {steps} steps: {', '.join(wrong)} of the wrong length")
        if self.terminated[:-1].any():
            raise InputError("episode: it goes on after terminate; end it with that step")

    @property
    def num_steps(self) -> int:
        """T."""
        return len(self.reward)


@dataclass
class GraphBank:
    """Distinct graphs in the order in which they were met, and the place of each by its hash."""

    graphs: list[GraphArrays] = field(default_factory=list)
    places: dict[str, int] = field(default_factory=dict)

    def place(self, key: str, make: Callable[[], GraphArrays]) -> int:
        """Return the place of the graph with this hash; `make` makes the arrays of one that is new."""
        if key not in self.places:
            self.places[key] = len(self.graphs)
            self.graphs.append(make())
        return self.places[key]


@dataclass(frozen=True)
class Rollouts:
    """Distinct graphs and the episodes that visit them.

    rule_ids: stable ids, in the order of the rules' indices. vocabulary: the names of the operators and features behind
    the numbers of `graphs`. library_hash: of the rule library that the episodes were collected with.
    """

    graphs: tuple[GraphArrays, ...]
    episodes: tuple[Episode, ...]
    action_space: ActionSpace
    rule_ids: tuple[str, ...]
    vocabulary: Vocabulary
    library_hash: str

    def __post_init__(self) -> None:
        rules, locations = self.action_space.num_rules, self.action_space.max_locations
        if len(self.rule_ids) != rules or len(set(self.rule_ids)) != rules:
            raise InputError(
                f"rollouts: {len(set(self.rule_ids))} different rule ids for {rules} rules; give each rule one"
            )
        operators, features = len(self.vocabulary.operators), len(self.vocabulary.features)
        if any(graph.op.max(initial=0) >= operators for graph in self.graphs):
            raise InputError(f"rollouts: an operator lies outside the vocabulary of {operators}")
        if any(graph.features.shape[1] != features for graph in self.graphs):
            raise InputError(f"rollouts: a graph does not have the {features} features of the vocabulary")
        for number, episode in enumerate(self.episodes):
            if not (0 <= episode.graph_index.min() and episode.graph_index.max() < len(self.graphs)):
                raise InputError(f"rollouts: episode {number} names a graph that is not there")

            counts = episode.counts
            in_range = counts.min(initial=0) >= 0 and counts.max(initial=0) <= locations
            if counts.shape[1] != rules or not in_range:
                raise InputError(
                    f"rollouts: episode {number} has match counts outside of 0..{locations}, or not for {rules} rules"
                )
            if not (np.isfinite(episode.reward).all() and np.isfinite(episode.cost).all()):
                raise InputError(f"rollouts: episode {number} has a reward or cost that is not finite")

    @property
    def num_steps(self) -> int:
        """The number of steps in the real environment."""
        return sum(episode.num_steps for episode in self.episodes)

    def save(self, folder: Path) -> None:
        """Write `rollouts.json` and `rollouts.npz`; equal rollouts give equal bytes."""
        graphs = pack(GraphArrays, self.graphs)
        narrow = {name: graphs[name].astype(np.int32) for name in ("op", "edges")}  # a graph has fewer than 2**31 nodes
        episodes = pack(Episode, self.episodes)
        unknown = {name for name in _WHERE_KNOWN if np.isnan(episodes[name]).all()}
        arrays = {**graphs, **narrow, **{name: array for name, array in episodes.items() if name not in unknown}}
        with written_whole(folder / "rollouts.npz") as draft:
            np.savez_compressed(draft, **arrays)  # type: ignore[arg-type]
        description = {
            "format_version": FORMAT_VERSION,
            "max_locations": self.action_space.max_locations,
            "rule_ids": list(self.rule_ids),
            "vocabulary": asdict(self.vocabulary),
            "library_hash": self.library_hash,
            "episodes": len(self.episodes),
            "graphs": len(self.graphs),
            "steps": self.num_steps,
        }
        (folder / "rollouts.json").write_text(json.dumps(description, indent=2) + "\n")

    @classmethod
    def load(cls, folder: Path) -> "Rollouts":
        """Read what `save` wrote. Raises InputError if the folder holds no such rollouts."""
        try:
            description = json.loads((folder / "rollouts.json").read_text())
            if description.get("format_version") != FORMAT_VERSION:
                raise InputError(f"rollouts: {folder} has another format version; run collect_rollouts again")
            with (folder / "rollouts.npz").open("rb") as file, np.load(file, allow_pickle=False) as arrays:
                packed = dict(arrays)
            packed = dict.fromkeys(_WHERE_KNOWN, np.full(len(packed["reward"]), np.nan, np.float32)) | packed
            graphs, episodes = tuple(unpack(GraphArrays, packed)), tuple(unpack(Episode, packed))
        except InputError:
            raise
        except Exception as error:  # a broken archive raises nearly anything, by which of its bytes is broken
            raise InputError(f"rollouts: {folder} cannot be read ({error}); run collect_rollouts") from error
        rule_ids = tuple(description["rule_ids"])
        return cls(
            graphs=graphs,
            episodes=episodes,
            action_space=ActionSpace(len(rule_ids), description["max_locations"]),
            rule_ids=rule_ids,
            vocabulary=Vocabulary.from_json(description["vocabulary"]),
            library_hash=description["library_hash"],
        )
