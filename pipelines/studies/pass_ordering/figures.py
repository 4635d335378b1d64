"""The figures of pass ordering: by how much an entrant is ahead of the default pipeline and of the simplifiers.

With C0 operations at the start, C after the entrant, and D after the reference,

    over_percent = 100 (geomean((C0 - C) / (C0 - D)) - 1)                 the paper's measure (its section 5.1.1)
    count_ratio_percent = 100 (geomean(D / C) - 1)

The first leaves out graphs on which the reference removes nothing, which are counted apart; an entrant that removes
nothing somewhere is at -100. The second counts all graphs, and what remains matters to it, and not what was easy.

The entrant `best_known` is the fewest operations that anybody has left on each graph: what is known to be gained there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from studies.figures import Spread
from studies.pass_ordering.rows import Outcome, Row, Rows

Times = Mapping[str, Mapping[str, float]]
"""Graph -> entrant -> milliseconds."""


def summary(rows: Rows, times: Times, families: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """The figures of every entrant over all graphs, and over those of each family (schema `pass_ordering`)."""
    sources = [source for names in families.values() for source in names]
    rows = {**rows, "best_known": {0: Row({source: best_known(rows, source) for source in sources})}}
    return {
        entrant: {
            **_figures(rows, entrant, sources),
            "run_time_ratio": _run_time_ratio(entrant, times, sources),
            "families": {family: _figures(rows, entrant, names) for family, names in families.items()},
        }
        for entrant in rows
        if entrant != "start"
    }


def best_known(rows: Rows, source: str) -> Outcome:
    """The fewest operations that anybody has left without changing what is computed, by the passes of all together."""
    outcomes = [row.outcomes[source] for seeds in rows.values() for row in seeds.values()]
    best = min((outcome for outcome in outcomes if not outcome.difference), key=lambda outcome: outcome.operations)
    return replace(best, tried=sum(outcome.tried for outcome in outcomes))


def over_percent(start: Sequence[int], found: Sequence[int], reference: Sequence[int]) -> float | None:
    """The paper's measure over graphs; None if the reference removes nothing on any of them."""
    counted = [(c0, c, d) for c0, c, d in zip(start, found, reference, strict=True) if c0 > d]
    if not counted:
        return None
    shares = [(c0 - c) / (c0 - d) for c0, c, d in counted]
    return 100.0 * (_geomean(shares) - 1.0) if min(shares) > 0.0 else -100.0


def count_ratio_percent(found: Sequence[int], reference: Sequence[int]) -> float:
    """The percentage by which the reference leaves more operations than was found, over graphs."""
    return 100.0 * (_geomean([d / c for c, d in zip(found, reference, strict=True)]) - 1.0)


def _figures(rows: Rows, entrant: str, sources: Sequence[str]) -> dict[str, Any]:
    seeds = rows[entrant]
    start, default, fixpoint = (_operations(rows[name][0], sources) for name in ("start", "default", "fixpoint"))
    found = [_operations(row, sources) for row in seeds.values()]
    tried = [sum(row.outcomes[source].tried for source in sources) / len(sources) for row in seeds.values()]
    return {
        "over_default_percent": _over([over_percent(start, each, default) for each in found]),
        "count_ratio_percent": _over([count_ratio_percent(each, default) for each in found]),
        "over_fixpoint_percent": _over([over_percent(start, each, fixpoint) for each in found]),
        "fixpoint_count_ratio_percent": _over([count_ratio_percent(each, fixpoint) for each in found]),
        "passes_run": _over(tried),
        "seeds": list(seeds),
        "graphs": len(sources),
        "apart": sum(c0 <= d for c0, d in zip(start, default, strict=True)),
        "wrong_outputs": sum(bool(row.outcomes[source].difference) for row in seeds.values() for source in sources),
    }


def _run_time_ratio(entrant: str, times: Times, sources: Sequence[str]) -> float | None:
    """The speed of the first seed's programs against the default pipeline's; None if not all were run."""
    if not all({entrant, "default"} <= times.get(source, {}).keys() for source in sources):
        return None
    return _geomean([times[source]["default"] / times[source][entrant] for source in sources])


def _operations(row: Row, sources: Sequence[str]) -> list[int]:
    return [row.outcomes[source].operations for source in sources]


def _over(values: Sequence[float | None]) -> dict[str, Any] | None:
    """The median over seeds with its interval; None where there is no value."""
    known = [value for value in values if value is not None]
    return Spread.over(known).to_json() if known else None


def _geomean(values: Sequence[float]) -> float:
    return math.exp(sum(math.log(value) for value in values) / len(values))
