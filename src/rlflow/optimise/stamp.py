"""The mark of a model that RLFlow has made: its metadata hold a digest of all else that it says.

    save_model(stamped(faster), path)
    is_stamped(load_model(path))                # True, until anything in the model is changed

A model that is changed afterwards, by whatever tool, still bears the mark, but not its own digest any more.
"""

from __future__ import annotations

from hashlib import sha256

from onnx import ModelProto

KEY = "rlflow.optimised"


def stamped(model: ModelProto) -> ModelProto:
    """Return a copy of a model, whose weights it holds itself, with the mark."""
    marked = _unstamped(model)
    marked.metadata_props.add(key=KEY, value=_digest(marked))
    return marked


def is_stamped(model: ModelProto) -> bool:
    """True for a model that says what it said when it was marked."""
    marks = [entry.value for entry in model.metadata_props if entry.key == KEY]
    return bool(marks) and marks == [_digest(_unstamped(model))]


def _unstamped(model: ModelProto) -> ModelProto:
    copy = ModelProto()
    copy.CopyFrom(model)
    del copy.metadata_props[:]
    copy.metadata_props.extend(entry for entry in model.metadata_props if entry.key != KEY)
    return copy


def _digest(model: ModelProto) -> str:
    return sha256(model.SerializeToString(deterministic=True)).hexdigest()
