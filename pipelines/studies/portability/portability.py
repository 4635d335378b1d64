"""Tell of each rule that fires whether its gain is portable, or lives on a fusion of one runtime.

    python pipelines/study.py portability                                 conf/study/portability.yaml as it is
    python pipelines/study.py portability 'graphs=[bert_tiny]' 'wanted=[linear-to-gemm]'     a part of it
    python pipelines/study.py portability exports=FOLDER                  models of a folder besides

Of all places at which a rule fires, that is timed at which it is predicted to save most: before the rewrite and after
it, in fresh sessions that take turns, in each runtime. The figures go to data/results/portability/metrics.json, and a
copy to src/rlflow/rules, for `rlflow rules show`. A graph that is done is kept until all are, so that a study which was
killed goes on where it was. The machine should be quiet.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from experiment.formatting import markdown_table
from experiment.results import write_results
from omegaconf import DictConfig, OmegaConf
from tracking.factories import cost_model_of, model_of
from tracking.run import Run

from rlflow.errors import RLFlowError
from rlflow.onnx_io.standalone import standalone_model
from rlflow.optimise.gate import GateConfig
from rlflow.optimise.source import Source
from rlflow.optimise.specialise import Assumptions
from rlflow.optimise.timing import timed
from rlflow.rules import library
from rlflow.rules.rule import Rule
from rlflow.runtime.hardware import machine_name
from rlflow.runtime.runtimes import RUNTIMES
from rlflow.runtime.timing.belief import Belief
from rlflow.runtime.timing.sequential import SequentialTest
from rlflow.schemas.portability import Portability, RuleGains, TimedRewrite, portable
from studies.portability.places import Place, best_places
from studies.program import exported, open_study, options_of, study_program
from studies.published import publish

RESULTS = Path("data/results/portability/metrics.json")
_DECIMALS = 4

Row = dict[str, Any]


class Cell(NamedTuple):
    """A graph, as its section of conf/graph, and the rules that are wanted of it."""

    name: str
    graph: Any
    rules: tuple[Rule, ...]


@study_program("portability")
def main(config: DictConfig) -> None:
    settings: Any = OmegaConf.to_container(config, resolve=True)
    option_of = options_of("portability")
    sections = {name: option_of("graph", name) for name in settings["graphs"]} | exported(settings["exports"])
    rules, cost = _rules(settings["wanted"]), option_of("cost", settings["cost"])
    with open_study("portability", settings) as study:
        before = os.getloadavg()[0]
        fires = {("fires", name): Cell(name, section, rules) for name, section in sections.items()}
        savings = study.rows(fires, partial(_savings, settings, cost), _told)
        assigned = _assigned({name: row for (_, name), row in savings.items()})
        cells = {("gains", name): Cell(name, sections[name], _rules(ids)) for name, ids in assigned.items()}
        rows = study.rows(cells, partial(_gains, settings, cost), _told)
        found = {rule: row for gains in rows.values() for rule, row in gains.items()}
        if not found:
            raise RLFlowError("none of the rules fires on any of the graphs in a part that runs: nothing is published")
        _publish(settings, {rule.id: found[rule.id] for rule in rules if rule.id in found}, before)
        study.run.artifact(RESULTS)


def _rules(wanted: Sequence[str]) -> tuple[Rule, ...]:
    """Return rules of the library by their names or ids; all where none is named."""
    shipped = library.load()
    return tuple(map(shipped.get, wanted)) if wanted else shipped.rules


def _told(run: Run, key: tuple[str, str], row: Row) -> str:
    return f"{len(row)} rules"


def _places(settings: Any, cost: Any, cell: Cell) -> dict[str, Place]:
    rules, prices = library.load().rules, cost_model_of(cost)
    graph = Assumptions(Source.of(model_of(cell.graph)).model, {}, rules).searched
    return best_places(graph, rules, cell.rules, settings["walks"], prices, settings["seed"])


def _savings(settings: Any, cost: Any, cell: Cell) -> dict[str, float]:
    """Return the largest saving of each rule that fires on a graph."""
    return {rule: place.saving for rule, place in _places(settings, cost, cell).items()}


def _assigned(savings: Mapping[str, Mapping[str, float]]) -> dict[str, list[str]]:
    """Return the rules that are timed on each graph: of all graphs, that on which it saves most is a rule's own."""
    best: dict[str, tuple[float, str]] = {}
    for graph, row in savings.items():
        for rule, saving in row.items():
            if rule not in best or saving > best[rule][0]:
                best[rule] = saving, graph
    assigned = defaultdict(list)
    for rule, (_, graph) in best.items():
        assigned[graph].append(rule)
    return dict(assigned)


def _gains(settings: Any, cost: Any, cell: Cell) -> dict[str, Row]:
    """Time the best place of each of the rules in all runtimes; without those that none of them runs."""
    places = _places(settings, cost, cell)
    rows = {rule: _timed(settings, cell.name, place) for rule, place in places.items()}
    return {rule: row.to_json() for rule, row in rows.items() if row.gains}


def _timed(settings: Any, graph: str, place: Place) -> RuleGains:
    belief = Belief(test=SequentialTest(**settings["test"]))
    config = GateConfig(**settings["gate"], seed=settings["seed"], belief=belief)
    before, after = standalone_model(place.before), standalone_model(place.after)
    gains, refused = dict[str, TimedRewrite](), dict[str, str]()
    for setting in settings["settings"]:
        try:
            verdict = (change := timed(before, after, setting, config)).verdict
        except RLFlowError as error:
            refused[setting] = str(error)
            continue
        gains[setting] = TimedRewrite(
            decision=verdict.decision,
            ratio=round(verdict.ratio, _DECIMALS),
            interval=(round(verdict.low, _DECIMALS), round(verdict.high, _DECIMALS)) if verdict.bounded else None,
            before_ms=round(change.before_ms, _DECIMALS),
            after_ms=round(change.after_ms, _DECIMALS),
            rounds=verdict.rounds,
        )
    decisions = [gain.decision for gain in gains.values()]
    return RuleGains(
        name=place.rule.name,
        graph=graph,
        operators=place.operators,
        portable=portable(decisions, len(refused)),
        gains=gains,
        refused=refused,
    )


def _publish(settings: Any, rules: dict[str, Row], load_before: float) -> None:
    threads = settings["gate"]["threads"]
    document = Portability(
        processor=machine_name(threads),
        threads=threads,
        runtimes={name: f"{RUNTIMES.get(name).name} {RUNTIMES.get(name).version}" for name in settings["settings"]},
        load=(load_before, os.getloadavg()[0]),
        rules=rules,  # type: ignore[arg-type]
    )
    publish(RESULTS, Portability, document, __file__)
    RESULTS.with_name("table.md").write_text(_table(document.runtimes, rules))
    write_results(Path(settings["shipped"]), Portability, document)


def _table(runtimes: Mapping[str, str], rules: Mapping[str, Row]) -> str:
    counts = Counter(row["portable"] for row in rules.values())
    rows = [
        [row["name"], row["graph"], *(_cell(row, setting) for setting in runtimes), row["portable"]]
        for row in sorted(rules.values(), key=lambda row: (row["portable"], row["name"]))
    ]
    told = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
    return f"{told}.\n\n{markdown_table(['rule', 'graph', *runtimes.values(), 'gain'], rows, texts=2)}\n"


def _cell(row: Row, setting: str) -> str:
    gain = row["gains"].get(setting)
    return "refused" if gain is None else f"{gain['ratio']:.2f} {gain['decision']}"
