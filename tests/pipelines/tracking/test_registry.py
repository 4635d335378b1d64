from pathlib import Path

import mlflow
import numpy as np
import onnx
import pytest
from tracking.registry import BEST, Price, register_onnx
from tracking.run import open_run
from tracking.store import open_store

from rlflow import zoo

DELIVERED = {"delivered": "original", "delivered_because": "deployed, it is within noise"}


@pytest.fixture
def registered(store_root: Path, tmp_path_factory: pytest.TempPathFactory):
    path = tmp_path_factory.mktemp("model") / "model.onnx"
    onnx.save(zoo.build("tiny_merge"), path)
    store = open_store(store_root)
    with open_run(store, "evaluate/tiny_merge/0", parameters={}, tags={}) as run:
        version = register_onnx(run, path, "rlflow-tiny_merge", Price(2.0, "analytic"), DELIVERED)
    yield store, run, version, path
    mlflow.set_tracking_uri(None)


def test_registered_model_has_a_signature_and_loads(registered):
    store, run, version, path = registered
    assert version == "1"
    found = store.client.get_model_version("rlflow-tiny_merge", version)
    assert found.run_id == run.run_id
    assert store.client.get_run(run.run_id).info.status == "FINISHED"
    signature = mlflow.models.get_model_info(f"models:/rlflow-tiny_merge/{version}").signature
    model = onnx.load(path)
    assert [spec.name for spec in signature.inputs] == [value.name for value in model.graph.input]
    assert [spec.name for spec in signature.outputs] == [value.name for value in model.graph.output]
    assert {spec.type for spec in signature.inputs} == {np.dtype("float32")}
    assert DELIVERED.items() <= found.tags.items()


def test_registered_model_is_the_file(registered):
    """Loaded back, weights and all; the file itself is left as it was."""
    _, _, version, path = registered
    before = path.read_bytes()
    loaded = mlflow.onnx.load_model(f"models:/rlflow-tiny_merge/{version}")
    original = onnx.load(path)
    assert [node.op_type for node in loaded.graph.node] == [node.op_type for node in original.graph.node]
    for mine, theirs in zip(loaded.graph.initializer, original.graph.initializer, strict=True):
        assert np.array_equal(onnx.numpy_helper.to_array(mine), onnx.numpy_helper.to_array(theirs))
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("price", "best"),
    [
        pytest.param(Price(1.0, "analytic"), "2", id="cheaper"),
        pytest.param(Price(3.0, "analytic"), "1", id="dearer"),
        pytest.param(Price(2.0, "analytic"), "1", id="equal"),
        pytest.param(Price(3.0, "predicted"), "2", id="prices that cannot be compared"),
    ],
)
def test_the_alias_names_the_version_that_costs_least(registered, price: Price, best: str):
    store, _, _, path = registered
    with open_run(store, "evaluate/tiny_merge/1", parameters={}, tags={}) as run:
        assert register_onnx(run, path, "rlflow-tiny_merge", price, {"delivered": "optimised"}) == "2"
    named = store.client.get_model_version_by_alias("rlflow-tiny_merge", BEST)
    assert named.version == int(best)
    assert named.tags["delivered"] == {"1": "original", "2": "optimised"}[best], (
        "whatever the model is, its tag says it"
    )
    assert mlflow.onnx.load_model(f"models:/rlflow-tiny_merge@{BEST}").graph.node
