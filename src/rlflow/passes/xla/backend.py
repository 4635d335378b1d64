"""XLA's own pipeline, pass by pass: the backend "xla" of the pass-ordering gym.

    backend = XlaBackend()
    start = backend.load("gpt2/step?layers=2&width=32&heads=2&sequence=16&batch=2")
    after = backend.apply(start.payload, "algsimp")

A program is StableHLO, a pass one compilation in which every other pass is off (`rlflow.passes.xla.pass_names`),
stopped before the compiler schedules the graph (`rlflow.passes.xla.compiler`).

The way from HLO to StableHLO and back loses a little: unread instructions, what literals look like, how computations
are shared. So what a pass made goes there and back until it stays the same, and a pass that leaves nothing else behind
is told to have done nothing.

Invariant: a pass that changes nothing returns the very bytes that it was given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from rlflow.errors import InputError
from rlflow.ir.graph import Graph
from rlflow.passes.backend import Catalogue, PassError, Program, Source
from rlflow.passes.xla import dataset
from rlflow.passes.xla.compiler import as_stablehlo, compiled, hlo_after, module_of
from rlflow.passes.xla.equality import difference
from rlflow.passes.xla.facts import counts_of, facts_of, key_of, opcodes
from rlflow.passes.xla.hlo_graph import graph_of
from rlflow.passes.xla.pass_names import ACTIONS, AFTER_SCATTER, SIMPLIFIERS, disabled_for
from rlflow.passes.xla.probe import probe
from rlflow.passes.xla.run_time import times_ms

DEFAULT, SIMPLIFY = "default", "simplifiers"
_NO_PASS = disabled_for(())
_MOST_ROUND_TRIPS = 8
_REMEMBERED = 64


def _switched_off() -> dict[str, str]:
    """The lists of what is off for each action and pipeline."""
    off = {action: disabled_for((action,)) for action in ACTIONS}
    off[DEFAULT] = disabled_for(ACTIONS, pipelines=(AFTER_SCATTER,))
    off[SIMPLIFY] = disabled_for(SIMPLIFIERS)
    return off


class XlaBackend:
    """Passes of XLA on programs that are written in jax, by name, or that are StableHLO already.

    Raises `InputError` if this installation of jaxlib cannot do it (`rlflow.passes.xla.probe`).
    """

    name = "xla"

    def __init__(self) -> None:
        probe()
        self._off = _switched_off()
        self._normal = lru_cache(maxsize=_REMEMBERED)(_normal)

    def catalogue(self) -> Catalogue:
        """The passes and pipelines that there are."""
        return Catalogue(
            name=self.name,
            passes=ACTIONS,
            pipelines=(DEFAULT, SIMPLIFY),
            default=DEFAULT,
            simplifiers=(SIMPLIFY,),
            chain=(DEFAULT, SIMPLIFY),
            operations=opcodes(),
        )

    def sources(self) -> tuple[Source, ...]:
        """The programs of the dataset."""
        return dataset.sources()

    def load(self, source: str | bytes) -> Program:
        """A program of the dataset by its name, a StableHLO file by its path, or the content of a file.

        Raises `InputError` if there is no such program, or if it cannot be read.
        """
        where = "the program" if isinstance(source, bytes) else source
        try:
            return _settled(hlo_after(self._stablehlo(source), _NO_PASS))
        except PassError as error:
            raise InputError(f"{where} is not StableHLO that XLA can compile: {error}") from None

    def _stablehlo(self, source: str | bytes) -> bytes:
        if isinstance(source, bytes):
            return source
        if Path(source).is_file():
            return Path(source).read_bytes()
        return dataset.stablehlo(source)

    def apply(self, program: bytes, name: str) -> Program:
        """Run a pass or a pipeline. Raises `PassError` if it fails, `InputError` if there is none of that name."""
        if name not in self._off:
            raise InputError(f"XLA has no pass {name!r} here: choose from {', '.join(self._off)}")
        before = self._normal(program)
        hlo = hlo_after(program, self._off[name])
        if key_of(module_of(hlo)) == before.facts.key:
            return before
        after = _settled(hlo)
        return before if after.facts.key == before.facts.key else after

    def graph(self, program: bytes) -> Graph:
        """The entry computation as a graph, with HLO opcodes as its operators."""
        return graph_of(module_of(hlo_after(program, _NO_PASS)))

    def check(self, original: bytes, program: bytes, *, seed: int) -> str:
        """Run both on inputs drawn from `seed`; return in what their outputs differ beyond tolerance, or ""."""
        return difference(self.graph(original), original, program, seed)

    def compiled_operations(self, program: bytes) -> int:
        """Count the operations that are left when XLA has compiled the program to be run, inside fusions as well."""
        return sum(count for module in compiled(program).hlo_modules() for _, count in counts_of(module))

    def times_ms(self, programs: Sequence[bytes], *, rounds: int, runs: int, seed: int) -> Mapping[int, list[float]]:
        """Run the programs in turns; milliseconds of each round by the program's place in the sequence."""
        return times_ms(self.graph(programs[0]), programs, rounds=rounds, runs=runs, seed=seed)


def _normal(program: bytes) -> Program:
    """The facts of bytes that have been there and back before."""
    return Program(program, facts_of(hlo_after(program, _NO_PASS)))


def _settled(hlo: bytes) -> Program:
    """Take a graph to StableHLO and back until it stays the same."""
    key = key_of(module_of(hlo))
    for _ in range(_MOST_ROUND_TRIPS):
        stablehlo = as_stablehlo(hlo)
        hlo = hlo_after(stablehlo, _NO_PASS)
        before, key = key, key_of(module_of(hlo))
        if key == before:
            return Program(stablehlo, facts_of(hlo))
    raise PassError(f"the program is another one after each of {_MOST_ROUND_TRIPS} ways to StableHLO and back")
