"""Write docs/leaderboard.md and its picture from the entries of the leaderboard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from experiment.formatting import markdown_table
from matplotlib.figure import Figure

from rlflow.atomic_file import written_whole
from rlflow.leaderboard import Entry, Row, is_level, standings
from rlflow.show.picture_file import save

BOARD = Path("data/leaderboard")
_PAGE, _PICTURE = Path("docs/leaderboard.md"), Path("docs/images/leaderboard.png")
_PANEL_INCHES = (4.2, 2.8)
_HEAD = """# Leaderboard

Methods by what they save of a model's price, in percent. Every figure here was found by replaying the method's rewrites
with the rules that ship, and by comparing the model that comes of them with the original; `rlflow leaderboard check`
does it again. Efforts are the author's word. The methods of this project may carry out the same number of
rewrites each (`make leaderboard`, conf/study/leaderboard.yaml). Enter yours in a clone, and open a pull request:

```bash
rlflow leaderboard submit trajectories.jsonl --model bert --cost-model gpu --method my-agent --rewrites 2000
```

Prices are those of the cost models without settings: `predicted` of ONNX Runtime on its reference processor, `gpu` an
analytic roofline that is bound by launches. Neither is a latency: [the papers' tables](results.md) have those as well.
The best of a row is in bold.

![Best so far against rewrites](images/leaderboard.png)
"""


def main() -> None:
    rows = standings(BOARD)
    with written_whole(_PAGE) as draft:
        draft.write_text(page(rows))
    save(curves(rows), _PICTURE)


def page(rows: Mapping[Row, Sequence[Entry]]) -> str:
    """The page: of each cost model a table of models and methods, the best of a row in bold."""
    parts = [_HEAD]
    for cost in dict.fromkeys(cost for _, cost in rows):
        found = {model: entries for (model, of_cost), entries in rows.items() if of_cost == cost}
        methods = sorted({entry.method for entries in found.values() for entry in entries})
        told = [[model, *(_best_of(entries, method) for method in methods)] for model, entries in found.items()]
        parts.append(f"## At {cost} prices\n\n{markdown_table(('model', *methods), told)}")
    return "\n".join(parts)


def _best_of(entries: Sequence[Entry], method: str) -> str:
    """Say what the method's best seed saves; empty where it has no entry."""
    best = next((entry for entry in entries if entry.method == method), None)
    if best is None:
        return ""
    saved = f"{best.saved_percent:.2f}"
    return f"**{saved}**" if is_level(best, entries[0]) else saved


def curves(rows: Mapping[Row, Sequence[Entry]]) -> Figure:
    """A panel for each row: the best so far of each method that tells of its course, against its rewrites."""
    models, costs = (list(dict.fromkeys(name)) for name in zip(*rows, strict=True))
    width, height = _PANEL_INCHES
    figure = Figure(figsize=(width * len(costs), height * len(models)), layout="constrained")
    panels = figure.subplots(len(models), len(costs), squeeze=False)
    for (model, cost), entries in rows.items():
        axes = panels[models.index(model)][costs.index(cost)]
        for entry in sorted(entries, key=lambda one: one.method):
            if entry.course:
                saved = [point.saved_percent for point in entry.course]
                rewrites = [max(1, point.rewrites) for point in entry.course]
                last = max(rewrites[-1], entry.rewrites or 0)
                axes.step([*rewrites, last], [*saved, saved[-1]], where="post", label=entry.method)
        axes.set(title=f"{model}, {cost}", xscale="log", xlabel="rewrites", ylabel="saved, %")
        axes.legend(fontsize="xx-small")
    return figure
