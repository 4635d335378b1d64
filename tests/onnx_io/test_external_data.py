"""Weights in files beside the model are referred to, never copied, and follow the model when it is saved."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, external_data_helper, helper, numpy_helper
from support.element_types import ELEMENT_TYPES, whole_numbers
from support.onnx_models import Build, Survives, floats

from rlflow.errors import ModelFormatError
from rlflow.ir import structural_hash
from rlflow.onnx_io import check_model, external_data, from_onnx, load_model, save_model, saving, to_onnx
from rlflow.onnx_io.payload import InitializerPayload
from rlflow.runtime.session import open_session, run


def _external(build: Build, folder: Path) -> tuple[onnx.ModelProto, Path]:
    draw = np.random.default_rng(0).standard_normal
    weights = {"w": draw((3, 400)).astype(np.float32), "v": draw((3, 400)).astype(np.float32)}
    nodes = [
        helper.make_node("Add", ["w", "v"], ["s"]),
        helper.make_node("MatMul", ["x", "s"], ["m"]),
        helper.make_node("MatMul", ["x", "w"], ["n"]),
        helper.make_node("Add", ["m", "n"], ["y"]),
    ]
    inline = build(nodes, [floats("x", 2, 3)], [floats("y", 2, 400)], weights=weights)
    outside = onnx.ModelProto()
    outside.CopyFrom(inline)
    external_data_helper.convert_model_to_external_data(outside, location="weights.bin", size_threshold=0)
    folder.mkdir()
    onnx.save_model(outside, folder / "model.onnx")
    return inline, folder / "model.onnx"


def test_weights_beside_the_model(model: Build, survives: Survives, tmp_path: Path) -> None:
    inline, path = _external(model, tmp_path / "here")
    after = survives(path)
    assert all(t.data_location == TensorProto.DEFAULT for t in after.graph.initializer)
    assert structural_hash(from_onnx(path)) == structural_hash(from_onnx(inline))


def test_a_model_with_weights_beside_it_is_exported_elsewhere(model: Build, tmp_path: Path) -> None:
    inline, path = _external(model, tmp_path / "here")
    (tmp_path / "there").mkdir()
    copy = tmp_path / "there" / "copy.onnx"
    save_model(to_onnx(from_onnx(path)), copy)
    (path.parent / "weights.bin").unlink()
    feeds = {"x": np.ones((2, 3), np.float32)}
    expected, actual = (run(open_session(m, "as_written"), feeds)["y"] for m in (inline, copy))
    assert np.array_equal(expected, actual)


def _conditional_with_weights_beside(build: Build, folder: Path) -> Path:
    """If(c) adds a weight of its own, or one in an attribute of its own."""
    weight = numpy_helper.from_array(np.arange(3, dtype=np.float32), "w")
    added = helper.make_node("Add", ["x", "w"], ["sum"])
    then = helper.make_graph([added], "then", [], [floats("sum", 3)], [weight])
    constant = helper.make_node("Constant", [], ["k"], value=weight)
    otherwise = [constant, helper.make_node("Mul", ["x", "k"], ["product"])]
    branch = helper.make_graph(otherwise, "else", [], [floats("product", 3)])
    node = helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=branch)
    condition = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    inline = build([node], [condition, floats("x", 3)], [floats("y", 3)])
    path = folder / "model.onnx"
    onnx.save_model(
        inline, path, save_as_external_data=True, location="w.bin", size_threshold=0, convert_attribute=True
    )
    return path


@pytest.mark.parametrize("condition", [False, True])
def test_weights_of_subgraphs_beside_the_model(
    model: Build, survives: Survives, tmp_path: Path, condition: bool
) -> None:
    """What is exported needs no other file: ONNX Runtime has nowhere to look for one."""
    path = _conditional_with_weights_beside(model, tmp_path)
    survives(path, {"c": np.array(condition), "x": np.array([1, -2, 3], np.float32)})


def test_weights_of_subgraphs_that_are_cut_off(model: Build, tmp_path: Path) -> None:
    path = _conditional_with_weights_beside(model, tmp_path)
    (tmp_path / "w.bin").write_bytes(b"\0" * 23)  # of twice 12
    with pytest.raises(
        ModelFormatError, match=r"model\.onnx is not a valid ONNX model: .*end at byte 24 of 'w\.bin', which has 23"
    ):
        from_onnx(path)


def test_beyond_the_limit_of_one_file_weights_go_beside(
    model: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the limit lowered, as two gigabytes take minutes; the caller's model must keep its weights."""
    inline, _ = _external(model, tmp_path / "here")
    before = inline.SerializeToString(deterministic=True)
    monkeypatch.setattr(saving, "_PROTOBUF_LIMIT_BYTES", 4096)
    path = tmp_path / "large.onnx"
    save_model(inline, path)
    assert inline.SerializeToString(deterministic=True) == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["here", "large.onnx", "large.onnx.data"]
    assert path.stat().st_size < 4096
    onnx.checker.check_model(str(path))
    assert structural_hash(from_onnx(path)) == structural_hash(from_onnx(inline))
    feeds = {"x": np.ones((2, 3), np.float32)}
    expected, actual = (run(open_session(m, "as_written"), feeds)["y"] for m in (inline, path))
    assert np.array_equal(expected, actual)


def test_import_refers_to_weights_and_does_not_copy_them(model: Build) -> None:
    before = model(
        [helper.make_node("Add", ["x", "w"], ["y"])],
        [floats("x", 3)],
        [floats("y", 3)],
        weights={"w": np.ones(3, np.float32)},
    )
    graph = from_onnx(before)
    payload = next(n.payload for n in graph.nodes.values() if n.op == "Weight")
    assert isinstance(payload, InitializerPayload)
    before.graph.initializer[0].raw_data = np.full(3, 9, np.float32).tobytes()
    assert payload.array().tolist() == [9, 9, 9]


def test_load_model_leaves_external_data_outside(model: Build, tmp_path: Path) -> None:
    _, path = _external(model, tmp_path / "here")
    assert all(t.data_location == TensorProto.EXTERNAL for t in load_model(path).graph.initializer)


@pytest.fixture
def nothing_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if any two weights were more than a protobuf message takes, as two gigabytes take minutes."""
    monkeypatch.setattr(external_data, "MESSAGE_LIMIT_BYTES", 4096)
    monkeypatch.setattr(saving, "_PROTOBUF_LIMIT_BYTES", 4096)


@pytest.mark.usefixtures("nothing_fits")
def test_weights_that_fit_into_no_message_stay_in_their_file(
    model: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The export refers to them wherever it is used; only what it computes anew (w + v) it holds itself."""
    inline, path = _external(model, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    graph = from_onnx(Path("model.onnx"))
    monkeypatch.chdir("/")
    after = to_onnx(graph)
    check_model(after)
    held = {t.data_location == TensorProto.DEFAULT: len(t.raw_data) for t in after.graph.initializer}
    assert held == {True: 4800, False: 0}
    feeds = {"x": np.random.default_rng(1).standard_normal((2, 3)).astype(np.float32)}
    expected, actual = (run(open_session(m, "as_written"), feeds)["y"] for m in (inline, after))
    assert np.array_equal(expected, actual)
    save_model(after, tmp_path / "copy.onnx")
    (path.parent / "weights.bin").unlink()
    assert np.array_equal(expected, run(open_session(tmp_path / "copy.onnx", "as_written"), feeds)["y"])
    onnx.checker.check_model(tmp_path / "copy.onnx")


@pytest.mark.usefixtures("nothing_fits")
def test_a_model_replaces_the_one_that_it_refers_to(model: Build, tmp_path: Path) -> None:
    """`rlflow optimise m.onnx -o m.onnx`, twice: the second time the weights' own file is replaced."""
    inline, path = _external(model, tmp_path / "here")
    feeds = {"x": np.ones((2, 3), np.float32)}
    expected = run(open_session(inline, "as_written"), feeds)["y"]
    for _ in range(2):
        save_model(to_onnx(from_onnx(path)), path)
        assert np.array_equal(expected, run(open_session(path, "as_written"), feeds)["y"])
    assert (path.parent / "model.onnx.data").stat().st_size == 2 * 4800  # w and w + v


@pytest.mark.parametrize("dtype", ELEMENT_TYPES)
def test_values_in_a_file_are_those_in_the_model(tmp_path: Path, dtype: str) -> None:
    """At an odd place in the file, too, where a mapping is not aligned."""
    inside = numpy_helper.from_array(whole_numbers(dtype), "w")
    outside = TensorProto(name="w", data_type=inside.data_type, dims=[2, 3], data_location=TensorProto.EXTERNAL)
    (tmp_path / "w.bin").write_bytes(b"\1" + inside.raw_data)
    for key, value in {"location": "w.bin", "offset": "1"}.items():
        outside.external_data.add(key=key, value=value)
    external_data.refer(outside, [tmp_path])
    payload = InitializerPayload(outside)
    payload.check()
    assert payload.array().tobytes() == InitializerPayload(inside).array().tobytes()
    assert payload.array().dtype == whole_numbers(dtype).dtype
    assert payload.digest == InitializerPayload(inside).digest


@pytest.mark.usefixtures("nothing_fits")
def test_weights_of_subgraphs_are_read_in_beside_others_that_stay_outside(
    model: Build, survives: Survives, tmp_path: Path
) -> None:
    """ONNX Runtime has nowhere to look for them."""
    weight = numpy_helper.from_array(np.arange(2000, dtype=np.float32), "inner")
    body = helper.make_graph([helper.make_node("Add", ["sum", "inner"], ["t"])], "b", [], [floats("t", 2000)], [weight])
    nodes = [
        helper.make_node("Add", ["x", "w"], ["sum"]),
        helper.make_node("If", ["c"], ["y"], then_branch=body, else_branch=body),
    ]
    condition = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    inline = model(nodes, [condition, floats("x", 2000)], [floats("y", 2000)], weights={"w": np.ones(2000, np.float32)})
    path = tmp_path / "model.onnx"
    onnx.save_model(
        inline, path, save_as_external_data=True, location="w.bin", size_threshold=0, convert_attribute=True
    )
    after = survives(path)
    held = {tensor.name: tensor.data_location for tensor in external_data.tensors_of(after)}
    assert held == {"w": TensorProto.EXTERNAL, "inner": TensorProto.DEFAULT}


def test_weights_that_two_models_share_are_written_once(model: Build, tmp_path: Path) -> None:
    """Those of the same name and data; one of the same name and other data is written, and both models stay right."""
    weights = {"w": np.arange(1200.0, dtype=np.float32), "v": np.ones(1200, np.float32), "u": np.ones(2, np.float32)}
    nodes = [helper.make_node("Add", ["x", "w"], ["s"]), helper.make_node("Mul", ["s", "v"], ["y"])]
    first = model(nodes, [floats("x", 1200)], [floats("y", 1200)], weights=weights)
    second = model(nodes, [floats("x", 1200)], [floats("y", 1200)], weights=weights | {"v": 2 * weights["v"]})
    original = external_data.write_mapped(first, tmp_path / "first.onnx")
    candidate = external_data.write_mapped(second, tmp_path / "second.onnx", like=original)
    assert (tmp_path / "first.weights").stat().st_size == 2 * 4800
    assert (tmp_path / "second.weights").stat().st_size == 4800
    feeds = {"x": np.ones(1200, np.float32)}
    for path, inline in ((original, first), (candidate, second)):
        outcome = [run(open_session(each, "deployed"), feeds)["y"] for each in (path, inline)]
        assert np.array_equal(*outcome)
        assert outcome[0].any()
