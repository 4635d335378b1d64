"""Tables of results, each made from a results document and from nothing else.

That of the evaluation is the paper's Figures 6 and 7 and its Table 2 in one; that of the headroom has a row for each
graph and cost, and a column for each method.
"""

from collections.abc import Callable, Mapping
from typing import Any

from experiment.formatting import markdown_table, with_interval

Metrics = Mapping[str, Mapping[str, Mapping[str, Any]]]


def methods_of(metrics: Metrics) -> list[str]:
    """The methods of all graphs, in the order in which the results have them."""
    return list(dict.fromkeys(method for methods in metrics.values() for method in methods))


def _ratio_with_interval(key: str) -> Callable[[Mapping[str, Any]], str]:
    return lambda result: with_interval(result[key], result[f"{key}_ci95"], 3)


_COLUMNS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "cost ms": lambda result: f"{result['cost_after_ms']:.3f}",
    "improvement %": lambda result: f"{result['improvement_percent']:.2f}",
    "latency ratio, as written": _ratio_with_interval("latency_ratio_as_written"),
    "latency ratio, deployed": _ratio_with_interval("latency_ratio_deployed"),
    "peak memory ratio": lambda result: f"{result['peak_memory_ratio']:.3f}",
    "FLOPs ratio": lambda result: f"{result['flops_ratio']:.3f}",
    "launches ratio": lambda result: f"{result['launches_ratio']:.3f}",
    "max relative error": lambda result: f"{result['max_relative_error']:.1e}",
    "optimisation s": lambda result: f"{result['optimisation_s']:.1f}",
    "training s": lambda result: f"{result['training_s']:.1f}",
    "real interactions": lambda result: str(result["real_interactions"]),
    "seeds": lambda result: str(len(result["seeds"])),
}


def evaluation_table(metrics: Metrics) -> str:
    """A Markdown table, one row per graph and method; ratios are original over optimised, with 95 % intervals."""
    header = ["graph", "method", *_COLUMNS]
    rows = []
    for graph, method, result in _results(metrics):
        cells = [cell(result) for cell in _COLUMNS.values()]
        rows.append([graph, method, *cells])
    return markdown_table(header, rows, texts=2)


_LEGEND = """
Savings of the predicted runtime in percent, the best known in bold. *proven*: nothing in the method's e-graph is
cheaper. *nodes*, *passes*, *uses*, *time*, *solver*: what ended the growth of the e-graph or its extraction.
*differs*: the outputs do.
"""


def headroom_table(metrics: Mapping[str, Mapping[str, Metrics]]) -> str:
    """A Markdown table of what every method saves, with its legend; `metrics` follows schema `headroom`."""
    by_place = {(graph, cost): methods for graph, costs in metrics.items() for cost, methods in costs.items()}
    compared = list(dict.fromkeys(method for methods in by_place.values() for method in methods))
    rows = []
    for (graph, cost), methods in by_place.items():
        cells = [_saving(methods[method]) if method in methods else "" for method in compared]
        rows.append([graph, cost, *cells])
    return markdown_table(["graph", "cost", *compared], rows, texts=2) + _LEGEND


def _saving(row: Mapping[str, Any]) -> str:
    saving = f"{row['improvement_percent']:.2f}"
    remarks = ["proven"] if row["proven"] else []
    remarks += [row["limited_by"]] if row["limited_by"] else []
    remarks += [] if row["equivalent"] else ["differs"]
    return " ".join([f"**{saving}**" if row["best_known"] else saving, *(f"*{remark}*" for remark in remarks)])


def cost_accuracy_table(metrics: Mapping[str, Mapping[str, Any]]) -> str:
    """A Markdown table of predicted runtimes beside measured ones; `metrics` follows schema `cost_accuracy`."""
    header = ["graph", "cost model ms", "end to end ms", "difference %", "regions alone, difference %", "A/A"]
    rows = []
    for graph, row in metrics.items():
        control = with_interval(row["control"], row["control_ci95"], 3)
        times = [f"{row[key]:.3f}" for key in ("cost_model_ms", "end_to_end_ms")]
        differences = [f"{row[key]:+.1f}" for key in ("difference_percent", "alone_difference_percent")]
        rows.append([graph, *times, *differences, control])
    return markdown_table(header, rows) + _ACCURACY_LEGEND


_ACCURACY_LEGEND = """
*Cost model*: the sum of a graph's regions and its reorders of the blocked layout. *Regions alone*: the sum in which
each region pays for the reorders that it has by itself. *A/A*: the model against itself, the noise floor.
"""


def learned_table(metrics: Metrics, together: Mapping[str, Any], evaluations: int, taught: str) -> str:
    """A Markdown table of what every method has saved after so many evaluations past greedy search's.

    `metrics` and `together` follow the schemas `learned` and `learned_summary`; `taught` says what policies had lessons
    of.
    """
    compared, name = methods_of(metrics), f"improvement_percent_{evaluations}"
    rows = []
    for graph, methods in metrics.items():
        cells = [_with_arm(methods[method], name) if method in methods else "" for method in compared]
        known = together["best_known"][graph]
        rows.append([graph, *cells, f"{known['improvement_percent']:.2f} *{known['method']}*"])
    shares = together["gap_closed"][str(evaluations)]
    rows.append(["share of the gap", *(_with_arm(shares[m], "share") if m in shares else "" for m in compared), "1.00"])
    return markdown_table(["graph", *compared, "best known"], rows) + _LEARNED_LEGEND + f"{taught}\n"


_LEARNED_LEGEND = """
Savings in percent, means over seeds with half of their 95 % intervals. All but the best known are read at the same
number of evaluations past greedy search's. *Share of the gap*: from greedy search to the best known, mean over the
graphs that have one; of a method without a figure on some of them, over the others.
"""


def _with_arm(row: Mapping[str, Any], name: str) -> str:
    """A mean and half its interval, which is left out where it is empty or unknown."""
    interval = row[f"{name}_ci95"]
    arm = (interval[1] - interval[0]) / 2 if interval else 0.0
    return f"{row[name]:.2f} ± {arm:.2f}" if arm else f"{row[name]:.2f}"


def speedups_table(models: Mapping[str, Mapping[str, Any]]) -> str:
    """A Markdown table of latency ratios beside those of public tools; `models` as in schema `speedups`."""
    tools = list(dict.fromkeys(name for row in models.values() for name in row["public_tools"]))
    header = ["graph", "original ms", "RLFlow", "target", "A/A", *tools, "rewrites"]
    rows = [header, [":--", *("--:" for _ in header[1:-1]), ":--"]]
    for graph, row in models.items():
        ours = f"**{_ratio(row)}**" if row["met"] else _ratio(row)
        others = [_ratio(row["public_tools"][name]) if name in row["public_tools"] else "-" for name in tools]
        rewrites = ", ".join(f"{each['rule']} x{each['count']}" for each in row["optimise"]["rewrites"])
        figures = [f"{row['original_ms']:.3f}", ours, f"{row['target']:.2f}", f"{row['control_ratio']:.3f}"]
        rows.append([graph, *figures, *others, rewrites or row["optimise"]["reason"]])
    return "".join("| " + " | ".join(row) + " |\n" for row in rows) + _SPEEDUPS_LEGEND


_SPEEDUPS_LEGEND = """
Each ratio is the original's latency at ORT_ENABLE_ALL over that of the model, median over rounds, with an interval that
misses with a probability of at most 1 %; above 1, the model is faster. Bold: the target is met. *A/A*: the original
against itself. *ort_disable_all*: the original with ONNX Runtime's own optimisation off.
"""


def _ratio(figures: Mapping[str, Any]) -> str:
    if figures["ratio"] is None:
        return "failed"
    interval = figures["ratio_interval"]
    return with_interval(figures["ratio"], interval, 3) if interval else f"{figures['ratio']:.3f}"


def _results(metrics: Metrics) -> list[tuple[str, str, Mapping[str, Any]]]:
    return [(graph, method, result) for graph, methods in metrics.items() for method, result in methods.items()]
