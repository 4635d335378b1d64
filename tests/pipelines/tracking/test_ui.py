"""The user interface opens on the runs, with columns that tell."""

import json
from pathlib import Path

from tracking.store import open_store
from tracking.ui import run_address, runs_address, show_columns


def test_the_address_is_the_page_of_the_runs_in_the_mode_of_trainings() -> None:
    page = "http://127.0.0.1:5001/#/experiments/7/runs"
    assert runs_address("7", 5001) == f"{page}?viewStateShareKey=rlflow&workflowType=machine_learning"
    assert run_address("7", "abc", 5001) == f"{page}/abc"


def test_the_view_names_columns(store_root: Path) -> None:
    """As a tag of each experiment, in the form in which MLflow keeps views that are shared."""
    store = open_store()
    show_columns(store)
    for experiment in (store.experiment_id, store.aside_id):
        view = json.loads(store.client.get_experiment(experiment).tags["mlflow.sharedViewState.rlflow"])
        assert {"params.`graph`", "params.`method`", "metrics.`saved_percent`"} < set(view["selectedColumns"])
