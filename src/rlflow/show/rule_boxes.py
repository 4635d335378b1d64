"""The content of a picture of a rule: its two sides as boxes, and its condition in words."""

from __future__ import annotations

from rlflow.rules import pattern
from rlflow.rules.expression import describe
from rlflow.rules.pattern import Apply, Term, Variable
from rlflow.rules.rule import Rule
from rlflow.show.boxes import Box, Panel


def rule_panels(rule: Rule) -> dict[str, Panel]:
    """Return both sides of a rule; a variable has the same name on both."""
    return {"replace": _boxes(rule.source), "by": _boxes(rule.target)}


def condition(rule: Rule) -> str:
    """Say when the rule holds, as a clause."""
    conditions = [describe(condition) for condition in rule.where]
    conditions += [f"{name} is constant" for name, spec in rule.variables.items() if spec.constant]
    return f"if {' and '.join(conditions)}" if conditions else "always"


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
