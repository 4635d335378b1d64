"""The work of the study of pass ordering, in pieces of minutes: baselines, an agent by one seed, times.

    AgentCell(compiler, "ppo", sources, held_out, config, episode, effort, seed=0).run()     {"ppo": Row(...)}

Cells of a backend share a file of transitions: what one of them has asked of the compiler, the others know.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Protocol

from rlflow.passes import core_set, search
from rlflow.passes.agents.dreamt import train_in_dream
from rlflow.passes.agents.pass_agent_config import DreamtConfig, PassAgentConfig
from rlflow.passes.agents.playing import PlayConfig, Playing, Untrained, play
from rlflow.passes.agents.training import train
from rlflow.passes.backend import Facts, PassError
from rlflow.passes.core_set import CoreSet
from rlflow.passes.environment.pass_ordering_env import PassOrderingConfig
from rlflow.passes.environment.rewards import TimingConfig
from rlflow.passes.search import Found
from rlflow.passes.transitions import Transitions
from rlflow.passes.worker import WorkerBackend
from studies.pass_ordering.rows import Outcome, Row


@dataclass(frozen=True)
class Compiler:
    """A backend by its name, and the file in which its transitions are kept."""

    backend: str
    cache: Path

    @contextmanager
    def transitions(self) -> Iterator[Transitions]:
        """The transitions, with the backend in a process of its own."""
        with WorkerBackend(self.backend) as backend:
            yield Transitions(backend, self.cache)


class Cell(Protocol):
    """A piece of the study."""

    def run(self) -> dict[str, Row]:
        """Return the rows by entrant."""
        ...


@dataclass(frozen=True)
class Effort:
    """The effort of searches: passes in a row, programs of a beam, episodes of chance, and how agents play."""

    max_passes: int
    beam_width: int
    random_episodes: int
    play: PlayConfig


@dataclass(frozen=True)
class BaselineCell:
    """Everything that needs no training, on some graphs."""

    compiler: Compiler
    sources: tuple[str, ...]
    effort: Effort

    def run(self) -> dict[str, Row]:
        with self.compiler.transitions() as transitions:
            found = {source: self._found(transitions, transitions.start(source)) for source in self.sources}
            checked = {source: _checked(transitions, source, all_of) for source, all_of in found.items()}
        return _rows(checked)

    def _found(self, transitions: Transitions, start: Facts) -> dict[str, Found]:
        known, effort = transitions.backend.catalogue(), self.effort
        return {
            "start": Found(start),
            "default": search.sequence(transitions, start, [known.default]),
            "fixpoint": search.fixpoint(transitions, start, known.simplifiers),
            "chain": search.sequence(transitions, start, known.chain),
            **{name: search.sequence(transitions, start, [name]) for name in known.pipelines if name != known.default},
            "greedy": search.greedy(transitions, start, max_passes=effort.max_passes),
            "beam": search.beam(transitions, start, width=effort.beam_width, max_passes=effort.max_passes),
        }


@dataclass(frozen=True)
class ChanceCell:
    """Random passes on all held-out graphs: about as many as agents run, from the start, and played as agents play."""

    compiler: Compiler
    sources: tuple[str, ...]
    episode: PassOrderingConfig
    effort: Effort
    seed: int

    def run(self) -> dict[str, Row]:
        with self.compiler.transitions() as transitions:
            checked = {
                source: _checked(transitions, source, self._found(transitions, source)) for source in self.sources
            }
        return _rows(checked)

    def _found(self, transitions: Transitions, source: str) -> dict[str, Found]:
        start, effort = transitions.start(source), self.effort
        drawn = search.by_chance(
            transitions, start, max_passes=effort.max_passes, episodes=effort.random_episodes, seed=self.seed
        )
        return {
            "random": drawn,
            "untrained": play(Untrained(self.episode), transitions, source, effort.play, seed=self.seed),
        }


@dataclass(frozen=True)
class AgentCell:
    """An agent that is trained on some families and plays on others."""

    compiler: Compiler
    entrant: str
    sources: tuple[str, ...]
    held_out: tuple[str, ...]
    config: PassAgentConfig | DreamtConfig
    episode: PassOrderingConfig
    effort: Effort
    seed: int

    def run(self) -> dict[str, Row]:
        with self.compiler.transitions() as transitions:
            began = time.perf_counter()
            agent, learned = self._trained(transitions)
            training_s = time.perf_counter() - began
            counts = {"training_hits": transitions.hits, "training_misses": transitions.misses}
            outcomes: dict[str, Outcome] = {}
            for source in self.held_out:
                found = play(agent, transitions, source, self.effort.play, seed=self.seed)
                outcomes |= {source: _checked(transitions, source, {"": found})[""]}
        return {self.entrant: replace(learned, outcomes=outcomes, training_s=training_s, counts=counts)}

    def _trained(self, transitions: Transitions) -> tuple[Playing, Row]:
        """Return the agent, and a row on its training."""
        config, given = self.config, (transitions, self.sources, self.episode)
        if isinstance(config, PassAgentConfig):
            agent = train(config, *given, seed=self.seed)
            return agent, Row({}, curve=agent.curve)
        dreamt = train_in_dream(config, *given, seed=self.seed)
        foreseen = {str(ahead): dict(errors) for ahead, errors in dreamt.open_loop.items()}
        return dreamt, Row({}, curve=dreamt.curve, open_loop=foreseen)


@dataclass(frozen=True)
class CoreSetConfig:
    """The passes that a core set may have in all, and the width of the beam that finds sequences to choose among.

    beam_width: 0 for single passes alone.
    """

    max_passes: int
    beam_width: int


@dataclass(frozen=True)
class CoreSetCell:
    """A core set that is learned on some families and run once on others; nothing is drawn for it.

    `core_sequence` are the same passes, kept whatever they leave.
    """

    compiler: Compiler
    sources: tuple[str, ...]
    held_out: tuple[str, ...]
    config: CoreSetConfig
    effort: Effort

    def run(self) -> dict[str, Row]:
        with self.compiler.transitions() as transitions:
            core = self._learned(transitions)
            rows = _rows({source: self._outcomes(transitions, source, core) for source in self.held_out})
        return rows | {"core_set": replace(rows["core_set"], core_set=core)}

    def _learned(self, transitions: Transitions) -> CoreSet:
        """Choose among every pass alone, and what a beam finds on each program."""
        starts, width = [transitions.start(source) for source in self.sources], self.config.beam_width
        beams = [
            search.beam(transitions, start, width=width, max_passes=self.effort.max_passes).passes
            for start in (starts if width else ())
        ]
        singles = [(name,) for name in transitions.backend.catalogue().passes]
        candidates = list(dict.fromkeys([*singles, *filter(None, beams)]))
        return core_set.learned(transitions, starts, candidates, max_passes=self.config.max_passes)

    def _outcomes(self, transitions: Transitions, source: str, core: CoreSet) -> dict[str, Outcome]:
        start = transitions.start(source)
        found = {
            "core_set": core_set.run(transitions, start, core),
            "core_sequence": search.sequence(transitions, start, chain.from_iterable(core)),
        }
        return _checked(transitions, source, found)


@dataclass(frozen=True)
class TimedCell:
    """The run times of what entrants have found on one graph, in turns; alone on the machine.

    found: the passes by entrant.
    """

    compiler: Compiler
    source: str
    found: Mapping[str, tuple[str, ...]]
    timing: TimingConfig

    def run(self) -> dict[str, float]:
        """Milliseconds by entrant, medians of the rounds."""
        timing = self.timing
        with self.compiler.transitions() as transitions:
            start = transitions.start(self.source)
            ends = {name: search.sequence(transitions, start, way).facts for name, way in self.found.items()}
            keys = sorted({facts.key for facts in ends.values()})
            payloads = [transitions.payload(key) for key in keys]
            times = transitions.backend.times_ms(payloads, rounds=timing.rounds, runs=timing.runs, seed=timing.seed)
        median_ms = {key: statistics.median(times[place]) for place, key in enumerate(keys)}
        return {name: median_ms[facts.key] for name, facts in ends.items()}


def _rows(outcomes: Mapping[str, Mapping[str, Outcome]]) -> dict[str, Row]:
    """The rows by entrant, of outcomes by graph and entrant."""
    entrants = next(iter(outcomes.values()))
    return {entrant: Row({source: of[entrant] for source, of in outcomes.items()}) for entrant in entrants}


def _checked(transitions: Transitions, source: str, found: Mapping[str, Found]) -> dict[str, Outcome]:
    """The outcomes, each program compared with the original once."""
    start = transitions.start(source)
    differences = {start.key: ""}
    for facts in (one.facts for one in found.values()):
        if facts.key not in differences:
            differences[facts.key] = _difference(transitions, start, facts)
    return {entrant: Outcome.of(one, differences[one.facts.key]) for entrant, one in found.items()}


def _difference(transitions: Transitions, start: Facts, facts: Facts) -> str:
    original, program = transitions.payload(start.key), transitions.payload(facts.key)
    try:
        return transitions.backend.check(original, program, seed=0)
    except PassError as failure:
        return str(failure)
