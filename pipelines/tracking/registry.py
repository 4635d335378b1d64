"""Optimised models in MLflow's model registry, where the alias `best` names the version that costs least.

    register_onnx(run, Path("optimised.onnx"), "rlflow-bert", Price(176.3, "predicted"), {"delivered": "optimised"})
    mlflow.onnx.load_model("models:/rlflow-bert@best")

Each version is tagged with what it is, and with what it costs by which prices; versions are compared by the same prices
alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import mlflow
import numpy as np
import onnx
from mlflow import MlflowClient
from mlflow.models import ModelSignature
from mlflow.types import Schema, TensorSpec

from tracking.run import Run

REQUIREMENTS = ["onnx", "onnxruntime"]
BEST = "best"
"""The alias of the version that costs least."""

_COST_TAG, _PRICES_TAG = "cost_ms", "prices"


@dataclass(frozen=True)
class Price:
    """The cost of a model, and its prices: the name of a cost model with its settings."""

    cost_ms: float
    prices: str


def register_onnx(run: Run, path: Path, name: str, price: Price, tags: Mapping[str, str]) -> str:
    """Register the model of a file under `name` with its signature, price and tags; returns the version.

    The version gets the alias `best` if the one that has it costs more, or was priced otherwise.

    MLflow keeps one copy, with the weights beside the graph: for BERT-Base that takes seconds and 436 MB of disk.
    """
    model = onnx.load(path)
    signature = ModelSignature(_schema(model.graph.input), _schema(model.graph.output))
    mlflow.set_tracking_uri(run.store.uri)
    with mlflow.start_run(run_id=run.run_id):
        info = mlflow.onnx.log_model(
            model, name="model", signature=signature, pip_requirements=REQUIREMENTS, registered_model_name=name
        )
    version = str(info.registered_model_version)
    for tag, value in {**tags, _COST_TAG: str(price.cost_ms), _PRICES_TAG: price.prices}.items():
        run.store.client.set_model_version_tag(name, version, tag, value)
    if not _is_as_cheap(run.store.client, name, price):
        run.store.client.set_registered_model_alias(name, BEST, version)
    return version


def _is_as_cheap(client: MlflowClient, name: str, price: Price) -> bool:
    """Return True if the version with the alias costs no more by the same prices; False if none has it."""
    best = client.get_registered_model(name).aliases.get(BEST)
    if best is None:
        return False
    tags = client.get_model_version(name, best).tags
    return tags.get(_PRICES_TAG) == price.prices and float(tags[_COST_TAG]) <= price.cost_ms


def _schema(values: list[onnx.ValueInfoProto]) -> Schema:
    """The schema of inputs or outputs: names, types and shapes, -1 for a dynamic dimension."""
    return Schema([TensorSpec(_dtype(value), _shape(value), value.name) for value in values])


def _dtype(value: onnx.ValueInfoProto) -> np.dtype:
    return np.dtype(onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type))


def _shape(value: onnx.ValueInfoProto) -> tuple[int, ...]:
    dimensions = value.type.tensor_type.shape.dim
    return tuple(d.dim_value if d.HasField("dim_value") else -1 for d in dimensions)
