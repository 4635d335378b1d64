"""The panels of a DVC plot as they are drawn: what stands beside and above each, and where its marks are.

    panels(specification("methods", rows, x="saved_percent", y="series", folder=repository / ".dvc/plots"))
    # {("predicted", "bert"): {(5.7, "greedy", "workspace"), ...}, ...}

All is read off titles, axes and legends, as people read it, and not from the data that Vega keeps with a mark.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import vl_convert
from dvc_render.vega import VegaRenderer

Place = float | str | None
Panel = set[tuple[Place, Place, str]]
X, Y = 0, 1
_CRISP = 0.5  # of a pixel, by which Vega moves an axis off its panel, so that its lines are sharp


@dataclass(frozen=True)
class Drawn:
    """An item of the picture: the kind of its mark, the kinds of those around, its panel if it is in one, its place."""

    kind: str
    around: tuple[str, ...]
    panel: int | None
    place: tuple[float, float]
    item: Mapping[str, Any]

    def spans(self, other: "Drawn", axis: int) -> bool:
        """Return True if the other item lies between the two ends of this one."""
        length = self.item[("width", "height")[axis]]
        return -1.0 <= other.place[axis] - self.place[axis] <= length + 1.0


def specification(template: str, rows: Sequence[Mapping[str, Any]], x: str, y: str, folder: Path) -> dict[str, Any]:
    """The picture of rows, which name their experiment `rev`, by a template of that folder, as DVC fills it."""
    plot = VegaRenderer(list(rows), "plot", template=template, template_dir=str(folder), x=x, y=y, title="plot")
    filled: dict[str, Any] = plot.get_filled_template()
    return filled


def panels(plot: Mapping[str, Any]) -> dict[tuple[str, ...], Panel]:
    """By the titles beside a panel, if there is one, and above it: where its points and its lines' corners
    are, and the legend's name of their colour.
    """
    drawn = list(_walked(vl_convert.vegalite_to_scenegraph(dict(plot))["scenegraph"], (), None, (0.0, 0.0)))
    return {_titles(cell, drawn): _read(cell, drawn) for cell in drawn if cell.kind == "cell"}


def _titles(cell: Drawn, drawn: Sequence[Drawn]) -> tuple[str, ...]:
    return tuple(
        one.item["text"]
        for header, axis in (("row_header", Y), ("column_header", X))
        for one in drawn
        if one.kind == "title-text" and header in one.around and cell.spans(one, axis)
    )


def _read(cell: Drawn, drawn: Sequence[Drawn]) -> Panel:
    marks = [one for one in drawn if one.panel == id(cell.item) and one.kind in ("symbol", "line")]
    names = _legend(drawn)
    return {(_on_axis(cell, one, drawn, X), _on_axis(cell, one, drawn, Y), names[_colour(one)]) for one in marks}


def _colour(one: Drawn) -> str:
    colours = (one.item.get(part, "transparent") for part in ("stroke", "fill"))
    return next(colour for colour in colours if colour != "transparent")


def _legend(drawn: Sequence[Drawn]) -> dict[str, str]:
    """The names of colours."""
    symbols, labels = ([one for one in drawn if one.kind == f"legend-{part}"] for part in ("symbol", "label"))
    return {_colour(symbol): label.item["text"] for symbol, label in zip(symbols, labels, strict=True)}


def _on_axis(cell: Drawn, mark: Drawn, drawn: Sequence[Drawn], axis: int) -> Place:
    """What the axis of the panel, or the one that it shares with others in its line, says of a mark's place."""
    orient = ("bottom", "left")[axis]
    all_labels = [one for one in drawn if one.kind == "axis-label" and orient in one.around]
    own = [one for one in all_labels if one.panel == id(cell.item)]
    labels = own or [one for one in all_labels if one.panel is None and cell.spans(one, axis)]
    try:
        scale = sorted((one.place[axis], float(one.item["text"].replace("−", "-").replace(",", ""))) for one in labels)
    except ValueError:
        return min(labels, key=lambda one: abs(one.place[axis] - mark.place[axis])).item["text"]
    (start, low), (end, high) = scale[0], scale[-1]
    if start == end:  # all values of the axis are one, and its only label is a rounded number
        return None
    return low + (high - low) * (mark.place[axis] + _CRISP - start) / (end - start)


def _walked(
    mark: Mapping[str, Any], around: tuple[str, ...], panel: int | None, outside: tuple[float, float]
) -> Iterator[Drawn]:
    """All items of a mark and of what is in them. Vega's places are relative to the item around."""
    kind = mark["marktype"] if mark.get("role") == "mark" else mark.get("name") or mark.get("role") or ""
    for item in mark["items"]:
        place = (outside[X] + item.get("x", 0.0), outside[Y] + item.get("y", 0.0))
        yield Drawn(kind, around, panel, place, item)
        inside = (*around, kind, item.get("orient", ""))
        for part in item.get("items", []):
            yield from _walked(part, inside, id(item) if kind == "cell" else panel, place)
