"""A model without the weights that another one has as well, so that it is small beside that one.

    small = without_weights_of(rewritten, original)
    with_weights_of(small, original)            # the rewritten model again, to the byte

A weight that was taken out names its like by `external_data: [location=<name in the other model>]`.
"""

from __future__ import annotations

from hashlib import sha256

from onnx import ModelProto, TensorProto

from rlflow.errors import ModelFormatError
from rlflow.onnx_io.data_place import is_outside

_LEAST_BYTES = 1024
"""Smaller weights stay."""


def without_weights_of(model: ModelProto, other: ModelProto) -> ModelProto:
    """Return a copy of a model that refers to the weights of another one where it has the same; both hold theirs."""
    names = {_key(weight): weight.name for weight in other.graph.initializer if _is_large(weight)}
    small = ModelProto()
    small.CopyFrom(model)
    for weight in small.graph.initializer:
        if _is_large(weight) and (name := names.get(_key(weight))) is not None:
            weight.ClearField("raw_data")
            weight.data_location = TensorProto.EXTERNAL
            weight.external_data.add(key="location", value=name)
    return small


def with_weights_of(small: ModelProto, other: ModelProto) -> ModelProto:
    """Return the model that `without_weights_of` made small. `ModelFormatError` where the other has no such weight."""
    weights = {weight.name: weight for weight in other.graph.initializer}
    model = ModelProto()
    model.CopyFrom(small)
    for weight in filter(is_outside, model.graph.initializer):
        name = weight.external_data[0].value
        if name not in weights:
            raise ModelFormatError(f"the model has no weight {name!r}, to which {weight.name!r} refers")
        weight.raw_data = weights[name].raw_data
        weight.ClearField("external_data")
        weight.ClearField("data_location")
    return model


def _is_large(weight: TensorProto) -> bool:
    return len(weight.raw_data) >= _LEAST_BYTES


def _key(weight: TensorProto) -> tuple[bytes, int]:
    return sha256(weight.raw_data).digest(), weight.data_type
