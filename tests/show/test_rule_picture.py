"""The picture of a rule names its operators, variables, outputs and conditions."""

import pytest
from matplotlib.figure import Figure

from rlflow.rules.library import load
from rlflow.show.rule_picture import draw


def _texts(figure: Figure) -> list[list[str]]:
    return [sorted(text.get_text() for text in axes.texts if text.get_text()) for axes in figure.axes]


def test_both_sides_show_what_they_are_made_of() -> None:
    rule = load().get("scale-into-weight")
    before, after = _texts(draw(rule))
    assert [sum(label.startswith(op) for label in before) for op in ("MatMul", "Mul", "output")] == [1, 1, 1]
    assert set(rule.variables) <= set(before)
    assert set(rule.variables) <= set(after)


def test_the_condition_stands_below() -> None:
    figure = draw(load().get("scale-into-weight"))
    assert "is constant" in figure.get_supxlabel()
    assert load().get("scale-into-weight").id in figure.get_suptitle()


@pytest.mark.parametrize("outputs", [1, 2])
def test_outputs_are_numbered_where_there_are_several(outputs: int) -> None:
    rule = next(rule for rule in load().rules if len(rule.source) == outputs)
    (before, after), wanted = _texts(draw(rule)), {1: ["output"], 2: ["output 0", "output 1"]}[outputs]
    for side in (before, after):
        assert [label for label in side if label.startswith("output")] == wanted
