"""A picture of a rule: its two sides as graphs that flow downwards, and its condition in words below them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rlflow.rules import pattern
from rlflow.rules.expression import describe
from rlflow.rules.pattern import Apply, Term, Variable
from rlflow.rules.rule import Rule

_SIDE_INCHES = 4.2
_LAYER_INCHES = 0.9
_OPERATOR, _VALUE = "#cfe3f7", "#f2f2f2"
_LINE = "#888888"


@dataclass(frozen=True)
class _Box:
    """A variable, an operator or an output; `layer` counts from the variables down."""

    label: str
    colour: str
    layer: int
    operands: tuple[int, ...]


def draw(rule: Rule) -> Figure:
    """Draw both sides of a rule beside each other; a variable has the same name on both."""
    sides = [_boxes(rule.source), _boxes(rule.target)]
    layers = 1 + max(box.layer for side in sides for box in side)
    figure = Figure(figsize=(2 * _SIDE_INCHES, _LAYER_INCHES * (layers + 1)), layout="constrained")
    for axes, side, title in zip(figure.subplots(1, 2), sides, ("replace", "by"), strict=True):
        _draw_side(axes, side)
        axes.set_title(title)
    figure.suptitle(f"{rule.id}  {rule.name}")

    conditions = [describe(condition) for condition in rule.where]
    conditions += [f"{name} is constant" for name, spec in rule.variables.items() if spec.constant]
    figure.supxlabel(f"if {' and '.join(conditions)}" if conditions else "always", fontsize="medium")
    return figure


def _boxes(terms: tuple[Term, ...]) -> list[_Box]:
    """The boxes of one side: common parts once, operands before the operators that read them, outputs last."""
    boxes: list[_Box] = []
    places: dict[Term, int] = {}

    def place(term: Term) -> int:
        node = term.node if isinstance(term, Apply) else term
        if node not in places:
            operands = tuple(place(a) for a in node.arguments) if isinstance(node, Apply) else ()
            layer = 1 + max((boxes[i].layer for i in operands), default=-1)
            colour = _VALUE if isinstance(node, Variable) else _OPERATOR
            places[node] = len(boxes)
            boxes.append(_Box(_label(node), colour, layer, operands))
        return places[node]

    ends = [place(term) for term in terms]

    last = 1 + max(box.layer for box in boxes)
    for number, end in enumerate(ends):
        boxes.append(_Box(f"output {number}" if len(ends) > 1 else "output", _VALUE, last, (end,)))
    return boxes


def _label(term: Term) -> str:
    if isinstance(term, Variable):
        return term.name
    return pattern.show(Apply(term.op, term.attributes, ())).removesuffix("()").replace("[", "\n[")


def _draw_side(axes: Axes, boxes: list[_Box]) -> None:
    """Draw boxes in rows by layer, each layer spread over the width, with arrows from operands."""
    widths = Counter(box.layer for box in boxes)
    used: Counter[int] = Counter()
    places = []
    for box in boxes:
        places.append(((used[box.layer] + 0.5) / widths[box.layer], -float(box.layer)))
        used[box.layer] += 1

    arrow = {"arrowstyle": "-|>", "color": _LINE, "shrinkA": 10, "shrinkB": 12}
    for box, end in zip(boxes, places, strict=True):
        for operand in box.operands:
            axes.annotate("", xy=end, xytext=places[operand], arrowprops=arrow)
    for box, (x, y) in zip(boxes, places, strict=True):
        frame = {"boxstyle": "round,pad=0.35", "facecolor": box.colour, "edgecolor": _LINE}
        axes.text(x, y, box.label, ha="center", va="center", fontsize="small", bbox=frame)
    axes.set_xlim(0, 1)
    axes.set_ylim(-max(widths) - 0.6, 0.6)
    axes.set_axis_off()
