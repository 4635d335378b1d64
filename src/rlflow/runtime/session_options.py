"""Options of ONNX Runtime's sessions with which a model runs faster than with the defaults, as the model carries them.

    options = SessionOptions(intra_op_num_threads=1)
    SessionOptions.of(options.put_into(model)) == options
    rlflow.session_options("faster.onnx")                   the same for `onnxruntime.InferenceSession`

A model as deployed is opened with the options that it carries (`rlflow.runtime.onnx_runtime`): so do those who use it.

Invariant: options say how a model is run, and never what of it; those of a stranger's model can do no more.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

import onnxruntime as ort
from onnx import ModelProto

from rlflow.atomic_file import written_whole
from rlflow.errors import InputError, ModelFormatError
from rlflow.onnx_io.metadata import metadata_of, with_metadata
from rlflow.settings import read_config

KEY = "rlflow.session_options"
"""The key of a model's metadata under which its options are, as JSON."""
_DISABLED = "optimization.disable_specified_optimizers"


@dataclass(frozen=True)
class SessionOptions:
    """Options by ONNX Runtime's own names. The defaults are its own; 0 threads are as many as there are cores."""

    graph_optimization_level: Literal["ORT_ENABLE_ALL", "ORT_DISABLE_ALL"] = "ORT_ENABLE_ALL"
    disabled_optimizers: tuple[str, ...] = ()
    intra_op_num_threads: int = 0

    @classmethod
    def of(cls, model: ModelProto | Path) -> SessionOptions:
        """Return those that a model carries, or the defaults. `ModelFormatError` where it carries something else."""
        text = metadata_of(model).get(KEY, "{}")
        try:
            return read_config(cls, json.loads(text), KEY)
        except (InputError, ValueError, TypeError) as error:
            raise ModelFormatError(f"the metadata of the model has no session options under {KEY}: {error}") from None

    def put_into(self, model: ModelProto) -> ModelProto:
        """Return the model with these options in its metadata."""
        return with_metadata(model, {KEY: json.dumps(self.to_json())})

    def to_json(self) -> dict[str, Any]:
        """Return those that are not the defaults."""
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in given.items() if value != getattr(SessionOptions, name)}

    def for_onnxruntime(self) -> ort.SessionOptions:
        options = ort.SessionOptions()
        options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, self.graph_optimization_level)
        options.intra_op_num_threads = self.intra_op_num_threads
        if self.disabled_optimizers:
            options.add_session_config_entry(_DISABLED, ";".join(self.disabled_optimizers))
        return options

    def __str__(self) -> str:
        """The assignments, as a sentence has them."""
        return ", ".join(f"{name} = {_said(value)}" for name, value in self.to_json().items())

    def lines(self, path: str) -> Iterator[str]:
        """Yield the lines of Python that open a model with these options."""
        yield "options = onnxruntime.SessionOptions()"
        if self.graph_optimization_level != SessionOptions.graph_optimization_level:
            level = f"onnxruntime.GraphOptimizationLevel.{self.graph_optimization_level}"
            yield f"options.graph_optimization_level = {level}"
        if self.disabled_optimizers:
            yield f'options.add_session_config_entry("{_DISABLED}", "{";".join(self.disabled_optimizers)}")'
        if self.intra_op_num_threads:
            yield f"options.intra_op_num_threads = {self.intra_op_num_threads}"
        yield f"session = onnxruntime.InferenceSession({json.dumps(path)}, options)"


DEFAULTS = SessionOptions()


def session_options(path: Path | str) -> ort.SessionOptions:
    """Return the options of ONNX Runtime with which a model that RLFlow wrote runs fastest, to open a session with.

    They are the defaults for a model without options of its own. Raises `InputError` if there is no such file.
    """
    if not Path(path).is_file():
        raise InputError(f"no model file at {path}")
    return SessionOptions.of(Path(path)).for_onnxruntime()


def write_beside(path: Path | str, options: SessionOptions) -> None:
    """Write the options of a model to a file beside it, `<name>.options.json`, which the defaults have not."""
    beside = Path(f"{path}.options.json")
    if options == DEFAULTS:
        beside.unlink(missing_ok=True)
        return
    with written_whole(beside) as draft:
        draft.write_text(json.dumps(options.to_json(), indent=1) + "\n")


def _said(value: Any) -> str:
    return json.dumps(value) if isinstance(value, tuple) else str(value)
