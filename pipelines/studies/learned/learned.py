"""Find what learning is worth to a search on graphs of a family that it has had no lesson of.

    python pipelines/study.py learned                                            conf/study/learned.yaml as it is
    python pipelines/study.py learned 'seeds=[0]' 'graphs=[squeezenet1_1_gpu]'   a part of it
    python pipelines/study.py learned -cn learned_priced                         by measured prices, from none
    python pipelines/study.py learned -cn learned_planned                        chains planned in M beside V alone
    python pipelines/study.py learned -cn learned_shipped                        the shipped policy beside all searches

The figures go to data/results/learned, or where `results` says, after each graph and seed all figures so far, so that a
study that is cut short has published something. A search that has ended is kept until all have, so that a study that
was killed goes on where it was.
"""

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from statistics import fmean
from typing import Any

from experiment import figures
from experiment.documents.curves import TrainingCurves
from experiment.tables import learned_table
from omegaconf import DictConfig, OmegaConf
from tracking.factories import cost_context_of
from tracking.run import numbers

from rlflow.agents.match_level.guide import FILE, shipped_folder
from rlflow.agents.match_level.leave_one_out import RankCorrelation, policy_without, rank_correlation
from rlflow.cli.progress import progress_bar
from rlflow.method import Budget
from rlflow.runtime.isolation import Limits, call_isolated
from rlflow.schemas.figures import Figure
from rlflow.settings import read_config
from rlflow.show.picture_file import save
from rlflow.world_model.match_level.match_level_config import MatchLevelModelConfig
from studies.learned.cells import (
    DEPTH_TRANSFER,
    GREEDY,
    LEARNED,
    TAUGHT,
    TRAINED,
    USUAL,
    Case,
    Cell,
    Key,
    Row,
    Rows,
    case_of,
    run_cells,
)
from studies.learned.documents import Learned, Summary, Unseen
from studies.learned.summary import curves, curves_by_prices, summary
from studies.program import RUNNING, OptionOf, graph_files, open_study, options_of, study_program
from studies.published import publish
from studies.runner import kept_row
from studies.subject import Subject

CHOSEN = RUNNING | {"graphs", "seeds", "results"}
"""Settings that say which searches the study has, on which none of their rows depends."""
LEFT_OUT = (
    "The policy of `rlflow` has had no lesson of the graph's family, that of `depth_transfer` has had some, of few "
    "layers."
)
SHIPPED = "The policy is the one that ships: it has had lessons and practice of these families, on few layers."
GUIDED = (*TAUGHT, "chains_random")
"""The methods that count their rewrites past greedy search's themselves."""

log = logging.getLogger(__name__)


@study_program("learned")
def main(config: DictConfig) -> None:
    settings: Any = OmegaConf.to_container(config, resolve=True)
    with (
        open_study("learned", settings, {name: settings[name] for name in settings.keys() - CHOSEN}) as opened,
        progress_bar("learned") as on_progress,
    ):
        option_of = options_of("learned")
        cases = {name: case_of(settings, option_of, name) for name in settings["graphs"]}
        study = Study(settings, cases, option_of, opened.folder)
        first, others = study.first_units(), study.other_units()
        units, rows = [*first, *others], dict[Key, Row]()
        for done, unit in enumerate(units, start=1):
            found = study.rows(unit, rows)
            rows |= found
            opened.run.log(0, numbers({"/".join(map(str, key)): _scalars(row) for key, row in found.items()}))
            on_progress(done / len(units), f"{unit.graph}, seed {unit.seed}: {', '.join(unit.methods)}")
            if done > len(first):
                _publish(Rows(rows, frozenset(settings["drawn"])), settings)

        if settings["policy"] is not None:
            publish(Path(settings["results"], "unseen.json"), Unseen, study.unseen(), __file__)
        opened.run.artifact(Path(settings["results"]))
        opened.missing.extend(key for unit in units for key in unit.keys if key not in rows)


@dataclass(frozen=True)
class Unit:
    """The searches of one process: of one graph with one seed, by one method after another."""

    graph: str
    seed: int
    methods: tuple[str, ...]

    @property
    def keys(self) -> list[Key]:
        return [(self.graph, method, self.seed) for method in self.methods]


@dataclass(frozen=True, eq=False)
class Study:
    """The searches of the study; each is made when its turn comes, since many need what others have found."""

    settings: Any
    cases: Mapping[str, Case]
    option_of: OptionOf
    folder: Path

    def first_units(self) -> list[Unit]:
        """List greedy searches, past whose rewrites those of all others are counted."""
        return [Unit(graph, self.settings["seeds"][0], (GREEDY,)) for graph in self.settings["graphs"]]

    def other_units(self) -> list[Unit]:
        """List what else is run once, then what draws, one seed after another; none without a method."""
        graphs, seeds = self.settings["graphs"], self.settings["seeds"]
        once = [Unit(graph, seeds[0], self._those("once", graph)) for graph in graphs]
        drawn = [Unit(graph, seed, self._those("drawn", graph)) for seed in seeds for graph in graphs]
        return [unit for unit in (*once, *drawn) if unit.methods]

    def rows(self, unit: Unit, known: Mapping[Key, Row]) -> dict[Key, Row]:
        """The rows of a unit, none if a search failed or greedy search did."""
        greedy = known.get((unit.graph, GREEDY, self.settings["seeds"][0]))
        if greedy is None and unit.methods != (GREEDY,):
            return {}
        rewrites = greedy["evaluations"] if greedy else 0
        cells = {method: self._cell(key, rewrites) for method, key in zip(unit.methods, unit.keys, strict=True)}
        name = _name((unit.graph, unit.methods[0], unit.seed))
        found = kept_row(self.folder, name, self.settings["longest_s"], run_cells, cells) or {}
        return {(unit.graph, method, unit.seed): row for method, row in found.items()}

    def unseen(self) -> dict[str, Any]:
        """Return how well V ranks matches of each family without a lesson for its policies: means over seeds."""
        seeds = self.settings["seeds"]
        families = {(case.family, case.taught_at): case for case in self.cases.values()}
        return {
            f"{family}_{cost}": _mean([self._rank_correlation(case, seed) for seed in seeds]) | {"seeds": seeds}
            for (family, cost), case in families.items()
        }

    def _rank_correlation(self, case: Case, seed: int) -> RankCorrelation:
        place, lessons = self._policy(LEARNED, case, seed), Path(self.settings["lessons"]).resolve()
        rank = partial(rank_correlation, place, case.family, case.taught_at, lessons)
        return call_isolated(Limits(self.settings["longest_s"]), rank)

    def _those(self, methods: str, graph: str) -> tuple[str, ...]:
        """The methods of this setting that a graph has: nothing is carried over to one without layers."""
        is_deep = self.cases[graph].deep
        return tuple(method for method in self.settings[methods] if is_deep or method != DEPTH_TRANSFER)

    def _cell(self, key: Key, greedy: int) -> Cell:
        graph, method, _ = key
        case = self.cases[graph]
        options, training = self._options(key), {}
        if method in TRAINED:
            trained_on = json.loads((options["folder"] / FILE).read_text())["trained_on"]
            training = {
                "training_s": trained_on["seconds"],
                "training_rewrites": trained_on["evaluations"],
            }
        model = _file(self.option_of, self.folder, case.graph)
        return Cell(
            subject=Subject(model, *_cost(self.option_of, case.cost, self.folder)),
            method=method,
            options=options,
            budget=self._budget(method, greedy),
            **training,
        )

    def _options(self, key: Key) -> dict[str, Any]:
        """The options of a method: those of conf/search, the seed, and what it has been taught."""
        graph, method, seed = key
        case, most = self.cases[graph], max(self.settings["readings"])
        if method in TAUGHT:
            own = self.settings["options"].get(method, {})
            return {"seed": seed, "rewrites": most, "folder": self._policy(method, case, seed), **own}
        if method in GUIDED:
            return {"seed": seed, "rewrites": most}
        usual = self.option_of("search", USUAL.get(method, method))["options"]
        options = usual | self.settings["options"].get(method, {})
        return options | ({"seed": seed} if method in self.settings["drawn"] else {})

    def _budget(self, method: str, greedy: int) -> Budget:
        """The clock ends what is run once, where it has not ended by itself or by its rewrites."""
        time_s = self.settings["time_s"] if method in self.settings["once"] else None
        if method in (GREEDY, *GUIDED, *self.settings["finders"]):
            return Budget(time_s)
        most = self.settings["long"].get(method, max(self.settings["readings"]))
        return Budget(time_s, rewrites=greedy + most)

    def _policy(self, method: str, case: Case, seed: int) -> Path:
        """The folder of the policy that has had no lesson of the family, unless the method is to know it.

        Without settings of a fit it is the one that ships, which has had lessons of many.
        """
        if self.settings["policy"] is None:
            with shipped_folder() as folder:
                return folder
        family = None if method == DEPTH_TRANSFER else case.family
        lessons, folder = (Path(self.settings[name]).resolve() for name in ("lessons", "policies"))
        config = read_config(MatchLevelModelConfig, self.settings["policy"])
        return _fitted(self.settings["longest_s"], family, case.taught_at, lessons, config, folder, seed)


def _mean(found: list[RankCorrelation]) -> dict[str, Any]:
    """The figure of several seeds, which are about the same states."""
    value, rule_mean = (fmean(getattr(one, name) for one in found) for name in ("value", "rule_mean"))
    return {"spearman": Figure(value, rule_mean, "rule_mean", found[0].states).to_json()}


def _name(key: Key) -> str:
    return "-".join(map(str, key))


@cache
def _cost(option_of: OptionOf, cost: str, folder: Path) -> Any:
    return cost_context_of(option_of("cost", cost), folder / f"{cost}_prices.json")


@cache
def _file(option_of: OptionOf, folder: Path, graph: str) -> Path:
    return graph_files({graph: option_of("graph", graph)}, folder, processes=1)[graph]


@cache
def _fitted(
    longest_s: float,
    family: str | None,
    cost: str,
    lessons: Path,
    config: MatchLevelModelConfig,
    folder: Path,
    seed: int,
) -> Path:
    """`policy_without`, in a process of its own, since a fit would leave much memory behind."""
    fit = partial(policy_without, family, cost, lessons, config, folder, seed=seed)
    return call_isolated(Limits(longest_s), fit)


def _scalars(row: Row) -> Row:
    return {name: value for name, value in row.items() if name != "milestones"}


def _publish(rows: Rows, settings: Any) -> None:
    """Write metrics, summary, curves, table and pictures."""
    results, readings, long = Path(settings["results"]), settings["readings"], settings["long"]
    metrics = {
        graph: {
            method: rows.figures(graph, method, [*readings, *([long[method]] if method in long else [])])
            for method in rows.methods(graph)
        }
        for graph in rows.graphs
    }
    together = summary(rows, readings, max(long.values(), default=max(readings)), settings["headless"])
    methods = (*settings["once"], *settings["drawn"])
    most = {method: long.get(method, max(readings)) for method in (GREEDY, *methods)}
    drawn = {
        "curves": curves(rows, settings["steps"], most),
        "curves_by_prices": curves_by_prices(rows, settings["price_steps"]),
    }
    publish(results / "metrics.json", Learned, metrics, __file__)
    publish(results / "summary.json", Summary, together, __file__)
    taught = SHIPPED if settings["policy"] is None else LEFT_OUT
    (results / "table.md").write_text(learned_table(metrics, together, max(readings), taught))
    for name, document in drawn.items():
        if document:
            publish(results / f"{name}.json", TrainingCurves, document, __file__)
            save(figures.learned_curves(document), results / f"{name}.png")
