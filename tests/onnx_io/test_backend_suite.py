"""The onnx package's own backend tests: whatever plain ONNX Runtime runs, it runs after import and export, bit for bit.

The embedding of each node among rewritten ones belongs to the rewriting engine's tests.
"""

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import numpy_helper
from onnx_io.conftest import same_values

from rlflow.errors import RLFlowError
from rlflow.onnx_io import check_model, from_onnx, to_onnx
from rlflow.runtime.session import open_session, run

# Lower bounds: newer packages bring more tests, and a run that compares nothing must not pass.
AT_LEAST = {"node": 1300, "simple": 15, "pytorch-converted": 50, "pytorch-operator": 20}


def _decoded(value: Any, kind: onnx.TypeProto | None = None) -> Any:
    if isinstance(value, Path):
        proto = {"sequence_type": onnx.SequenceProto, "optional_type": onnx.OptionalProto}.get(
            kind.WhichOneof("value") if kind else "", onnx.TensorProto
        )
        return _decoded(proto.FromString(value.read_bytes()))
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    if isinstance(value, onnx.SequenceProto):
        return numpy_helper.to_list(value)
    if isinstance(value, onnx.OptionalProto):
        return numpy_helper.to_optional(value)
    return value


def _feeds(case: Any, model: onnx.ModelProto) -> Iterator[dict[str, Any]]:
    if case.data_sets is not None:
        for inputs, _ in case.data_sets:
            yield {i.name: _decoded(v) for i, v in zip(model.graph.input, inputs, strict=False)}
        return
    for folder in sorted(Path(case.model_dir).glob("test_data_set_*")):
        files = {i.name: (folder / f"input_{k}.pb", i.type) for k, i in enumerate(model.graph.input)}
        yield {name: _decoded(file, kind) for name, (file, kind) in files.items() if file.exists()}


def _runs_plainly(case: Any) -> tuple[onnx.ModelProto, list[tuple[dict[str, Any], dict[str, Any]]]] | None:
    """The model with inputs and outputs, or None if ONNX Runtime alone cannot run it."""
    try:
        model = case.model or onnx.load(Path(case.model_dir) / "model.onnx")
        session = open_session(model, "as_written")
        return model, [(feeds, run(session, feeds)) for feeds in _feeds(case, model)]
    except (RLFlowError, TypeError, ValueError, NotImplementedError):
        return None


@pytest.mark.slow
@pytest.mark.parametrize("kind", AT_LEAST)
def test_whatever_onnx_runtime_runs_survives(kind: str, record_property: Callable[[str, object], None]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the suite computes its expectations with overflows and divisions by zero
        from onnx.backend.test.loader import load_model_tests

        cases = load_model_tests(kind=kind)
    survived, failed = 0, []
    for case in cases:
        plain = _runs_plainly(case)
        if plain is None:
            continue
        model, expected = plain
        try:
            after = to_onnx(from_onnx(model))
            check_model(after)
            session = open_session(after, "as_written")
            equal = all(same_values([*out.values()], [*run(session, feeds).values()]) for feeds, out in expected)
        except RLFlowError as error:
            failed.append(f"{case.name}: {error}")
            continue
        if not equal:
            failed.append(f"{case.name}: other outputs")
        survived += equal
    record_property("survived", survived)
    record_property("of", len(cases))
    assert not failed
    assert survived >= AT_LEAST[kind]
