"""A picture of a rule: its two sides as graphs that flow downwards, and its condition in words below them."""

from __future__ import annotations

from rlflow.extras import needs
from rlflow.rules.rule import Rule
from rlflow.show.box_picture import draw as draw_panels
from rlflow.show.rule_boxes import condition, rule_panels

with needs("plots", "a picture"):
    from matplotlib.figure import Figure


def draw(rule: Rule) -> Figure:
    """Draw both sides of a rule beside each other."""
    figure = draw_panels(rule_panels(rule))
    figure.suptitle(f"{rule.id}  {rule.name}")
    figure.supxlabel(condition(rule), fontsize="medium")
    return figure
