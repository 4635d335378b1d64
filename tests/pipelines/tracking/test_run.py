import math
from pathlib import Path

import pytest
from tracking.run import flatten, numbers, open_child, open_run
from tracking.store import Store, open_store


@pytest.fixture
def store(store_root: Path):
    return open_store(store_root)


def test_metrics_arrive_in_order_with_their_steps(store):
    """More of them than one request takes."""
    with open_run(store, "fit/bert/0", parameters={}, tags={}) as run:
        for step in range(1200):
            run.log(step, {"memory/loss": 1 / (step + 1), "held out@1": math.nan})
    history = store.client.get_metric_history(run.run_id, "memory/loss")
    assert [(metric.step, metric.value) for metric in history] == [(step, 1 / (step + 1)) for step in range(1200)]
    assert "held out_1" in store.client.get_run(run.run_id).data.metrics


def test_metrics_are_held_back_until_the_end(store):
    """Otherwise every call would cost a transaction."""
    with open_run(store, "fit/bert/0", parameters={}, tags={}) as run:
        run.log(0, {"loss": 1.0})
        assert store.client.get_run(run.run_id).data.metrics == {}
    assert store.client.get_run(run.run_id).data.metrics == {"loss": 1.0}


def test_run_tells_stage_parameters_and_tags(store):
    parameters = {"seed": 0, "world_model": {"hidden": 256, "loss_weights": {"cost": 1.0}}}
    with open_run(store, "fit/bert/0", parameters=parameters, tags={"stage": "fit"}) as run:
        pass
    stored = store.client.get_run(run.run_id)
    assert stored.info.run_name == "fit/bert/0"
    assert stored.data.tags["stage"] == "fit"
    assert stored.data.params == {"seed": "0", "world_model.hidden": "256", "world_model.loss_weights.cost": "1.0"}


@pytest.mark.parametrize(("error", "status"), [(ValueError, "FAILED"), (KeyboardInterrupt, "KILLED")])
def test_error_ends_the_run_which_lies_aside_with_its_metrics(store, error, status):
    with pytest.raises(error, match="in the middle"):
        _log_then_raise(store, error("in the middle"))
    (stored,) = store.client.search_runs([store.aside_id])
    assert stored.info.status == status
    assert stored.data.metrics == {"loss": 1.0}


def _log_then_raise(store: Store, error: BaseException) -> None:
    with open_run(store, "fit/bert/0", parameters={}, tags={}) as run:
        run.log(0, {"loss": 1.0})
        raise error


def test_child_names_its_parent(store):
    with (
        open_run(store, "sweep/bert/0", parameters={}, tags={"stage": "sweep"}) as parent,
        open_child(parent, "sweep/bert/0 temperature=0.5", parameters={"temperature": 0.5}) as child,
    ):
        pass
    tags = store.client.get_run(child.run_id).data.tags
    assert tags["mlflow.parentRunId"] == parent.run_id
    assert tags["stage"] == "sweep"


def test_flatten_and_numbers():
    nested = {"a": {"b": 1, "c": "text", "d": math.inf}, "e": [1, 2], "f": True}
    assert flatten(nested) == {"a.b": 1, "a.c": "text", "a.d": math.inf, "e": [1, 2], "f": True}
    assert numbers(nested) == {"a/b": 1.0, "f": 1.0}
