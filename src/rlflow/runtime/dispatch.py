"""One model file for each size, and a table that says which is for which shapes.

    session = dispatch_session("faster.onnx.dispatch.json")
    session.run(None, {"ids": ids})             as `onnxruntime.InferenceSession.run`, by the file for these shapes

The files lie beside the table; each is opened once, when it is first asked for, with the session options that it
carries (`runtime.session_options`).

Invariant: a shape that is in no row of the table is never run, and a table can name no file in another folder.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort

from rlflow import schemas
from rlflow.errors import InputError, ModelFormatError, RLFlowError
from rlflow.runtime.session_options import session_options
from rlflow.runtime.sizes import shapes_text
from rlflow.schemas.optimise import DispatchTable


@dataclass(frozen=True)
class DispatchSession:
    """The models of a table, by the shapes of their inputs. Sessions that are `open` are kept, by their files."""

    models: Sequence[tuple[Mapping[str, tuple[int, ...]], Path]]
    open: dict[Path, ort.InferenceSession] = field(default_factory=dict)

    def session(self, feeds: Mapping[str, Any]) -> ort.InferenceSession:
        """Return the session for inputs of these shapes. `InputError` naming the known sizes if there is none."""
        for shapes, file in self.models:
            if all(name in feeds and np.shape(feeds[name]) == shape for name, shape in shapes.items()):
                if file not in self.open:
                    self.open[file] = ort.InferenceSession(str(file), session_options(file))
                return self.open[file]
        known = "; ".join(shapes_text(shapes) for shapes, _ in self.models)
        given = shapes_text({name: np.shape(feeds[name]) for name in self.models[0][0] if name in feeds})
        raise InputError(f"no model is for inputs of {given or 'no known name'}: there is one for {known}")

    def run(
        self, output_names: Sequence[str] | None, feeds: Mapping[str, Any], run_options: ort.RunOptions | None = None
    ) -> list[Any]:
        """Do what `onnxruntime.InferenceSession.run` does, in the session for these shapes; errors as `session`."""
        outputs: list[Any] = self.session(feeds).run(output_names, dict(feeds), run_options)
        return outputs


def dispatch_session(path: Path | str) -> DispatchSession:
    """Open the table that `rlflow optimise --dispatch` wrote, `OUTPUT.dispatch.json`, with the models beside it.

    `InputError` if it is not there, or one of its files, `ModelFormatError` if it is no such table.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"no dispatch table at {path}")
    try:
        table = json.loads(path.read_text())
        schemas.validate(DispatchTable, table)
    except (RLFlowError, ValueError) as error:
        raise ModelFormatError(f"{path} is no dispatch table of RLFlow: {error}") from None
    models = []
    for row in table["models"]:
        file = path.parent / Path(row["file"]).name
        if not file.is_file():
            raise InputError(f"the model {file} of the dispatch table {path} is not there")
        models.append(({name: tuple(shape) for name, shape in row["shapes"].items()}, file))
    return DispatchSession(models)
