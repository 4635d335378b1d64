"""The pictures of the papers' evaluations, each drawn from the results document of a part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

_PANEL_INCHES = (4.5, 3.2)


def learning(agents: Mapping[str, Mapping[str, Any]]) -> Figure:
    """RLFlow's Figures 8 and 9: the world model's losses, and the controller's returns in the dream and in reality.

    agents: schema `paper`. Each graph has a row; lines are medians over seeds, bands reach from the least to the most.
    """
    width, height = _PANEL_INCHES
    figure = Figure(figsize=(3 * width, height * len(agents)), layout="constrained")
    panels = figure.subplots(len(agents), 3, squeeze=False)
    for (v_loss, m_loss, scores), (graph, found) in zip(panels, agents.items(), strict=True):
        curves = found["rlflow"]["curves"]
        _band(v_loss, curves["encoder/saving"], "V, of savings")
        _band(m_loss, curves["memory/births"], "M, of births")
        _band(scores, curves["return_percent"], "in the dream, while learning")
        _band(scores, curves["real_score_percent"], "on the graph, at its best", of=len(curves["return_percent"][0]))
        for axes in (v_loss, m_loss):
            axes.set(title=graph, xlabel="epoch", ylabel="loss")
        scores.set(title=graph, xlabel="update", ylabel="saved, %")
        for axes in (v_loss, m_loss, scores):
            axes.legend(fontsize="small")
    return figure


def _band(axes: Axes, courses: Sequence[Sequence[float]], label: str, of: int | None = None) -> None:
    """One line with its band; `of`: the updates that points told less often are spread over."""
    values = np.array(courses)
    count = values.shape[1]
    steps = np.arange(1, count + 1) if of is None else np.linspace(of / count, of, count)
    (line,) = axes.plot(steps, np.median(values, axis=0), label=label)
    axes.fill_between(steps, values.min(axis=0), values.max(axis=0), alpha=0.2, color=line.get_color())
