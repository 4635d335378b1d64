"""Pictures: every box and every edge is drawn, in its place and colour, and nothing lies on anything else."""

import pytest
from matplotlib.colors import to_hex
from matplotlib.text import Annotation
from support.square_graphs import random_graph

from rlflow.show.box_picture import draw
from rlflow.show.boxes import COLOURS, Box, model_panels
from rlflow.show.picture_file import save


@pytest.mark.parametrize("seed", range(3))
def test_all_boxes_are_drawn_in_their_colours_and_all_edges(seed) -> None:
    panels = model_panels(random_graph(seed), random_graph(seed + 10))
    figure = draw(panels)
    assert [axes.get_title() for axes in figure.axes] == ["before", "after"]
    for axes, panel in zip(figure.axes, panels.values(), strict=True):
        arrows = [text for text in axes.texts if isinstance(text, Annotation)]
        boxes = [text for text in axes.texts if not isinstance(text, Annotation)]
        assert [text.get_text() for text in boxes] == [box.label for box in panel]
        assert [to_hex(text.get_bbox_patch().get_facecolor()) for text in boxes] == [COLOURS[b.kind] for b in panel]
        places = [text.get_position() for text in boxes]
        drawn = [(arrow.xyann, arrow.xy) for arrow in arrows]
        assert drawn == [(places[source], places[i]) for i, box in enumerate(panel) for source in box.operands]


def test_no_label_overlaps_another_one() -> None:
    """Measured in pixels, with one row of three long labels above a short one."""
    wide = "a_very_long_name_of_a_tensor\nfloat32[1, 128, 768]"
    panel = [Box(wide, "value"), Box(wide, "value"), Box(wide, "value"), Box("Sum", "operator", (0, 1, 2))]
    figure = draw({"": panel})
    figure.draw_without_rendering()
    frames = [t.get_bbox_patch().get_window_extent() for t in figure.axes[0].texts if not isinstance(t, Annotation)]
    assert len(frames) == 4
    assert not [(a, b) for a in frames for b in frames if a is not b and a.overlaps(b)]


@pytest.mark.slow
def test_a_long_model_and_a_name_like_a_formula_can_be_written(tmp_path) -> None:
    """Six hundred rows at full height would be more pixels than a bitmap can have; an odd dollar sign is no formula."""
    chain = [Box("x$1", "value"), *(Box(f"Relu_{i}$", "operator", (i,)) for i in range(600))]
    save(draw({"": chain}), tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 10_000
