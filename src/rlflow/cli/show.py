"""`rlflow show MODEL`: a model as words, as text, or as a picture, alone or beside its optimised form."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rlflow.atomic_file import written_whole
from rlflow.cost.base import CostContext
from rlflow.cost.models import COST_MODELS, HERE
from rlflow.errors import GraphError, InputError
from rlflow.git_lfs import require_content
from rlflow.ir.graph import Graph
from rlflow.ir.text import from_text, to_text
from rlflow.onnx_io import from_onnx, graph_of, load_model
from rlflow.onnx_io.bodies import bodies
from rlflow.onnx_io.saving import check_writable
from rlflow.optimise import DEFAULT_COST_MODEL
from rlflow.show import page
from rlflow.show.boxes import model_panels, to_dot
from rlflow.show.changes_page import MAIN, changes_content
from rlflow.show.model_summary import summary

_PICTURES = (".html", ".svg", ".png", ".pdf", ".dot")


def show(
    model: Annotated[Path, typer.Argument(help="An ONNX model, or a graph that --text printed (.txt).")],
    after: Annotated[Path | None, typer.Option(help="Its optimised form, to show what changed.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Draw into this file: .html, .svg, .png, .pdf or .dot.")
    ] = None,
    text: Annotated[bool, typer.Option("--text", help="Print every node, weights by their digest alone.")] = False,
) -> None:
    """Describe a model, or draw it, alone or beside its optimised form.

    In a picture of two models, operators that only the first has are red and those that only the second has are green.
    A `.html` file is a page to search in, layer by layer, with predicted prices, that opens without a network. It and a
    `.dot` file need nothing else installed, the other pictures the extra `plots`. What --text prints holds the whole
    graph and no weights: where a model cannot be passed on, this can, and `rlflow show` reads it.
    """
    if text and (after or output):
        raise InputError("--text prints one model: leave out --after and --output")
    if output is not None:
        _check_picture(output)
    if output is not None and output.suffix == ".html":
        _write_page(model, after, output)
        typer.echo(f"Wrote {output}.")
        return
    graph = _read(model)
    optimised = None if after is None else _read(after)
    if output is not None:
        _draw(graph, optimised, output)
        typer.echo(f"Wrote {output}.")
    elif text:
        typer.echo(to_text(graph), nl=False)
    else:
        typer.echo(summary(graph, optimised))


def _read(path: Path) -> Graph:
    """Read an ONNX model, or the text of a graph."""
    if path.suffix != ".txt":
        return from_onnx(path)
    require_content(path)
    try:
        return from_text(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, GraphError) as error:
        raise InputError(f"cannot read {path} ({error}): name a file that `rlflow show --text` printed") from None


def _check_picture(output: Path) -> None:
    """`InputError` where no picture can be written, before a model is read."""
    if output.suffix not in _PICTURES:
        raise InputError(f"{output} does not name a picture format: let it end in one of {', '.join(_PICTURES)}")
    check_writable(output)


def _write_page(model: Path, after: Path | None, output: Path) -> None:
    names = [str(path) for path in (model, after) if path is not None]
    cost_model = COST_MODELS.get(DEFAULT_COST_MODEL)(CostContext(settings={"processor": HERE}))
    optimised = None if after is None else _graphs(after)
    page.write(output, " → ".join(names), changes_content(_graphs(model), optimised, cost_model, names))


def _graphs(path: Path) -> dict[str, Graph]:
    """The graphs of a model by their titles: the main one, and its bodies."""
    if path.suffix == ".txt":
        return {MAIN: _read(path)}
    model = load_model(path)
    return {MAIN: graph_of(model, where=str(path))} | dict(bodies(model))


def _draw(graph: Graph, after: Graph | None, output: Path) -> None:
    panels = model_panels(graph, after)
    if output.suffix == ".dot":
        with written_whole(output) as draft:
            draft.write_text(to_dot(panels), encoding="utf-8")
        return
    from rlflow.show import box_picture
    from rlflow.show.picture_file import save

    save(box_picture.draw(panels), output)
