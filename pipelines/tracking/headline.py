"""The headline of a stage's figures: the dozen that a table of runs has room for; all others stand in metrics.json.

    headline({"bert": {"real_score_percent": {"value": 4.53, "baseline": 1.1}, "training_s": 126.1, "losses": {...}}})
    # {"bert/real_score_percent": 4.53, "bert/training_s": 126.1}

Where methods compete, each has a row of figures, which is a run of its own: `rows` finds them.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from tracking.run import numbers

FEW = 12
"""As many figures, or fewer, are a headline as they are."""
_ROW = {
    "improvement_percent": "saved_percent",
    "latency_ratio_deployed": "speedup",
    "latency_ratio_as_written": "speedup_as_written",
    "cost_after_ms": "cost_after_ms",
    "peak_memory_ratio": "peak_memory_ratio",
    "flops_ratio": "flops_ratio",
    "launches_ratio": "launches_ratio",
    "max_relative_error": "max_relative_error",
    "optimisation_s": "optimisation_s",
    "training_s": "training_s",
    "real_interactions": "real_interactions",
    "steps": "steps",
}
"""What a method's row tells first, and its name in the table of runs."""


def headline(figures: Mapping[str, Any], constants: Mapping[str, Any]) -> dict[str, float]:
    """The few numbers among nested figures, with `/` between levels; settings, which are no results, are left out.

    If there are many, those that have a baseline beside them, and seconds, of the upper two levels.
    """
    settings = [(name.rpartition("/")[2], value) for name, value in numbers(constants).items()]
    found = {
        name: value for name, value in numbers(figures).items() if (name.rpartition("/")[2], value) not in settings
    }
    if len(found) <= FEW:
        return found
    compared = {name.removesuffix("/value"): value for name, value in found.items() if name.endswith("/value")}
    seconds = {name: value for name, value in found.items() if name.endswith("_s")}
    return {name: value for name, value in {**compared, **seconds}.items() if name.count("/") <= 1}


def rows(figures: Mapping[str, Any]) -> Iterator[tuple[str, str, dict[str, float]]]:
    """Yield graph, method and headline of each method's row, where figures are by graph and method."""
    for graph, methods in figures.items():
        for method, row in methods.items() if isinstance(methods, Mapping) else ():
            if isinstance(row, Mapping) and "improvement_percent" in row:
                told = numbers(row)
                yield graph, method, {name: told[key] for key, name in _ROW.items() if key in told}


def _last(name: str) -> str:
    return name.rpartition("/")[2]
