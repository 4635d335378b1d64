"""The figures and the data sheet of the policy that ships.

    document = figures(lessons, evaluations=500)           for data/results/policy/metrics.json
    data_sheet(document, trial)                            the same for people, as Markdown, with trial.json beside it

A lesson's share is how much the policy's chains find, beyond greedy search, of what its expert found beyond that:
0 is no better than greedy search, 1 as good as the expert, and a policy may find more than that.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from statistics import mean, median
from typing import Any

from experiment.formatting import markdown_table, rendered

from rlflow.schemas.figures import Figure

Document = dict[str, Any]

_LEAST_GAIN_PERCENT = 0.01  # of an expert over greedy search, below which there is nothing to find a share of
_FAILS_BELOW = 0.8  # share


def figures(lessons: Mapping[str, Mapping[str, Any]], evaluations: int) -> Document:
    """Return what can be told of the lessons together, beside each of them.

    lessons: by name, as the schema `policy` has them, without their shares. evaluations: of the policy's chains.
    """
    rows = {name: {**lesson, **_share(lesson)} for name, lesson in lessons.items()}
    trained, held_out = ([row for row in rows.values() if row["held_out"] == side] for side in (False, True))
    return {
        "trained_on": {
            "lessons": len(trained),
            "families": len({row["family"] for row in trained}),
            "evaluations": sum(row["evaluations"] for row in trained),
            "seconds": sum(row["seconds"] for row in trained),
        },
        "chains_evaluations": evaluations,
        "shares": {
            side: {"median": median(shares), "least": min(shares), "cases": len(shares)}
            for side, of in (("trained", trained), ("held_out", held_out))
            if (shares := [row["share"] for row in of if "share" in row])
        },
        "reading": {
            measure: _mean([row["reading"][measure] for row in held_out if measure in row["reading"]])
            for measure in ("taken_auc", "saving_rank_correlation")
            if any(measure in row["reading"] for row in held_out)
        },
        "lessons": rows,
    }


def _share(lesson: Mapping[str, Any]) -> dict[str, float]:
    """The share of a lesson, if its expert found anything beyond greedy search."""
    gain = lesson["expert_percent"] - lesson["greedy_percent"]
    if gain < _LEAST_GAIN_PERCENT:
        return {}
    return {"share": (lesson["policy_percent"] - lesson["greedy_percent"]) / gain}


def _mean(found: list[Mapping[str, Any]]) -> dict[str, Any]:
    """The mean of figures over lessons."""
    baseline_name = found[0]["baseline_name"]
    value, baseline = (mean(figure[key] for figure in found) for key in ("value", "baseline"))
    return Figure(value, baseline, baseline_name, len(found)).to_json()


def data_sheet(document: Mapping[str, Any], trial: Mapping[str, Any]) -> str:
    """Return the sheet of the published documents, in Markdown."""
    lessons = document["lessons"]
    sides = [{name: row for name, row in lessons.items() if row["held_out"] == side} for side in (False, True)]
    failing = [name for name, row in lessons.items() if row.get("share", 1.0) < _FAILS_BELOW]
    worst_first = sorted(failing, key=lambda name: float(lessons[name]["share"]))
    values = {
        "document": document,
        "trial": _trial_table(trial),
        "trained": sides[0],
        "held_out": sides[1],
        "failing": {name: lessons[name] for name in worst_first},
        "fails_below": _FAILS_BELOW,
    }
    return rendered(Path(__file__).with_suffix(".md.j2"), values)


def _trial_table(trial: Mapping[str, Any]) -> str:
    """A row for each graph at each of the prices; two columns for each number of rewrites."""
    tried = [(cost, graph, found) for cost, graphs in trial.items() for graph, found in graphs.items()]
    rewrites = [at["rewrites"] for at in tried[0][-1]["searches"]]
    header = [
        "prices",
        "model",
        "greedy",
        "portfolio",
        *(f"{number}, {by}" for number in rewrites for by in ("V", "C")),
    ]
    rows = []
    for cost, graph, found in tried:
        pairs = [(at["without_controller_percent"], at["rlflow_percent"]) for at in found["searches"]]
        percents = [found["greedy_percent"], found["portfolio_percent"], *(saved for pair in pairs for saved in pair)]
        rows.append([cost, graph, *(f"{saved:.2f}" for saved in percents)])
    return markdown_table(header, rows, texts=2)
