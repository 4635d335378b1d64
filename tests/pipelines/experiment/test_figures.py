import numpy as np
import pytest
from experiment.figures import (
    improvement,
    latency_ratios,
    learned_curves,
    rule_counts,
    rule_heat_map,
    step_growth,
    temperature_sweep,
    training_curves,
)

from rlflow.show.picture_file import save


def test_bars_are_the_stored_ratios_and_arms_the_stored_intervals(evaluation):
    figure = latency_ratios(evaluation)
    assert len(figure.axes) == 2
    for axes, setting in zip(figure.axes, ("as_written", "deployed"), strict=True):
        drawn = {container.get_label(): container for container in axes.containers if hasattr(container, "patches")}
        for method, container in drawn.items():
            stored = [graph[method] for graph in evaluation.values() if method in graph]
            heights = [bar.get_height() for bar in container.patches]
            assert heights == [result[f"latency_ratio_{setting}"] for result in stored]
            arms = container.errorbar.lines[2][0].get_segments()
            ends = [[arm[0, 1], arm[1, 1]] for arm in arms]
            np.testing.assert_allclose(ends, [result[f"latency_ratio_{setting}_ci95"] for result in stored])
        assert set(drawn) == {"original", "random", "greedy", "backtracking", "rlflow"}


def test_curves_are_the_stored_points():
    """One graph has a curve fewer than the other; its row ends early."""
    loss = {"unit": "nats", "step_name": "epoch", "step": [0, 1, 2], "value": [3.0, 2.0, 1.5]}
    reward = {"unit": "%", "step_name": "update", "step": [0, 10], "value": [0.0, 4.0]}
    curves = {"bert": {"loss": loss}, "tiny": {"loss": loss | {"value": [1.0, 2.0, 3.0]}, "reward": reward}}
    figure = training_curves(curves)
    stored = [(graph, name, curve) for graph, drawn in curves.items() for name, curve in drawn.items()]
    for axes, (graph, name, curve) in zip(figure.axes, stored, strict=True):
        assert (axes.get_title(), axes.get_xlabel(), axes.get_ylabel()) == (
            f"{graph}: {name}",
            curve["step_name"],
            curve["unit"],
        )
        np.testing.assert_array_equal(axes.lines[0].get_xydata().T, [curve["step"], curve["value"]])
    rows = [axes.get_subplotspec().rowspan.start for axes in figure.axes]
    assert rows == [0, 1, 1]


def test_improvements_are_the_stored_ones_up_to_the_end_of_the_search(documents):
    """A panel for each cost; a budget beyond the end (100 evaluations of a search that took 30) is not drawn."""
    documents["headroom"]["bert"]["gpu"]["greedy"]["evaluations"] = 30
    figure = improvement(documents["headroom"])
    assert [axes.get_title() for axes in figure.axes] == ["bert, analytic", "bert, gpu"]
    greedy, end, saturation, _ = figure.axes[0].lines
    np.testing.assert_array_equal(greedy.get_xydata(), [[10, 4.0], [100, 9.5], [137, 10.0]])
    np.testing.assert_array_equal(end.get_xydata(), [[137, 10.0]])
    np.testing.assert_array_equal(saturation.get_xydata()[-1], [4000, 20.0])
    np.testing.assert_array_equal(figure.axes[1].lines[0].get_xydata(), [[10, 4.0], [30, 10.0]])
    (legend,) = figure.legends
    colours = {
        text.get_text(): line.get_color() for text, line in zip(legend.texts, legend.legend_handles, strict=True)
    }
    assert colours == {"greedy": greedy.get_color(), "equality_saturation": saturation.get_color()}


def test_steps_are_drawn_by_size_beside_proportional_ones():
    rows = [
        {"name": "real step by size, 1 layers, 40 nodes, 16 rules", "value": 1.0},
        {"name": "order, BERT-Base", "value": 9.0},
        {"name": "real step by size, 3 layers, 120 nodes, 16 rules", "value": 1.5},
    ]
    measured, proportional = step_growth(rows).axes[0].lines
    np.testing.assert_array_equal(measured.get_xydata(), [[40, 1.0], [120, 1.5]])
    np.testing.assert_allclose(proportional.get_xydata(), [[40, 0.5], [120, 1.5]])


def test_the_sweep_is_drawn_by_rising_temperature_with_its_baseline(sweep):
    panels = temperature_sweep(sweep | {"tiny": sweep["bert"]}).axes
    assert [panel.get_title() for panel in panels] == ["bert", "tiny"]
    axes = panels[0]
    points = {container.get_label(): container.lines[0].get_xydata() for container in axes.containers}
    np.testing.assert_array_equal(points["dream"], [[0.5, 9.0], [1.5, 5.0]])
    np.testing.assert_array_equal(points["real"], [[0.5, 3.0], [1.5, 7.0]])
    baseline = next(line for line in axes.lines if line.get_label() == "real, random agent")
    assert set(baseline.get_ydata()) == {1.0}


def test_the_heat_map_counts_every_rule_once_per_graph(rules_applied):
    assert rule_counts(rules_applied, "rlflow") == {"sum": [25, 0], "merge": [12, 1], "cancel": [0, 2]}
    axes = rule_heat_map(rules_applied, "rlflow").axes[0]
    np.testing.assert_array_equal(axes.images[0].get_array(), [[25, 0], [12, 1], [0, 2]])
    assert [label.get_text() for label in axes.get_xticklabels()] == ["bert", "tiny"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["sum", "merge", "cancel"]
    assert not rule_heat_map(rules_applied, "random").axes[0].images


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_figures_are_written(sweep, tmp_path, suffix):
    path = tmp_path / "new" / f"sweep.{suffix}"
    save(temperature_sweep(sweep), path)
    assert path.read_bytes()[:4] == {"png": b"\x89PNG", "svg": b"<?xm"}[suffix]


def test_curves_of_learning_are_the_stored_ones_with_their_bands():
    """A panel a graph; a method has one colour in all of them."""
    axis = {"unit": "%", "step_name": "evaluations past greedy", "step": [0, 100, 500]}
    ends = {"rlflow, low": axis | {"value": [6.0, 6.5, 7.0]}, "rlflow, high": axis | {"value": [6.0, 8.5, 9.0]}}
    curves = {
        "gpt2": {"greedy": axis | {"value": [6.0] * 3}, "rlflow": axis | {"value": [6.0, 7.5, 8.0]}, **ends},
        "vit": {"rlflow": axis | {"value": [1.0, 2.0, 3.0]}},
    }
    figure = learned_curves(curves)
    assert [axes.get_title() for axes in figure.axes] == ["gpt2", "vit"]
    first, second = figure.axes
    np.testing.assert_array_equal(first.lines[1].get_xydata().T, [axis["step"], [6.0, 7.5, 8.0]])
    assert first.lines[1].get_color() == second.lines[0].get_color() != first.lines[0].get_color()
    (band,) = first.collections
    assert band.get_paths()[0].get_extents().ymax == 9.0
    assert not second.collections
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["greedy", "rlflow"]
