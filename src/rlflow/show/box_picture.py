"""Panels of boxes drawn side by side; in each, data flows downwards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from rlflow.extras import needs
from rlflow.ir.networkx_view import top_down_layout
from rlflow.show.boxes import COLOURS, LINE_COLOUR, Panel

with needs("plots", "a picture"):
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Layout = list[tuple[float, int]]
"""Column and row of each box."""

_ROW_INCHES, _CHARACTER_INCHES, _GAP_INCHES, _MARGIN_INCHES = 0.75, 0.08, 0.4, 0.8
_MOST_INCHES = 400.0
"""Longer pictures are drawn closer: a bitmap has no more than 65,535 pixels on a side."""


def draw(panels: Mapping[str, Panel]) -> Figure:
    """Return a figure of the panels, each under its title."""
    layouts = [top_down_layout([box.operands for box in panel]) for panel in panels.values()]
    widths = [_width_inches(panel, layout) for panel, layout in zip(panels.values(), layouts, strict=True)]
    rows = 1 + max(row for layout in layouts for _, row in layout)

    size = (sum(widths) + _MARGIN_INCHES, rows * _ROW_INCHES + _MARGIN_INCHES)
    figure = Figure(figsize=(min(size[0], _MOST_INCHES), min(size[1], _MOST_INCHES)), layout="constrained")
    drawn = figure.subplots(1, len(panels), squeeze=False, width_ratios=widths)[0]
    for axes, layout, (title, panel) in zip(drawn, layouts, panels.items(), strict=True):
        _draw_panel(axes, panel, layout)
        columns = 1 + 2 * max(abs(column) for column, _ in layout)
        axes.set_title(title)
        axes.set_xlim(-columns / 2, columns / 2)
        axes.set_ylim(rows - 0.4, -0.6)
        axes.set_axis_off()
    return figure


def _width_inches(panel: Panel, layout: Layout) -> float:
    """The width of the row whose labels take most."""
    width: Counter[int] = Counter()
    for box, (_, row) in zip(panel, layout, strict=True):
        width[row] += max(map(len, box.label.split("\n")))
    boxes = Counter(row for _, row in layout)
    return max(_CHARACTER_INCHES * width[row] + _GAP_INCHES * boxes[row] for row in boxes)


def _draw_panel(axes: Axes, panel: Panel, layout: Layout) -> None:
    for box, (column, row) in zip(panel, layout, strict=True):
        for operand in box.operands:
            # An edge past other rows bends, so that it does not run through the boxes in between.
            bend = 0.0 if row - layout[operand][1] == 1 else 0.25
            arrow = {"arrowstyle": "-|>", "color": LINE_COLOUR, "shrinkA": 10, "shrinkB": 12}
            arrow |= {"connectionstyle": f"arc3,rad={bend}"}
            axes.annotate("", xy=(column, row), xytext=layout[operand], arrowprops=arrow)

    for box, (column, row) in zip(panel, layout, strict=True):
        frame = {"boxstyle": "round,pad=0.35", "facecolor": COLOURS[box.kind], "edgecolor": LINE_COLOUR}
        # A dollar sign would open a formula, which a name from a model need not close.
        label = box.label.replace("$", r"\$")
        axes.text(column, row, label, ha="center", va="center", fontsize="small", bbox=frame)
