"""Learn the price model that ships from the measured regions, and judge it with each family of models left out.

    python pipelines/study.py price_model

Reads what `make study NAME=prices` has gathered. Writes the two files of the model into the library, and its accuracy
beside three baselines to data/results/price_model/metrics.json. The same regions give the same files, byte for byte.
"""

import json
import logging
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import xgboost
from experiment.results import write_results
from omegaconf import DictConfig, OmegaConf
from tracking.run import numbers

from rlflow.cli.progress import progress_bar
from rlflow.cost.border_reorders import ReorderConfig
from rlflow.cost.predicted.noise import Noise
from rlflow.cost.predicted.price_model import TREES, save
from rlflow.cost.predicted.training import Forest, LearningConfig, Machine, Table, examples_of, learn
from rlflow.cost.region_record import read_graphs, read_records, read_rewrites
from rlflow.onnx_io.tree_ensemble import Tree
from studies.price_model.documents import PriceModel
from studies.price_model.models import Gathered, left_out
from studies.program import study_program, study_run

RESULTS = Path("data/results/price_model/metrics.json")

log = logging.getLogger(__name__)


@study_program("price_model")
def main(config: DictConfig) -> None:
    settings: Any = OmegaConf.to_container(config, resolve=True)
    with study_run("price_model", settings) as run:
        records = list(read_records(Path(settings["regions"])))
        log.info("%d measured regions", len(records))
        machine = Machine(
            median(record.probe_ms for record in records),
            settings["view_us"] / 1e3,
            ReorderConfig(**settings["reorders"]),
        )
        gathered = Gathered(
            tuple(examples_of(records, machine.reorders)),
            tuple(read_rewrites(Path(settings["rewrites"]))),
            tuple(read_graphs(Path(settings["graphs"]))),
            machine.view_ms,
        )
        noise = Noise(**settings["noise"])
        learned = partial(
            learn,
            machine=machine,
            noise=noise,
            config=LearningConfig(**settings["learning"]),
            fit_trees=partial(boosted, settings=settings["trees"], seed=settings["seed"]),
        )
        with progress_bar("families left out") as on_progress:
            results = left_out(gathered, learned, noise, settings["far"], on_progress)

        folder = Path(settings["model"])
        model = learned(gathered.examples).with_accuracy(results["models"]["predicted"]["all"])
        save(folder, model.description, model.forest.trees, model.forest.base)
        results["trees_bytes"] = (folder / TREES).stat().st_size
        write_results(RESULTS, PriceModel, results)
        run.log(0, numbers(results))
        run.artifact(RESULTS)


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
