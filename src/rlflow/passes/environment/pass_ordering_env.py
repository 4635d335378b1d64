"""Pass ordering as a choice among whole-graph compiler passes, one after another, or stop.

    env = gymnasium.make("rlflow.environments:rlflow/PassOrdering-v0", backend="xla", sources=["gpt2/step"])
    observation, info = env.reset(seed=0)
    observation, reward, terminated, truncated, info = env.step(env.unwrapped.passes.index("algsimp"))
    info["operations"], info["best_operations"]

A state is a program, and programs are immutable, so that `fork` and `undo` cost nothing. A pass that fails, crashes the
compiler or never ends leaves the program as it is, and `info["error"]` says why; the episode goes on.

The invariant: the same source, settings and actions lead to the same programs, observations and rewards in any process,
whatever is known there of other episodes (of rewards, `run_time` is measured and excepted).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from rlflow.errors import InputError
from rlflow.ir.graph import Graph
from rlflow.passes import search
from rlflow.passes.backend import Facts, PassError
from rlflow.passes.environment.rewards import PassReward, PassTransition, TimingConfig
from rlflow.passes.record import PassRecord
from rlflow.passes.transitions import Transitions
from rlflow.passes.worker import WorkerBackend
from rlflow.representation.features import Featuriser, vocabulary_of
from rlflow.representation.graph_arrays import GraphArrays
from rlflow.representation.vocabulary import Vocabulary

_MOST_ARRAYS = 256

Observation = dict[str, Any]
VECTORS = ("counts", "cost", "tried", "progress")
"""The parts of an observation that are vectors, which agents read; all of them by default."""
OBSERVATIONS = (*VECTORS, "graph")
"""The parts of an observation that can be chosen."""


@dataclass(frozen=True)
class PassOrderingConfig:
    """Settings of an episode.

    observation: parts of `OBSERVATIONS`. reward: a name of `rlflow.passes.environment.rewards`. max_steps: after so
    many passes an episode is cut off. timing: behind the reward `run_time`.
    """

    observation: tuple[str, ...] = VECTORS
    reward: str = "delta"
    max_steps: int = 24
    timing: TimingConfig = field(default_factory=TimingConfig)

    def __post_init__(self) -> None:
        if unknown := [name for name in self.observation if name not in OBSERVATIONS]:
            raise InputError(f"there is no observation {unknown[0]!r}: choose among {', '.join(OBSERVATIONS)}")
        if not self.observation or self.max_steps < 1:
            raise InputError("an episode needs something to observe, and at least one step")


@dataclass(frozen=True)
class _State:
    """A program, the passes that led to it, and those that have been tried on it since it was reached."""

    facts: Facts
    taken: tuple[str, ...] = ()
    tried: frozenset[int] = frozenset()
    steps: int = 0


class PassOrderingEnv(gymnasium.Env[Observation, int]):
    """Pass ordering as docs/pass_ordering.md describes it.

    Observation: `counts` (K + 1,) float32, operations by type, the last all types beside the catalogue's; `cost` (3,)
    float32, floating-point operations, transcendental ones and bytes accessed in percent of the start; `tried` (A,),
    the passes that have been tried on this very program in this episode, and left it as it is; `progress` (1,), the
    share of the horizon that is over; if asked for, `graph`, the program as `GraphArrays`: nodes (N, 1 + F), the
    operator in `vocabulary` and its features, and edge_links (E, 2). Action: a pass by its index; A stops.

    `action_masks` leaves out what was tried. An episode begins with a program drawn from `sources`, or with
    `options["source"]`, and after `options["passes"]` if there are any. `info` has `source`, `operations`,
    `best_operations` (the fewest so far), `key`, `changed` and, where a pass has failed, `error`.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 1}  # noqa: RUF012

    def __init__(
        self,
        transitions: Transitions,
        sources: Sequence[str] | None = None,
        *,
        config: PassOrderingConfig | None = None,
        render_mode: str | None = None,
    ) -> None:
        if render_mode not in (None, "ansi"):
            raise InputError(f"unknown render mode {render_mode!r}: choose 'ansi' or None")
        self.config, self.transitions, self.render_mode = config or PassOrderingConfig(), transitions, render_mode
        self.catalogue = transitions.backend.catalogue()
        self.sources = tuple(sources or (source.name for source in transitions.backend.sources()))
        self.reward = PassReward(self.config.reward, transitions, self.config.timing)
        self.action_space: spaces.Space[int] = spaces.Discrete(len(self.passes) + 1)  # type: ignore[assignment]
        self._featuriser = Featuriser(vocabulary_of(self.catalogue.operations), self.catalogue.operations)
        self.observation_space: spaces.Space[Observation] = self._observation_space()  # type: ignore[assignment]
        self._place = {operation: place for place, operation in enumerate(self.catalogue.operations)}
        self._source = ""
        self._visited: tuple[_State, ...] = ()
        self._arrays: dict[str, GraphArrays] = {}  # of programs that were met last

    @property
    def passes(self) -> tuple[str, ...]:
        """The names of the actions before the last."""
        return self.catalogue.passes

    @property
    def stop(self) -> int:
        """The action that ends an episode: A."""
        return len(self.passes)

    @property
    def facts(self) -> Facts:
        """The present program's facts."""
        return self._now.facts

    @property
    def start_facts(self) -> Facts:
        """The facts of the program that the episode began with."""
        _ = self._now
        return self._visited[0].facts

    @property
    def best(self) -> Facts:
        """The program with the fewest operations so far, the first of such."""
        _ = self._now
        return min((state.facts for state in self._visited), key=lambda facts: facts.operations)

    @property
    def vocabulary(self) -> Vocabulary:
        """The words in which graphs are written: the compiler's operations, of which what `rlflow.ir` does not
        understand looks opaque.
        """
        return self._featuriser.vocabulary

    def graph(self) -> Graph:
        """The present program as a graph."""
        return self.transitions.backend.graph(self.transitions.payload(self.facts.key))

    def graph_arrays(self) -> GraphArrays:
        """The present program as arrays in `vocabulary`, for the encoders of `rlflow.world_model`."""
        key = self.facts.key
        if key not in self._arrays:
            if len(self._arrays) >= _MOST_ARRAYS:
                del self._arrays[next(iter(self._arrays))]
            self._arrays[key] = self._featuriser.arrays(self.graph())
        return self._arrays[key]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Observation, dict]:
        """Begin with a program drawn from the sources, or with `options["source"]`, after `options["passes"]`."""
        super().reset(seed=seed)
        drawn, asked = self.sources[int(self.np_random.integers(len(self.sources)))], options or {}
        self._source = str(asked.get("source", drawn))
        begun = search.sequence(self.transitions, self.transitions.start(self._source), asked.get("passes", ()))
        self._visited = (_State(begun.facts, begun.passes),)
        return self._observation(), self._info()

    def step(self, action: int) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Run a pass, or stop. A pass that changes nothing, or fails, costs a step all the same."""
        before, number = self._now, int(action)
        if not 0 <= number <= self.stop:
            raise InputError(f"there is no action {number}: passes are 0 to {self.stop - 1}, and {self.stop} stops")
        terminated, error = number == self.stop, ""
        if not terminated:
            outcome = self.transitions.step(before.facts.key, self.passes[number])
            error = outcome.error
            self._visited += (_after(before, number, self.passes[number], outcome.facts),)
        truncated = not terminated and self._now.steps >= self.config.max_steps

        transition = PassTransition(self.start_facts, before.facts, self.facts, terminated or truncated)
        try:
            earned = self.reward(transition)
        except PassError as failure:
            earned, error = 0.0, error or str(failure)
        told = {"changed": self.facts.key != before.facts.key} | ({"error": error} if error else {})
        return self._observation(), earned, terminated, truncated, self._info() | told

    def action_masks(self) -> np.ndarray:
        """(A + 1,) bool: the passes that are not known to change nothing here, and stop."""
        mask = np.ones(self.stop + 1, bool)
        mask[list(self._now.tried)] = False
        return mask

    def fork(self) -> PassOrderingEnv:
        """Another environment in the same state, which goes its own way from here."""
        other = PassOrderingEnv(self.transitions, self.sources, config=self.config, render_mode=self.render_mode)
        other._source, other._visited, other._arrays = self._source, self._visited, dict(self._arrays)
        other.np_random = np.random.default_rng()
        other.np_random.bit_generator.state = self.np_random.bit_generator.state
        return other

    def undo(self) -> tuple[Observation, dict[str, Any]]:
        """Go back to before the last pass. `InputError` at the start of an episode."""
        if len(self._visited) < 2:
            raise InputError("there is no pass to undo: this is where the episode began")
        self._visited = self._visited[:-1]
        return self._observation(), self._info()

    def record(self) -> PassRecord:
        """The passes from the source to the best program of this episode, without those that changed nothing."""
        best = min(self._visited, key=lambda state: state.facts.operations)
        source = self.transitions.start(self._source)
        return PassRecord.of(self.transitions, self.catalogue.name, self._source, source, best.taken)

    def render(self) -> str | None:  # type: ignore[override]
        """The program's operations and the passes so far, with `render_mode="ansi"`; otherwise None."""
        if self.render_mode is None:
            return None
        counts = ", ".join(f"{count} {operation}" for operation, count in self.facts.counts)
        lines = [f"{self._source}: {self.facts.operations} operations, {self.start_facts.operations} at the start"]
        return "\n".join([*lines, f"  passes: {', '.join(self._now.taken) or 'none'}", f"  {counts}"])

    @property
    def _now(self) -> _State:
        if not self._visited:
            raise InputError("call reset() before anything else")
        return self._visited[-1]

    def _info(self) -> dict[str, Any]:
        operations = {"operations": self.facts.operations, "best_operations": self.best.operations}
        return {"source": self._source, "key": self.facts.key} | operations

    def _observation(self) -> Observation:
        state, start = self._now, self.start_facts
        counts = np.zeros(len(self._place) + 1, np.float32)
        for operation, count in state.facts.counts:
            counts[self._place.get(operation, len(self._place))] += count
        tried = np.zeros(len(self.passes), np.int8)
        tried[list(state.tried)] = 1
        parts: dict[str, Any] = {
            "counts": counts,
            "cost": _cost_percent(state.facts, start),
            "tried": tried,
            "progress": np.array([state.steps / self.config.max_steps], np.float32),
        }
        if "graph" in self.config.observation:
            parts["graph"] = _as_instance(self.graph_arrays())
        return {name: parts[name] for name in self.config.observation}

    def _observation_space(self) -> spaces.Dict:
        parts: Mapping[str, spaces.Space[Any]] = {
            "counts": spaces.Box(0.0, np.inf, (len(self.catalogue.operations) + 1,), np.float32),
            "cost": spaces.Box(0.0, np.inf, (3,), np.float32),
            "tried": spaces.MultiBinary(len(self.passes)),
            "progress": spaces.Box(0.0, 1.0, (1,), np.float32),
            "graph": spaces.Graph(
                spaces.Box(-np.inf, np.inf, (1 + len(self.vocabulary.features),), np.float32), spaces.Discrete(1)
            ),
        }
        return spaces.Dict({name: parts[name] for name in self.config.observation})


def pass_ordering_env(
    backend: str = "onnx",
    sources: Sequence[str] | None = None,
    cache: Path | str | None = None,
    render_mode: str | None = None,
    **settings: Any,
) -> PassOrderingEnv:
    """`rlflow/PassOrdering-v0`: a backend by its name, in a process of its own.

    `cache` is a file in which transitions are kept, for other environments as well. `settings` are those of
    `PassOrderingConfig`. Raises `InputError` for what cannot be used.
    """
    transitions = Transitions(WorkerBackend(backend), Path(cache) if cache is not None else None)
    return PassOrderingEnv(transitions, sources, config=PassOrderingConfig(**settings), render_mode=render_mode)


def _after(before: _State, number: int, name: str, facts: Facts) -> _State:
    if facts.key == before.facts.key:
        return _State(facts, before.taken, before.tried | {number}, before.steps + 1)
    return _State(facts, (*before.taken, name), steps=before.steps + 1)


def _as_instance(arrays: GraphArrays) -> spaces.GraphInstance:
    """Return the graph in the form of gymnasium, where edges must be something: here they are all 0."""
    nodes = np.concatenate((arrays.op[:, None].astype(np.float32), arrays.features), axis=1)
    return spaces.GraphInstance(nodes, np.zeros(len(arrays.edges), np.int64), arrays.edges.copy())


def _cost_percent(facts: Facts, start: Facts) -> np.ndarray:
    pairs = [
        (facts.cost.flops, start.cost.flops),
        (facts.cost.transcendentals, start.cost.transcendentals),
        (facts.cost.bytes_accessed, start.cost.bytes_accessed),
    ]
    return np.array([100.0 * now / began if began else 100.0 for now, began in pairs], np.float32)
