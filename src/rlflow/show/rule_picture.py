"""A picture of a rule: its two sides as graphs that flow downwards, and its condition in words below them."""

from __future__ import annotations

from rlflow.extras import needs
from rlflow.rules import pattern
from rlflow.rules.expression import describe
from rlflow.rules.pattern import Apply, Term, Variable
from rlflow.rules.rule import Rule
from rlflow.show.box_picture import draw as draw_panels
from rlflow.show.boxes import Box

with needs("plots", "a picture"):
    from matplotlib.figure import Figure


def draw(rule: Rule) -> Figure:
    """Draw both sides of a rule beside each other; a variable has the same name on both."""
    figure = draw_panels({"replace": _boxes(rule.source), "by": _boxes(rule.target)})
    figure.suptitle(f"{rule.id}  {rule.name}")

    conditions = [describe(condition) for condition in rule.where]
    conditions += [f"{name} is constant" for name, spec in rule.variables.items() if spec.constant]
    figure.supxlabel(f"if {' and '.join(conditions)}" if conditions else "always", fontsize="medium")
    return figure


def _boxes(terms: tuple[Term, ...]) -> list[Box]:
    """The boxes of one side: common parts once, operands before the operators that read them, outputs last."""
    boxes: list[Box] = []
    places: dict[Term, int] = {}

    def place(term: Term) -> int:
        node = term.node if isinstance(term, Apply) else term
        if node not in places:
            operands = tuple(place(a) for a in node.arguments) if isinstance(node, Apply) else ()
            places[node] = len(boxes)
            boxes.append(Box(_label(node), "value" if isinstance(node, Variable) else "operator", operands))
        return places[node]

    ends = [place(term) for term in terms]
    for number, end in enumerate(ends):
        boxes.append(Box(f"output {number}" if len(ends) > 1 else "output", "value", (end,)))
    return boxes


def _label(term: Term) -> str:
    if isinstance(term, Variable):
        return term.name
    return pattern.show(Apply(term.op, term.attributes, ())).removesuffix("()").replace("[", "\n[")
