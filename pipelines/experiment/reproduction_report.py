"""The report on a comparison of two runs: a document of schema `reproduction`, and tables made from it alone.

    document = report(again, published="HEAD", fresh="the working tree")
    show(document, Console())      # ... and at the end "Reproduced.", or "Not reproduced." and how much is unlike

The invariant: the tables count everything, and what they leave out for its length they say.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby
from statistics import median
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from experiment.reproduction import Compared, Reproduction
from rlflow.schemas import Kind

Row = tuple[str, ...]

_MEANING = {
    Kind.EQUAL: "must be equal",
    Kind.DIGITS: "may differ in the last digits",
    Kind.TIMING: "are timings",
}
_CHAOS = "On another processor that is to be expected: training amplifies what is rounded otherwise."
_SHOWN = 40  # rows of a table; the document has all
_TEXT = 24  # characters of a value


def report(again: Reproduction, published: str, fresh: str) -> dict[str, Any]:
    """The document of schema `reproduction`; `published` and `fresh` name the two runs."""
    return {
        "reproduced": again.reproduced,
        "published": published,
        "fresh": fresh,
        "kinds": {kind.value: _counts(again, kind) for kind in Kind},
        "unlike": [_unlike(compared) for compared in again.unlike],
        "outputs": [
            {
                "path": output.file,
                "kind": output.kind.value,
                "same_bytes": output.published is not None and output.published == output.fresh,
            }
            for output in again.outputs
        ],
        "timings": list(_timings(again.figures)),
        "faults": list(again.faults),
    }


def _counts(again: Reproduction, kind: Kind) -> dict[str, int]:
    figures = [figure for figure in again.figures if figure.kind is kind]
    outputs = [output for output in again.outputs if output.kind is kind]
    return {
        "figures": len(figures),
        "unlike_figures": sum(not figure.as_before for figure in figures),
        "outputs": len(outputs),
        "unlike_outputs": sum(not output.as_before for output in outputs),
    }


def _unlike(compared: Compared) -> dict[str, Any]:
    return {
        "file": compared.file,
        "place": compared.place,
        "kind": compared.kind.value,
        "published": _text(compared.published),
        "fresh": _text(compared.fresh),
        "deviation": compared.deviation,
    }


def _text(value: Any) -> str:
    match value:
        case None:
            return "none"
        case dict():
            return f"{len(value)} keys"
        case list() if len(value) > 2:
            return f"{len(value)} values"
        case float():
            return f"{value:.9g}"
        case _:
            return str(value)[:_TEXT]


def _timings(figures: Iterable[Compared]) -> Iterator[dict[str, Any]]:
    """Fresh over published of every figure that is a time, those of one name in one file together.

    An interval has no ratio, nor has a word that times decide.
    """
    numbers = (f for f in figures if isinstance(f.published, int | float) and isinstance(f.fresh, int | float))
    timings = [f for f in numbers if f.kind is Kind.TIMING and f.as_before]
    for (file, name), group in groupby(sorted(timings, key=_file_and_name), key=_file_and_name):
        found = list(group)
        ratios = [figure.fresh / figure.published for figure in found if figure.published]
        if ratios:
            yield {
                "file": file,
                "name": name,
                "figures": len(found),
                "ratio": {"median": median(ratios), "least": min(ratios), "greatest": max(ratios)},
                "intervals_apart": [figure.place for figure in found if figure.intervals_apart],
            }


def _file_and_name(figure: Compared) -> tuple[str, str]:
    return figure.file, figure.place.rpartition("/")[2]


def show(document: dict[str, Any], console: Console) -> None:
    """Print what was compared, the timings and what is unlike as tables, and then the verdict."""
    console.print(f"Published: {document['published']}. Fresh: {document['fresh']}.", markup=False)
    for title, (columns, rows) in _tables(document).items():
        _print_table(console, title, columns, rows)
    for line in (*document["faults"], _verdict(document)):
        console.print(line, markup=False)


def _tables(document: dict[str, Any]) -> dict[str, tuple[list[str], list[Row]]]:
    """Columns and rows by the tables' titles."""
    return {
        "What was compared": (
            ["kind", "", "figures", "unlike", "outputs", "unlike"],
            [(kind, _MEANING[Kind(kind)], *map(str, counts.values())) for kind, counts in document["kinds"].items()],
        ),
        "Outputs": (
            ["output", "kind", "bytes"],
            [(o["path"], o["kind"], "the same" if o["same_bytes"] else "others") for o in document["outputs"]],
        ),
        "Timings, fresh over published": (
            ["file", "figure", "median", "least", "greatest", "intervals apart"],
            [_timing_row(timing) for timing in document["timings"]],
        ),
        "Not as published": (
            ["file", "figure", "kind", "published", "fresh", "deviation"],
            [_unlike_row(entry) for entry in document["unlike"]],
        ),
    }


def _timing_row(timing: dict[str, Any]) -> Row:
    ratios = [f"{timing['ratio'][which]:.2f}" for which in ("median", "least", "greatest")]
    return (timing["file"], timing["name"], *ratios, ", ".join(timing["intervals_apart"]))


def _unlike_row(entry: dict[str, Any]) -> Row:
    deviation = entry["deviation"]
    told = "" if deviation is None else f"{deviation:.1e}"
    return (entry["file"], entry["place"], entry["kind"], entry["published"], entry["fresh"], told)


def _print_table(console: Console, title: str, columns: list[str], rows: list[Row]) -> None:
    if not rows:
        return
    table = Table(*columns, title=title, title_justify="left", box=None, caption_justify="left")
    for row in rows[:_SHOWN]:
        table.add_row(*map(escape, row))
    if len(rows) > _SHOWN:
        table.caption = f"and {len(rows) - _SHOWN} more: --json has all"
    console.print(table)


def _verdict(document: dict[str, Any]) -> str:
    if document["reproduced"]:
        return "Reproduced."
    if not document["faults"] and all(entry["kind"] == Kind.DIGITS for entry in document["unlike"]):
        return f"Reproduced, but for figures that differ by more than last digits: {len(document['unlike'])}. {_CHAOS}"
    kinds = document["kinds"].values()
    figures, outputs = (sum(kind[f"unlike_{what}"] for kind in kinds) for what in ("figures", "outputs"))
    unread = len(document["faults"])
    return f"Not reproduced. Unlike figures: {figures}; unlike outputs: {outputs}; files not compared: {unread}."
