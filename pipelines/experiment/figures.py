"""Figures, each drawn from a results document and from nothing else.

    figure = latency_ratios(read_results(Path("data/results/evaluate/metrics.json")))
    save(figure, Path("latency_ratios.svg"))

The invariant: a figure shows stored numbers, so it can be drawn again at any time, and a test can compare what is drawn
with what is stored. Figures are built without pyplot, so nothing is global and no display is needed.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

import networkx as nx
import numpy as np

from experiment.comparison import ORIGINAL
from experiment.tables import Metrics, methods_of
from rlflow.extras import needs
from rlflow.runtime.session import SETTINGS
from rlflow.runtime.timing.statistics import NOISE
from rlflow.trajectory.state_graph import rewrites_to, sources_of

with needs("plots", "a picture"):
    from matplotlib import colormaps
    from matplotlib.axes import Axes
    from matplotlib.collections import LineCollection
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

_TITLES = {
    "as_written": "as written (ORT optimisation off)",
    "deployed": "deployed (ORT_ENABLE_ALL)",
}
_STEP_BY_SIZE = re.compile(r"real step by size, .*?(\d+) nodes")
_PANEL_INCHES = (5.0, 3.4)
_SMALL_PANEL_INCHES = 3.0
_LEGEND_ROW_INCHES = 0.25
_COLOURS = [colormaps["tab20"](number) for number in range(20)]
_STRONG_FIRST = (*_COLOURS[::2], *_COLOURS[1::2])
_PANELS_IN_A_ROW = 5
_LINEAR_EVALUATIONS = 10  # up to which the axis is linear, since curves begin at none
_CELL_INCHES = 0.45
_CHARACTER_INCHES = 0.08


def latency_ratios(metrics: Metrics) -> Figure:
    """Bars of the measured latency ratio per graph and method, one panel per setting, with 95 % intervals.

    `metrics` follows schema `evaluate`. The line at 1 is the original, the band around it the 2 % that count as noise.
    """
    figure = _figure(columns=len(SETTINGS))
    for axes, setting in zip(figure.subplots(1, len(SETTINGS), sharey=True), SETTINGS, strict=True):
        _ratio_bars(axes, metrics, f"latency_ratio_{setting}")
        axes.set_title(_TITLES[setting])
    figure.axes[0].set_ylabel("latency ratio, original / optimised")
    figure.axes[-1].legend(fontsize="small")
    return figure


def training_curves(curves: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> Figure:
    """One row of panels per graph and one panel per curve, in the order of `curves` (schema `curves`)."""
    columns = max(map(len, curves.values()))
    figure = _figure(columns, rows=len(curves))
    for row, (graph, drawn) in enumerate(curves.items()):
        for column, (name, curve) in enumerate(drawn.items()):
            axes = figure.add_subplot(len(curves), columns, row * columns + column + 1)
            axes.plot(curve["step"], curve["value"])
            axes.set(title=f"{graph}: {name}", xlabel=curve["step_name"], ylabel=curve["unit"])
    return figure


def trust(metrics: Mapping[str, Mapping[str, Any]]) -> Figure:
    """Draw how far dreams can be trusted: errors by horizon beside baselines, and whether the model knows its errors.

    `metrics` follows schema `fit_world_model`; each graph has a row. Below 1, a dream is better than its baseline.
    """
    columns = 2 if any("calibration" in found for found in metrics.values()) else 1
    figure = _figure(columns, rows=len(metrics))
    panels = figure.subplots(len(metrics), columns, squeeze=False)
    for row, (graph, found) in zip(panels, metrics.items(), strict=True):
        _errors_by_horizon(row[0], found["open_loop"])
        row[0].set(title=graph, xlabel="imagined steps", ylabel="error / baseline's")
        row[0].legend()
        if "calibration" in found:
            _calibration(row[1], found["calibration"])
            row[1].set(title=graph, xlabel="nominal, %", ylabel="share of errors within, %")
            row[1].legend()
    return figure


def temperature_sweep(metrics: Mapping[str, Mapping[str, Any]]) -> Figure:
    """Scores in the dream and in the real environment by temperature, and the random agent's real score.

    `metrics` follows schema `temperature_sweep` (the paper's Table 3); each graph has a panel.
    """
    figure = _figure(columns=len(metrics))
    panels = figure.subplots(1, len(metrics), squeeze=False)[0]
    for axes, (graph, sweep) in zip(panels, metrics.items(), strict=True):
        _scores_by_temperature(axes, sweep)
        axes.set(title=graph, xlabel="temperature", ylabel="improvement, %")
        axes.legend()
    return figure


def improvement(metrics: Mapping[str, Mapping[str, Mapping[str, Mapping[str, Any]]]]) -> Figure:
    """Lines of what each method had saved after so many evaluations, one panel per graph and cost.

    `metrics` follows schema `headroom`. A dot ends the line of a method where its search ended.
    """
    places = [(f"{graph}, {cost}", methods) for graph, costs in metrics.items() for cost, methods in costs.items()]
    compared = dict.fromkeys(method for _, methods in places for method in methods if method != ORIGINAL)
    colours = {method: f"C{number}" for number, method in enumerate(compared)}
    columns = min(_PANELS_IN_A_ROW, len(places))
    lines = -(-len(places) // columns)

    figure = Figure(figsize=(_SMALL_PANEL_INCHES * columns, _SMALL_PANEL_INCHES * 0.8 * lines), layout="constrained")
    panels = figure.subplots(lines, columns, squeeze=False).flatten()
    for axes, (title, methods) in zip(panels, places, strict=False):
        for method in [method for method in compared if method in methods]:
            _saving_line(axes, methods[method], colours[method])
        axes.set_title(title, fontsize="small")
        axes.set_xscale("log")
        axes.tick_params(labelsize="small")
    for axes in panels[len(places) :]:
        axes.set_axis_off()
    figure.supxlabel("evaluations")
    figure.supylabel("improvement, %")
    handles = [Line2D([], [], color=colour, label=method) for method, colour in colours.items()]
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles) or 1)
    return figure


def learned_curves(curves: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> Figure:
    """Lines of what each method has saved by the effort that it took, with bands over seeds; a panel a graph.

    `curves` follows schema `curves`; those named "..., low" and "..., high" are the ends of another's band.
    """
    methods = dict.fromkeys(name for drawn in curves.values() for name in drawn if ", " not in name)
    colours = dict(zip(methods, cycle(_STRONG_FIRST), strict=False))
    columns = min(_PANELS_IN_A_ROW, len(curves))
    lines = -(-len(curves) // columns)
    entries = min(len(methods), 2 * columns) or 1  # of the legend in a row; what is wider than the panels is cut off

    height = _SMALL_PANEL_INCHES * 0.9 * lines + _LEGEND_ROW_INCHES * -(-len(methods) // entries)
    figure = Figure(figsize=(_SMALL_PANEL_INCHES * columns, height), layout="constrained")
    panels = figure.subplots(lines, columns, squeeze=False).flatten()
    for axes, (graph, drawn) in zip(panels, curves.items(), strict=False):
        for method in [method for method in methods if method in drawn]:
            curve, colour = drawn[method], colours[method]
            axes.plot(curve["step"], curve["value"], color=colour, linewidth=1, drawstyle="steps-post")
            ends = [drawn[end]["value"] for end in (f"{method}, low", f"{method}, high") if end in drawn]
            if ends:
                axes.fill_between(curve["step"], *ends, color=colour, alpha=0.2, linewidth=0, step="post")
        axes.set_title(graph, fontsize="small")
        axes.set_xscale("symlog", linthresh=_LINEAR_EVALUATIONS)
        axes.tick_params(labelsize="small")
    for axes in panels[len(curves) :]:
        axes.set_axis_off()
    figure.supxlabel(next(curve["step_name"] for drawn in curves.values() for curve in drawn.values()))
    figure.supylabel("improvement, %")
    handles = [Line2D([], [], color=colour, label=method) for method, colour in colours.items()]
    figure.legend(handles=handles, loc="outside upper center", ncols=entries, fontsize="small")
    return figure


def step_growth(bench: Sequence[Mapping[str, Any]]) -> Figure:
    """The median time of an environment step by the size of the graph, beside a line in proportion to the size.

    `bench` follows schema `bench`; its rows "real step by size, ... nodes, ..." are drawn.
    """
    sizes = [(_STEP_BY_SIZE.search(row["name"]), row["value"]) for row in bench]
    nodes, ms = zip(*((int(found[1]), value) for found, value in sizes if found), strict=True)

    figure = _figure(columns=1)
    axes = figure.subplots()
    axes.loglog(nodes, ms, marker="o", label="measured")
    axes.loglog(nodes, [ms[-1] * n / nodes[-1] for n in nodes], "--", color="grey", label="in proportion to the nodes")
    axes.set(title="one step, observation included", xlabel="nodes that run", ylabel="ms")
    axes.legend()
    return figure


def rule_heat_map(rules_applied: Mapping[str, Mapping[str, Mapping[str, int]]], method: str) -> Figure:
    """A heat map of how often `method` applied each rule on each graph (the paper's Figure 10).

    `rules_applied` follows the schema of that name. The most used rules come first; the map is empty if `method`
    applied none.
    """
    graphs = [graph for graph, methods in rules_applied.items() if method in methods]
    counts = rule_counts(rules_applied, method)

    width = 4 + _CELL_INCHES * len(graphs) + _CHARACTER_INCHES * max(map(len, counts), default=0)
    figure = Figure(figsize=(width, 2 + _CELL_INCHES * len(counts)), layout="constrained")
    axes = figure.subplots()
    axes.set_title(f"times applied by {method}")
    cells = np.array(list(counts.values()))
    if not cells.size:
        return figure

    image = axes.imshow(cells, aspect="auto", cmap="Blues", vmin=0)
    for (row, column), count in np.ndenumerate(cells):
        shade = "white" if count > cells.max() / 2 else "black"
        axes.text(column, row, str(count), ha="center", va="center", color=shade)
    axes.set_xticks(range(len(graphs)), graphs, rotation=45, ha="right")
    axes.set_yticks(range(len(counts)), list(counts))
    figure.colorbar(image)
    return figure


def visited_states(graphs: Mapping[str, nx.DiGraph]) -> Figure:
    """Draw the states that were visited, one panel a graph: how far each is from the start, and what it saves.

    A state has the colour of the last of its sources, so that the methods' ways show above the rollouts.
    """
    figure = _figure(columns=len(graphs))
    panels = figure.subplots(1, len(graphs), squeeze=False)[0]
    sources = list(dict.fromkeys(source for states in graphs.values() for source in sources_of(states)))
    colours = dict(zip(sources, cycle(_STRONG_FIRST), strict=False))
    for axes, (name, states) in zip(panels, graphs.items(), strict=True):
        _states(axes, states, rewrites_to(states), colours)
        axes.set(title=name, xlabel="fewest rewrites from the start", ylabel="saved, %")
    handles = [Line2D([], [], color=colour, marker=".", linestyle="", label=name) for name, colour in colours.items()]
    figure.legend(handles=handles, loc="outside right upper", fontsize="small")
    return figure


def rule_counts(rules_applied: Mapping[str, Mapping[str, Mapping[str, int]]], method: str) -> dict[str, list[int]]:
    """Rule -> how often `method` applied it, for each graph that `method` ran on; most used first, unused left out."""
    by_graph = [methods[method] for methods in rules_applied.values() if method in methods]
    rules = sorted({rule for counts in by_graph for rule, count in counts.items() if count})
    rows = {rule: [counts.get(rule, 0) for counts in by_graph] for rule in rules}
    return dict(sorted(rows.items(), key=lambda row: -sum(row[1])))


def _errors_by_horizon(axes: Axes, rows: Sequence[Mapping[str, Any]]) -> None:
    for target in dict.fromkeys(row["target"] for row in rows):
        shown = [(row["horizon"], row["error"]) for row in rows if row["target"] == target and row["error"]["baseline"]]
        ratios = [error["value"] / error["baseline"] for _, error in shown]
        axes.plot([horizon for horizon, _ in shown], ratios, marker="o", label=target)
    axes.axhline(1, color="grey", linewidth=0.8)


def _calibration(axes: Axes, rows: Sequence[Mapping[str, Any]]) -> None:
    nominal = [row["nominal_percent"] for row in rows]
    for key, label in (("value", "calibrated"), ("baseline", "as learned")):
        axes.plot(nominal, [100 * row["share"][key] for row in rows], marker="o", label=label)
    axes.plot([0, 100], [0, 100], color="grey", linewidth=0.8)


def _scores_by_temperature(axes: Axes, sweep: Mapping[str, Any]) -> None:
    points = sorted(sweep["points"], key=lambda point: point["temperature"])
    temperatures = [point["temperature"] for point in points]
    for world in ("dream", "real"):
        scores = np.array([point[f"{world}_score_percent"] for point in points])
        intervals = np.array([point.get(f"{world}_score_percent_ci95", [np.nan, np.nan]) for point in points])
        axes.errorbar(temperatures, scores, yerr=_arms(scores, intervals), marker="o", capsize=3, label=world)
    axes.axhline(sweep["random_score_percent"], color="grey", linestyle="--", label="real, random agent")


def _ratio_bars(axes: Axes, metrics: Metrics, key: str) -> None:
    compared = methods_of(metrics)
    width = 0.8 / len(compared)
    for offset, method in enumerate(compared):
        shown = [(place, methods[method]) for place, methods in enumerate(metrics.values()) if method in methods]
        if not shown:
            continue

        # the bars of all methods stand side by side, centred on the graph's tick
        places = np.array([place for place, _ in shown]) + (offset - (len(compared) - 1) / 2) * width
        ratios = np.array([result[key] for _, result in shown])
        intervals = np.array([result[f"{key}_ci95"] for _, result in shown])
        axes.bar(places, ratios, width, yerr=_arms(ratios, intervals), capsize=2, label=method)
    axes.axhspan(1 - NOISE, 1 + NOISE, color="grey", alpha=0.25)
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set_xticks(range(len(metrics)), list(metrics), rotation=20)


def _states(
    axes: Axes, states: nx.DiGraph, rewrites: Mapping[str, int], colours: Mapping[str, tuple[float, ...]]
) -> None:
    at = {state: (rewrites[state], states.nodes[state]["saved_percent"]) for state in states if state in rewrites}
    lines = LineCollection([(at[a], at[b]) for a, b in states.edges if a in at and b in at], colors="lightgrey")
    lines.set(linewidth=0.4, zorder=0)
    axes.add_collection(lines)
    shown = sorted(at, key=lambda state: [*colours].index(states.nodes[state]["sources"].split(",")[-1]))
    colour = [colours[states.nodes[state]["sources"].split(",")[-1]] for state in shown]
    from_start, saved = zip(*(at[state] for state in shown), strict=True)
    axes.scatter(from_start, saved, s=4, c=colour)


def _saving_line(axes: Axes, row: Mapping[str, Any], colour: str) -> None:
    """The improvement by evaluations, up to where the search ended."""
    during = {int(most): reached["improvement_percent"] for most, reached in row["at"].items()}
    during = {most: percent for most, percent in during.items() if most < row["evaluations"]}
    end = (max(row["evaluations"], 1), row["improvement_percent"])
    evaluations, percent = zip(*during.items(), end, strict=False)
    axes.step(evaluations, percent, where="post", color=colour, linewidth=1)
    axes.plot(*end, marker="o", markersize=4, color=colour)


def _arms(values: np.ndarray, intervals: np.ndarray) -> np.ndarray:
    """Error bars (2, n) below and above `values` (n,) for `intervals` (n, 2)."""
    return np.stack([values - intervals[:, 0], intervals[:, 1] - values]).clip(min=0)


def _figure(columns: int, rows: int = 1) -> Figure:
    width, height = _PANEL_INCHES
    return Figure(figsize=(width * columns, height * rows), layout="constrained")
