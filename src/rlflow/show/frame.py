"""A frame of a film of rewriting: the graph at the start and the present one, in a picture that is always as large."""

from __future__ import annotations

import numpy as np

from rlflow.extras import needs
from rlflow.ir.graph import Graph
from rlflow.show.box_picture import draw
from rlflow.show.boxes import model_panels

with needs("plots", "a picture"):
    from matplotlib.backends.backend_agg import FigureCanvasAgg

HEIGHT, WIDTH = 720, 1280
_DOTS_PER_INCH = 100
"""At most: a large graph is drawn smaller."""


def frame(start: Graph, present: Graph) -> np.ndarray:
    """(HEIGHT, WIDTH, 3) uint8: both graphs side by side, with the operators marked that went and that came."""
    figure = draw(model_panels(start, present))
    width, height = figure.get_size_inches()
    figure.set_dpi(min(_DOTS_PER_INCH, WIDTH / width, HEIGHT / height))
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    drawn = np.asarray(canvas.buffer_rgba())[:HEIGHT, :WIDTH, :3]
    result = np.full((HEIGHT, WIDTH, 3), 255, np.uint8)
    top, left = (HEIGHT - drawn.shape[0]) // 2, (WIDTH - drawn.shape[1]) // 2
    result[top : top + drawn.shape[0], left : left + drawn.shape[1]] = drawn
    return result
