"""A folder of sound files of every kind that a command reads, and damage to one of them at a time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import onnx

from rlflow import zoo
from rlflow.agents.match_level import taught_guide
from rlflow.cost.analytic import AnalyticCost
from rlflow.ir.text import to_text
from rlflow.method import Budget
from rlflow.onnx_io import from_onnx
from rlflow.rules.library import Library, load
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.search.greedy import Greedy
from rlflow.trajectory import record
from support.conformance.damage import victims
from support.conformance.mutation import NUMBERS, mutated, mutated_bytes

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
_INSTEAD = (b"", POINTER, b"<!DOCTYPE html><title>404</title>", b"PK\x03\x04", b"{}", b"[]", b"null", b"\xff\xfe" * 9)
_VALUES: Sequence[Any] = (
    *(None, True, 0.5, float("nan"), float("inf"), "", "nowhere", "two\nlines", "é", "x" * 5000, [], {}, [[]]),
    {"a": 1},
)
_REPLACED, _IN_JSON, _DELETED, _STOPPED = 0.05, 0.7, 0.25, 0.3
_RULES = 5


class Bench:
    """Sound files by their kind, in a new folder; one of them is damaged at a time, until it is mended."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder
        self.sound: dict[str, Path] = {}
        self.kept: tuple[Path, bytes] | None = None
        model, rules = zoo.build("tiny_transpose"), load()
        moved = zoo.build("tiny_transpose")
        onnx.save_model(
            moved, folder / "outside.onnx", save_as_external_data=True, location="outside.data", size_threshold=0
        )
        self.sound["data"] = folder / "outside.data"
        onnx.save(model, self._file("model", "model.onnx"))
        Library(rules.rules[:_RULES]).save(self._file("library", "library.jsonl"))
        graph = from_onnx(model)
        found = Greedy(rules, Rewriter(rules.rules), AnalyticCost()).optimise(graph, Budget())
        record.save([found.trajectory], self._file("trajectory", "trajectory.jsonl"))
        self._file("text", "graph.txt").write_text(to_text(graph))
        np.savez(self._file("inputs", "inputs.npz"), **_inputs(model))
        self._file("equations", "equations.txt").write_text("matmul(x, matmul(y, z)) == matmul(matmul(x, y), z)\n")
        passes = {"backend": "onnx", "source": "zoo/tiny_chain", "key": "0", "operations": 3, "steps": []}
        self._file("record", "record.json").write_text(json.dumps(passes))
        taught_guide.shipped().save(folder / "policy")
        self.names = {path.name for path in folder.iterdir()}

    @property
    def out(self) -> Path:
        """The file that a command may write."""
        return self.folder / "out.onnx"

    def _file(self, kind: str, name: str) -> Path:
        self.sound[kind] = self.folder / name
        return self.sound[kind]

    def damage(self, kind: str, random: Random) -> tuple[str, Path]:
        """Damage the file of a kind; return the names of the mutations and the file that a command is to read."""
        file = random.choice(sorted((self.folder / "policy").iterdir())) if kind == "policy" else self.sound[kind]
        self.kept = file, file.read_bytes()
        names, content = _mutated(random, file, self.kept[1])
        file.write_bytes(content)
        return names, self.folder / "outside.onnx" if kind == "data" else file

    def mend(self) -> None:
        """Give the damaged file its content again."""
        if self.kept is not None:
            self.kept[0].write_bytes(self.kept[1])


def _inputs(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    shapes = {i.name: [d.dim_value for d in i.type.tensor_type.shape.dim] for i in model.graph.input}
    rng = np.random.default_rng(0)
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def _mutated(random: Random, file: Path, content: bytes) -> tuple[str, bytes]:
    if random.random() < _REPLACED:
        return "replaced", random.choice(_INSTEAD)
    if file.suffix == ".onnx":
        return mutated(random, random.choice(victims()))
    if file.suffix in (".json", ".jsonl") and random.random() < _IN_JSON:
        return "a value of its JSON", _with_another_value(random, content.decode(), is_whole=file.suffix == ".json")
    return mutated_bytes(random, content)


def _with_another_value(random: Random, text: str, is_whole: bool) -> bytes:
    """Return JSON, or lines of it, with one value replaced or left out."""
    lines = [text] if is_whole else text.splitlines()
    number = random.randrange(len(lines))
    document = json.loads(lines[number])
    place = document
    with suppress(IndexError):  # nothing is left to damage
        while True:
            key = random.choice(list(place) if isinstance(place, dict) else range(len(place)))
            if not isinstance(place[key], dict | list) or not place[key] or random.random() < _STOPPED:
                break
            place = place[key]
        if random.random() < _DELETED:
            del place[key]
        else:
            place[key] = random.choice((*NUMBERS, *_VALUES))
    return "\n".join([*lines[:number], json.dumps(document), *lines[number + 1 :], ""]).encode()
