"""The pictures show the figures that they are drawn from."""

import numpy as np
from studies.paper.pictures import learning
from support.papers import agents


def test_a_row_for_each_graph_with_losses_and_scores():
    """Lines are medians over seeds, and what is told less often is spread over the same updates."""
    drawn = agents()
    drawn["vit"] = drawn["bert"]
    figure = learning(drawn)
    assert [axes.get_title() for axes in figure.axes] == ["bert"] * 3 + ["vit"] * 3
    dreamt, real = figure.axes[2].get_lines()
    assert np.allclose(dreamt.get_ydata(), [1.5, 2.5, 4.5])
    assert dreamt.get_xdata()[-1] == real.get_xdata()[-1] == 3
