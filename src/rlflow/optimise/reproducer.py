"""The reproducer: a folder with the models, inputs, rewrites and commands that show a wrong rewrite again."""

from __future__ import annotations

import logging
import shlex
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from onnx import ModelProto

from rlflow.equivalence.compare import compare
from rlflow.equivalence.drawing import Inputs
from rlflow.errors import RLFlowError
from rlflow.ir.graph import Graph
from rlflow.ir.node import Ref
from rlflow.ir.subgraph import boundary, excerpt
from rlflow.onnx_io import save_model, to_onnx
from rlflow.onnx_io.standalone import standalone_model
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.runtime.session import open_session, run
from rlflow.trajectory import record
from rlflow.trajectory.bisect import WrongStep
from rlflow.trajectory.record import Trajectory

_LOGGER = logging.getLogger(__name__)

_TEXT = """\
Two models that should compute the same do not.

{what}

before.onnx       {before}
after.onnx        {after}
inputs.npz        inputs on which the two differ
{trajectory}
See it again:

    rlflow equivalence before.onnx after.onnx --inputs inputs.npz
{replay}"""
_TRAJECTORY = "trajectory.jsonl  the shortest sequence of rewrites found that breaks the model, {steps} of {all}\n"
_REPLAY = "    rlflow replay trajectory.jsonl {model}{options} -o broken.onnx\n"


@dataclass(frozen=True)
class Pair:
    """Two models that differ on `inputs`, and a phrase for each that says what it is."""

    before: ModelProto
    after: ModelProto
    inputs: Inputs
    before_is: str
    after_is: str


def smallest_pair(wrong: WrongStep, witness: Sequence[Inputs]) -> Pair:
    """Return the nodes that the step matched and what it made of them, on values that they meet in the model; the whole
    models where the nodes alone do not show the difference.
    """
    try:
        pair = _around_the_match(wrong, witness[0])
        if not compare(pair.before, pair.after, inputs=[pair.inputs]).equivalent:
            return pair
    except RLFlowError as error:  # a value of unknown type, or a node that does not run by itself
        _LOGGER.debug("the matched nodes cannot be run by themselves: %s", error)
    return whole_pair(wrong, witness)


def whole_pair(wrong: WrongStep, witness: Sequence[Inputs]) -> Pair:
    """Return the whole models before and after the step."""
    before, after = to_onnx(wrong.before), to_onnx(wrong.after)
    return Pair(before, after, witness[0], "the whole model before the step", "the whole model after it")


def write(
    folder: Path,
    what: str,
    pair: Pair,
    *,
    shortest: Trajectory | None = None,
    steps: int = 0,
    model: str = "MODEL",
    shapes: Mapping[str, Sequence[int]] | None = None,
) -> None:
    """Write the reproducer over an older one, if there is one. `shapes` are the inputs' for replaying it.

    `OSError` or `InputError` if it cannot be written.
    """
    folder.mkdir(exist_ok=True)
    save_model(pair.before, folder / "before.onnx")
    save_model(pair.after, folder / "after.onnx")
    _save_arrays(pair.inputs, folder / "inputs.npz")
    (folder / "trajectory.jsonl").unlink(missing_ok=True)
    text = {"trajectory": "", "replay": ""}
    if shortest is not None:
        record.save([shortest], folder / "trajectory.jsonl")
        text["trajectory"] = _TRAJECTORY.format(steps=len(shortest.steps), all=steps)
        sizes = (f"{name}={'x'.join(map(str, shape))}" for name, shape in (shapes or {}).items())
        options = "".join(f" --shape {shlex.quote(each)}" for each in sizes)
        text["replay"] = _REPLAY.format(model=shlex.quote(model), options=options)
    (folder / "README.txt").write_text(_TEXT.format(what=what, before=pair.before_is, after=pair.after_is, **text))


def _save_arrays(arrays: Inputs, path: Path) -> None:
    """Write an .npz file. Unlike `numpy.savez` it admits an array called "file" and writes the same bytes each time."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w") as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)


def _around_the_match(wrong: WrongStep, inputs: Inputs) -> Pair:
    match, graph = wrong.match, wrong.before
    part = excerpt(graph, match.nodes, match.roots)
    rewriter = Rewriter([match.rule])
    (matches,) = rewriter.matches(part)
    same = next((m for m in matches if m.roots == match.roots and set(m.nodes) == set(match.nodes)), None)
    if same is None:
        raise RLFlowError("the rule does not match the nodes alone")
    values = _values(graph, boundary(graph, match.nodes), inputs)
    fed = {part.nodes[i].names[0]: value for i, value in zip(part.inputs, values, strict=True)}
    after = standalone_model(rewriter.apply(part, same))
    return Pair(standalone_model(part), after, fed, "the nodes that the step matched", "what it made of them")


def _values(graph: Graph, refs: Sequence[Ref], inputs: Inputs) -> list[np.ndarray]:
    """Run the model on `inputs` and return these values of it."""
    names = [f"value_{place}" for place in range(len(refs))]
    observed = standalone_model(replace(graph, outputs=tuple(refs), output_names=tuple(names), edit=None))
    return list(run(open_session(observed, "as_written"), inputs).values())
