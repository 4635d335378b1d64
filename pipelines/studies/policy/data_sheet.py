"""The figures and the data sheet of the policy that ships.

    document = figures(lessons, evaluations=500)           for data/results/policy/metrics.json
    data_sheet(document)                                   the same for people, as Markdown

A lesson's share is how much the policy's chains find, beyond greedy search, of what its expert found beyond that:
0 is no better than greedy search, 1 as good as the expert, and a policy may find more than that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import mean, median
from typing import Any

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


def data_sheet(document: Mapping[str, Any]) -> str:
    """Return the sheet of a published document, in Markdown."""
    lessons = document["lessons"]
    rows = {name: _row(name, lesson) for name, lesson in lessons.items()}
    failing = sorted((row for row in lessons if lessons[row].get("share", 1.0) < _FAILS_BELOW), key=_by_share(lessons))
    reading = {name: _of_figure(figure) for name, figure in document["reading"].items()}
    return _SHEET.format(
        **document["trained_on"] | {"minutes": document["trained_on"]["seconds"] / 60},
        chains=document["chains_evaluations"],
        trained="\n".join(row for name, row in rows.items() if not lessons[name]["held_out"]),
        held_out="\n".join(row for name, row in rows.items() if lessons[name]["held_out"]),
        shares="\n".join(
            f"| {side.replace('_', ' ')} | {of['median']:.2f} | {of['least']:.2f} | {of['cases']} |"
            for side, of in document["shares"].items()
        ),
        reading="\n".join(f"| {name.replace('_', ' ')} | {row} |" for name, row in reading.items()),
        fails_below=_FAILS_BELOW,
        failing="\n".join(rows[name] for name in failing) or "| none |" + " |" * (_COLUMNS.count("|") - 2),
        columns=_COLUMNS,
        line="|" + "---|" * (_COLUMNS.count("|") - 1),
    )


def _by_share(lessons: Mapping[str, Any]) -> Callable[[str], float]:
    return lambda name: float(lessons[name]["share"])


def _row(name: str, lesson: Mapping[str, Any]) -> str:
    found = (f"{lesson[f'{method}_percent']:.2f}" for method in ("greedy", "expert", "policy"))
    share = f"{lesson['share']:.2f}" if "share" in lesson else "-"
    cells = [
        name,
        lesson["model"],
        lesson["start"],
        lesson["cost"],
        lesson["expert"],
        str(lesson["steps"]),
        *found,
        share,
    ]
    return f"| {' | '.join(cells)} |"


def _of_figure(figure: Mapping[str, Any]) -> str:
    return f"{figure['value']:.3f} | {figure['baseline']:.3f} | {figure['cases']}"


_COLUMNS = "| lesson | model | start | prices | expert | steps | greedy, % | expert, % | policy, % | share |"
_SHEET = """\
# The policy that ships

A world model over match tokens whose V guides the search of `rlflow optimise --method rlflow`. Made by
`make study NAME=policy` (`conf/study/policy.yaml`), which writes this page as well, from
`data/results/policy/metrics.json`.

- `world_model.safetensors`, `world_model.json`: V and M, their sizes and the vocabulary in which they read graphs.
- `policy.json`: the digest of the weights, the settings of the search, what it was trained on, and what experts
  did with the matches of each rule in the lessons.

## Trained on what

{lessons} lessons on small graphs of {families} families with drawn weights: an expert search by a count of steps, whose
every step is a label, and one random episode beside it. They took {minutes:.0f} minutes on one core and {evaluations}
rewrites. A start is the model as the zoo builds it, or after rules that merge what is written separately, or after
random rewrites.

{columns}
{line}
{trained}

## Measured how

On lessons that it was not trained on, of other widths, lengths and prices. Most of them are of families that it has had
lessons of (`make study NAME=learned` leaves whole families out):

{columns}
{line}
{held_out}

Greedy search, the expert and the policy, with {chains} evaluations beyond greedy search's, begin with the same graph;
figures are percent of its price. The share is what the policy finds beyond greedy search, of what the expert finds
beyond it. Over the lessons in which the expert finds anything beyond it:

| lessons | median share | least | lessons with a share |
|---|---|---|---|
{shares}

What V reads on the lessons held out, beside what is known from the mean of each rule in those trained on. The area
under the curve is the chance that a rewrite which the expert takes is ranked above one that he passes, 0.5 by chance;
the rank correlation is that of predicted and true savings of the rewrites of a state, 0 by chance:

| of V | value | rule mean | lessons |
|---|---|---|---|
{reading}

## Where it fails

The lessons on which the policy finds less than {fails_below} of what the expert finds beyond greedy search:

{columns}
{line}
{failing}

A family that no lesson shows is read by the operators, shapes and prices that others share with it. Nothing was learned
of recurrent networks, of graphs in other precisions than float32, or of operators that the library carries verbatim.
Whatever V says, the result is never dearer than that of greedy search.
"""
