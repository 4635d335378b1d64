"""A compiler of words, announced by a package of its own as a stranger's backend would be.

Programs are words over a, b and c, and every letter is an operation. `cancel` removes each "ab", `swap` makes "ab" of
each "ba", and `expand` makes "ba" of each "c". So "cc" can only be emptied by way of a longer word: expand, swap,
cancel. Greedy search, which never lets a word grow, is stuck there. The other passes fail in the ways that compilers
do.
"""

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path

from rlflow.errors import InputError
from rlflow.ir.graph import Graph, Header, make_graph
from rlflow.ir.node import INPUT, Node, Ref
from rlflow.ir.tensor_type import TensorType
from rlflow.passes.backend import Catalogue, Facts, PassCost, PassError, Program, Source

REWRITES = {"cancel": ("ab", ""), "swap": ("ba", "ab"), "expand": ("c", "ba")}
FAILURES = ("refuse", "abort", "hang")
NUMBER = TensorType("float32", ())
SOURCES = (Source("cc", "c"), Source("cab", "c"), Source("abab", "a"))


class ToyCompiler:
    """The backend; `default` stops too early, and `tidy` is a round of a fixpoint that reaches the optimum of "cc"."""

    def catalogue(self) -> Catalogue:
        return Catalogue(
            name="toy",
            passes=(*REWRITES, *FAILURES),
            pipelines=("default", "tidy"),
            default="default",
            simplifiers=("tidy",),
            chain=("default", "tidy"),
            operations=("a", "b"),
        )

    def sources(self) -> tuple[Source, ...]:
        return SOURCES

    def load(self, source: str | bytes) -> Program:
        word = source.decode() if isinstance(source, bytes) else source
        if set(word) - set("abc"):
            raise InputError(f"{word!r} is no word over a, b and c: give one")
        return _program(word)

    def apply(self, program: bytes, name: str) -> Program:
        word = program.decode()
        if name == "refuse":
            raise PassError("refuse: it never works")
        if name == "abort":
            os.abort()
        if name == "hang":
            time.sleep(3600)
        if name == "corrupt":
            return _program(word + "a")
        pipelines = {"default": ["cancel"], "tidy": ["expand", "swap", "cancel"]}
        for rewrite in pipelines.get(name, [name]):
            if rewrite not in REWRITES:
                raise InputError(f"there is no pass {rewrite!r}: choose one of {', '.join(REWRITES)}")
            word = word.replace(*REWRITES[rewrite])
        return _program(word)

    def graph(self, program: bytes) -> Graph:
        """A chain of the letters."""
        nodes = {0: Node(INPUT, (), {}, (NUMBER,), ("start",))}
        for place, letter in enumerate(program.decode(), start=1):
            nodes[place] = Node(letter, (Ref(place - 1),), {}, (NUMBER,), (f"{letter}{place}",))
        return make_graph(nodes, [0], [Ref(len(nodes) - 1)], ["end"], Header(18))

    def check(self, original: bytes, program: bytes, *, seed: int) -> str:
        return "" if _meaning(original) == _meaning(program) else f"{original!r} is not {program!r}"

    def compiled_operations(self, program: bytes) -> int:
        return len(program) // 2

    def times_ms(self, programs: Sequence[bytes], *, rounds: int, runs: int, seed: int) -> Mapping[int, list[float]]:
        return {place: [1.0 + len(program)] * rounds for place, program in enumerate(programs)}


class SafeToyCompiler(ToyCompiler):
    """The same without the passes that fail, for tests in whose process it runs."""

    def catalogue(self) -> Catalogue:
        return replace(super().catalogue(), passes=tuple(REWRITES))


def _meaning(word: bytes) -> int:
    """Letters a less letters b, which no rewrite changes."""
    return word.count(b"a") - word.count(b"b")


def _program(word: str) -> Program:
    counts = tuple((letter, word.count(letter)) for letter in "abc" if letter in word)
    cost = PassCost(2.0 * len(word), float(word.count("c")), 8.0 * len(word))
    return Program(word.encode(), Facts(blake2b(word.encode(), digest_size=8).hexdigest(), counts, cost))


class WrongToyCompiler(SafeToyCompiler):
    """The same with a pass that makes the same word of every other, whatever that meant."""

    def apply(self, program: bytes, name: str) -> Program:
        return _program("a") if name == "cancel" else super().apply(program, name)


def announce(folder: Path, *, safe: bool = False) -> None:
    """Write the metadata by which pip would announce the backends `toy` and `wrong-toy`, in a folder on the path."""
    metadata = folder / "toy_compiler-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-compiler\nVersion: 1.0\n")
    compiler = "SafeToyCompiler" if safe else "ToyCompiler"
    (metadata / "entry_points.txt").write_text(
        "[rlflow.pass_backends]\n"
        f"toy = support.toy_compiler:{compiler}\n"
        "wrong-toy = support.toy_compiler:WrongToyCompiler\n"
    )
