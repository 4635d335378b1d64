"""A compiler whose passes can be run one at a time, in any order: what every backend of the pass-ordering gym offers.

    backend = backend_of("onnx")                                          or "onnx-contrib", "xla", "xla-onnx"
    start = backend.load("zoo/bert?layers=2&hidden=32")
    after = backend.apply(start.payload, "onnxslim:FusionGelu")
    after.facts.operations, backend.check(start.payload, after.payload, seed=0)

A program is bytes, and a pass makes new bytes of them, so that a state can be kept, forked and gone back to for
nothing. A pass that cannot be applied raises `PassError`; a compiler may also crash or never end, which is why an
environment runs a backend in a process of its own (`rlflow.passes.worker`).

Invariant: the same program and the same pass give a program of the same key, in any process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from rlflow.errors import RLFlowError
from rlflow.ir.graph import Graph


class PassError(RLFlowError):
    """A pass that could not be applied to a program; the program is as it was."""


@dataclass(frozen=True)
class PassCost:
    """The cost analysis of a program: floating-point operations, transcendental ones, and bytes accessed."""

    flops: float
    transcendentals: float
    bytes_accessed: float


@dataclass(frozen=True)
class Facts:
    """The facts that are known of a program without its bytes.

    key: a hash that is the same in every process for programs that differ in names alone. counts: operations by type,
    sorted by type, without parameters, constants and what only passes values on.
    """

    key: str
    counts: tuple[tuple[str, int], ...]
    cost: PassCost

    @property
    def operations(self) -> int:
        """C of the paper's measure: the number of operations."""
        return sum(count for _, count in self.counts)


@dataclass(frozen=True)
class Program:
    """A program, as the bytes that its backend reads, with its facts."""

    payload: bytes
    facts: Facts


@dataclass(frozen=True)
class Source:
    """A program of a dataset: its name, which `PassBackend.load` understands, and the family that it belongs to."""

    name: str
    family: str


@dataclass(frozen=True)
class Catalogue:
    """The passes, pipelines and operations that a backend knows.

    passes: the actions, in the order of their indices. pipelines: ready-made sequences of the compiler and of its
    libraries, which `apply` knows by name as well, but which are no actions. default: the pipeline that results are
    compared with. simplifiers: a round of passes or pipelines which is repeated until nothing changes, the fixpoint
    that results are compared with. chain: pipelines one after another, the best public way to combine them.
    operations: the types that observations count one by one; all others are counted together.
    """

    name: str
    passes: tuple[str, ...]
    pipelines: tuple[str, ...]
    default: str
    simplifiers: tuple[str, ...]
    chain: tuple[str, ...]
    operations: tuple[str, ...]


class PassBackend(Protocol):
    """A compiler that runs its passes one at a time."""

    def catalogue(self) -> Catalogue:
        """The passes and pipelines that there are, in this process."""
        ...

    def sources(self) -> tuple[Source, ...]:
        """The programs of the backend's own dataset."""
        ...

    def load(self, source: str | bytes) -> Program:
        """A program of the dataset by its name, a file by its path, or the content of a file.

        Raises `InputError` if there is no such program, or if it cannot be read.
        """
        ...

    def apply(self, program: bytes, name: str) -> Program:
        """Run a pass or a pipeline. Raises `PassError` if it fails, `InputError` if there is none of that name."""
        ...

    def graph(self, program: bytes) -> Graph:
        """The program as a graph of `rlflow.ir`, for encoders."""
        ...

    def check(self, original: bytes, program: bytes, *, seed: int) -> str:
        """Run both on inputs drawn from `seed`; return in what their outputs differ beyond tolerance, or ""."""
        ...

    def compiled_operations(self, program: bytes) -> int:
        """The number of operations that are left when the program is compiled to be run."""
        ...

    def times_ms(self, programs: Sequence[bytes], *, rounds: int, runs: int, seed: int) -> Mapping[int, list[float]]:
        """Run the programs in turns; milliseconds of each round by the program's place in the sequence."""
        ...
