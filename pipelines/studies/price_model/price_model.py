"""Learn the price model that ships from the measured regions, and judge it with each family of models left out.

    python pipelines/study.py price_model

Reads what `make study NAME=prices` has gathered. Writes the two files of the model into the library, and its accuracy
beside three baselines to data/results/price_model/metrics.json; with each processor left out as well. The same
regions give the same files, byte for byte.
"""

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import xgboost
from omegaconf import DictConfig, OmegaConf
from tracking.run import numbers

from rlflow.cli.progress import progress_bar
from rlflow.cost.border_reorders import ReorderConfig
from rlflow.cost.predicted.cost import nearest
from rlflow.cost.predicted.features import FeatureReader, Features
from rlflow.cost.predicted.noise import Noise
from rlflow.cost.predicted.price_model import TREES, Steps, save
from rlflow.cost.predicted.training import Example, Forest, Learned, LearningConfig, Machine, Table, examples_of, learn
from rlflow.cost.region_record import GraphRecord, RegionRecord, read_graphs, read_records
from rlflow.onnx_io.tree_ensemble import Tree
from rlflow.runtime.hardware import processor_of
from studies.price_model.documents import PriceModel
from studies.price_model.models import Gathered, left_out
from studies.program import study_program, study_run
from studies.published import publish

RESULTS = Path("data/results/price_model/metrics.json")

log = logging.getLogger(__name__)


@study_program("price_model")
def main(config: DictConfig) -> None:
    settings: Any = OmegaConf.to_container(config, resolve=True)
    with study_run("price_model", settings) as run:
        records = tuple(read_records(Path(settings["regions"])))
        gathered = Gathered(
            features_of(records, settings["processors"]),
            tuple(read_graphs(Path(settings["graphs"]))),
            stand_ins(settings["processors"]),
        )
        log.info("%d measured regions, %d graphs", len(records), len(gathered.graphs))
        known = machines(settings["processors"], settings["views_mb"], gathered.graphs)
        learned = partial(
            learn,
            reference=settings["reference"],
            noise=Noise(**settings["noise"]),
            config=LearningConfig(**settings["learning"]),
            fit_trees=partial(boosted, settings=settings["trees"], seed=settings["seed"]),
        )
        with progress_bar("families left out") as on_progress:
            results = left_out(gathered, partial(_of_those_measured, known, learned), on_progress)

        folder = Path(settings["model"])
        model = learned(list(examples_of(gathered.regions, gathered.graphs)), known)
        accuracy = {name: of["all"] for name, of in results["models"]["predicted"].items()}
        save(folder, model.with_accuracy(accuracy).description, model.forest.trees, model.forest.base)
        results["trees_bytes"] = (folder / TREES).stat().st_size
        publish(RESULTS, PriceModel, results, __file__)
        run.log(0, numbers(results))
        run.artifact(RESULTS)


def _of_those_measured(
    known: Mapping[str, Machine], learned: Callable[..., Learned], examples: Sequence[Example]
) -> Learned:
    """Learn without the machines of which there are no examples, as they are left out."""
    measured = {example.processor for example in examples}
    return learned(examples, {name: machine for name, machine in known.items() if name in measured})


def features_of(records: Sequence[RegionRecord], processors: Mapping[str, Any]) -> dict[str, Mapping[str, Features]]:
    """Return the features of all regions by signature, for each processor as its layout blocks channels."""
    of_block: dict[int, Mapping[str, Features]] = {}
    for block in {of["reorders"]["block"] for of in processors.values()}:
        reader = FeatureReader(block=block)
        of_block[block] = {r.signature: reader.features(r.graph, r.graph.order) for r in records}
    return {name: of_block[of["reorders"]["block"]] for name, of in processors.items()}


def stand_ins(processors: Mapping[str, Any]) -> dict[str, str]:
    """Return, for each processor of the settings, the one whose prices the product would take if it knew no times of
    it.
    """
    traits = {name: of["traits"] for name, of in processors.items()}

    def others(name: str) -> dict[str, Mapping[str, float]]:
        return {other: own for other, own in traits.items() if processor_of(other) != processor_of(name)}

    return {
        name: nearest(others(name), own, partial(own.__getitem__, "bandwidth_gb_s"))
        for name, own in traits.items()
        if others(name)
    }


def machines(
    processors: Mapping[str, Any], views_mb: Sequence[float], graphs: Sequence[GraphRecord]
) -> dict[str, Machine]:
    """Return the processors of the settings by name, with what a view takes in the graphs that ran there."""
    ran = {name: [graph for graph in graphs if graph.processor == name] for name in processors}
    return {
        name: Machine(of["traits"], _view_ms(ran[name], views_mb), ReorderConfig(**of["reorders"]))
        for name, of in processors.items()
    }


def _view_ms(graphs: Sequence[GraphRecord], views_mb: Sequence[float]) -> Steps:
    """Return the median of what a graph takes beside its regions and reorders, for each of its views, by the megabytes
    that a run touches: of as many steps as there are graphs for.
    """
    found: list[tuple[float, float]] = []
    for least_mb, up_to_mb in pairwise([0.0, *views_mb]):
        group = [graph for graph in graphs if graph.views and least_mb < graph.working_set_mb <= up_to_mb]
        if group:
            times_ms = [(graph.ms - graph.reorders_ms - graph.regions_ms) / graph.views for graph in group]
            found.append((up_to_mb, median(times_ms)))
    return tuple(found or [(0.0, 0.0)])


def boosted(table: Table, settings: dict[str, Any], seed: int) -> Forest:
    """Boost trees on the table by XGBoost, in one thread, so that sums have one order."""
    parameters = {name: value for name, value in settings.items() if name != "rounds"}
    parameters |= {"objective": "reg:squarederror", "tree_method": "hist", "nthread": 1, "seed": seed}
    data = xgboost.DMatrix(table.rows, table.targets, weight=table.weights, nthread=1)
    booster = xgboost.train({**parameters, "base_score": 0.0}, data, num_boost_round=settings["rounds"])
    return Forest(_trees(booster), base=0.0)


def _trees(booster: xgboost.Booster) -> Sequence[Tree]:
    """Return the trees as XGBoost saves them; a leaf's value stands where other nodes have their threshold."""
    saved = json.loads(booster.save_raw("json"))["learner"]["gradient_booster"]["model"]["trees"]
    return [
        Tree(tree["split_indices"], tree["split_conditions"], tree["left_children"], tree["right_children"])
        for tree in saved
    ]
