"""The onnx package's own backend tests: whatever plain ONNX Runtime runs, it runs after import and export, bit for bit,
and within rounding after rewrites around it.
"""

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx_io.conftest import same_values

from rlflow.errors import RLFlowError
from rlflow.onnx_io import check_model, from_onnx, to_onnx
from rlflow.rules.library import load
from rlflow.rules.rewriter import Rewriter
from rlflow.runtime.equivalence import tolerance_of
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


def _cases(kind: str) -> list[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the suite computes its expectations with overflows and divisions by zero
        from onnx.backend.test.loader import load_model_tests

        return load_model_tests(kind=kind)  # type: ignore[no-any-return]


@pytest.mark.slow
@pytest.mark.parametrize("kind", AT_LEAST)
def test_whatever_onnx_runtime_runs_survives(kind: str, record_property: Callable[[str, object], None]) -> None:
    survived, failed = 0, []
    cases = _cases(kind)
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


FIRST_OPSET_THAT_BROADCASTS = 7
WEIGHTS_ARE_NO_INPUTS = 4  # from this version of the IR on
SUFFIX = "_outside"
REWRITES = 5
RULES_AROUND = 3
EMBEDDED_AT_LEAST = 1100


def _embedded(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with each float32 input and output behind a shift and a scale, both of which change nothing."""
    outer = onnx.ModelProto()
    outer.CopyFrom(model)
    graph = outer.graph
    before, after = [], []
    stored = {tensor.name for tensor in graph.initializer}
    for value in graph.input:
        if _is_float(value) and value.name not in stored:
            before += _shifted_and_scaled(value.name + SUFFIX, value.name)
            value.name += SUFFIX
    for value in graph.output:
        if _is_float(value):
            after += _shifted_and_scaled(value.name, value.name + SUFFIX)
            value.name += SUFFIX
    nodes = [*before, *graph.node, *after]
    del graph.node[:]
    graph.node.extend(nodes)
    graph.initializer.append(numpy_helper.from_array(np.float32(1), "one" + SUFFIX))
    graph.initializer.append(numpy_helper.from_array(np.float32(0), "zero" + SUFFIX))
    outer.ir_version = max(outer.ir_version, WEIGHTS_ARE_NO_INPUTS)
    if not any(opset.domain == "" for opset in outer.opset_import):
        outer.opset_import.append(helper.make_opsetid("", FIRST_OPSET_THAT_BROADCASTS))
    return outer


def _is_float(value: onnx.ValueInfoProto) -> bool:
    return value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT


def _shifted_and_scaled(read: str, written: str) -> list[onnx.NodeProto]:
    between = f"{written}{SUFFIX}_shifted"
    return [
        helper.make_node("Add", [read, "zero" + SUFFIX], [between]),
        helper.make_node("Mul", ["one" + SUFFIX, between], [written]),
    ]


def _rewritten(model: onnx.ModelProto, rewriter: Rewriter, rng: np.random.Generator) -> tuple[onnx.ModelProto, int]:
    """After a few random rewrites, and how many they were: none where fewer than three rules match."""
    graph, done = from_onnx(model), 0
    while done < REWRITES:
        matches = rewriter.matches(graph)
        rules = [rule for rule, count in enumerate(matches.counts) if count]
        if len(rules) < RULES_AROUND:
            break
        rule = rules[int(rng.integers(len(rules)))]
        graph = rewriter.apply(graph, matches[rule][int(rng.integers(matches.counts[rule]))])
        done += 1
    return to_onnx(graph), done


def _close(expected: Any, actual: Any, tolerance: float) -> bool:
    """Floats within the tolerance of the largest of them, all else bit for bit."""
    if not isinstance(expected, np.ndarray) or expected.dtype.kind != "f" or expected.shape != np.shape(actual):
        return same_values(expected, actual)
    scale = np.abs(expected[np.isfinite(expected)]).max(initial=0.0)
    return np.allclose(actual, expected, rtol=0, atol=tolerance * scale, equal_nan=True)


@pytest.mark.slow
def test_whatever_onnx_runtime_runs_survives_rewrites_around_it(record_property: Callable[[str, object], None]) -> None:
    """Every node model that reads or makes a float32 tensor."""
    rewriter, rng = Rewriter(load().rules), np.random.default_rng(0)
    survived, rewrites, failed = 0, 0, []
    for case in _cases("node"):
        plain = _runs_plainly(case)
        if plain is None or not any(map(_is_float, (*plain[0].graph.input, *plain[0].graph.output))):
            continue
        embedded = _embedded(plain[0])
        try:
            session = open_session(embedded, "as_written")
        except RLFlowError:
            continue  # what it reads must be a weight
        try:
            after, done = _rewritten(embedded, rewriter, rng)
            check_model(after)
            rewritten = open_session(after, "as_written")
            for feeds, _ in plain[1]:
                named = {i.name: i.name.removesuffix(SUFFIX) for i in embedded.graph.input}
                outside = {name: feeds[inside] for name, inside in named.items() if inside in feeds}
                expected, actual = run(session, outside), run(rewritten, outside)
                if not all(_close(expected[name], actual[name], tolerance_of(embedded)) for name in expected):
                    failed.append(f"{case.name}: other outputs")
        except RLFlowError as error:
            failed.append(f"{case.name}: {error}")
            continue
        survived += done > 0
        rewrites += done
    record_property("survived", survived)
    record_property("rewrites", rewrites)
    assert not failed
    assert survived >= EMBEDDED_AT_LEAST
    assert rewrites >= 0.9 * REWRITES * survived
