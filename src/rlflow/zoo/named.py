"""Models by name: the zoo's, the configured ones of the experiments, files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from rlflow import zoo
from rlflow.errors import InputError
from rlflow.ir.graph import Graph
from rlflow.onnx_io import from_onnx
from rlflow.plugins import unknown

CONFIGURED = Path(str(resources.files("rlflow.zoo"))) / "named.json"
"""The models of conf/graph: of each the entry of the zoo and its settings."""


def graph_of(model: Any) -> Graph:
    """The graph of a `Graph`, an `onnx.ModelProto`, a file, a zoo model or a configured one by its name.

    `InputError` for a name that there is not, with the nearest ones, and for what cannot be imported.
    """
    if isinstance(model, Graph):
        return model
    if not isinstance(model, str) or Path(model).is_file():
        return from_onnx(model)
    if model not in names():
        raise InputError(f"{unknown('model', model, names())} or give the path of an ONNX file")
    return _built(model)


def built(name: str) -> Graph:
    """The graph of a model by its name alone, whatever files lie about. `InputError` for one that there is not."""
    if name not in names():
        raise InputError(unknown("model", name, names()))
    return _built(name)


def names() -> list[str]:
    """The models that have a name, sorted."""
    return sorted({*zoo.names(), *configured()})


@cache
def configured() -> Mapping[str, Mapping[str, Any]]:
    """The entry of the zoo and the settings of each configured model."""
    read: Mapping[str, Mapping[str, Any]] = json.loads(CONFIGURED.read_text())
    return read


def _built(name: str) -> Graph:
    if name in zoo.names():
        return from_onnx(zoo.build(name))
    entry = configured()[name]
    return from_onnx(zoo.build(entry["entry"], **entry["settings"]))
