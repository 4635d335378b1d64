"""Every command that reads a model reads it through links, and refuses what cannot be read in the same sentence."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper
from support.conformance.commands import ran
from support.onnx_models import build_model, floats

from rlflow.cost.analytic import AnalyticCost
from rlflow.equivalence.compare import compare
from rlflow.errors import ModelFormatError
from rlflow.method import Budget
from rlflow.onnx_io import from_onnx
from rlflow.passes.onnx import dataset
from rlflow.rules.library import load
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.search.greedy import Greedy
from rlflow.trajectory import record

N = 8
SEARCH = ("--budget", "5s", "--method", "greedy", "--cost-model", "analytic")
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 512\n"


def _model() -> onnx.ModelProto:
    """Two transpositions that cancel, and two weights."""
    weights = {
        name: np.random.default_rng(len(name)).standard_normal((N, N)).astype(np.float32) for name in ("w", "vv")
    }
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0]),
        helper.make_node("Transpose", ["t"], ["u"], perm=[1, 0]),
        helper.make_node("MatMul", ["u", "w"], ["m"]),
        helper.make_node("MatMul", ["m", "vv"], ["y"]),
    ]
    return build_model(nodes, [floats("x", N, N)], [floats("y", N, N)], weights=weights)


def _saved(folder: Path) -> Path:
    folder.mkdir(parents=True)
    path = folder / "model.onnx"
    onnx.save_model(_model(), path, save_as_external_data=True, location="model.onnx_data", size_threshold=0)
    return path


@pytest.fixture(scope="module")
def trajectory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trajectory")
    graph = from_onnx(_model())
    found = Greedy(load(), Rewriter(load().rules), AnalyticCost()).optimise(graph, Budget())
    assert found.trajectory.steps
    record.save([found.trajectory], folder / "trajectory.jsonl")
    onnx.save(_model(), folder / "good.onnx")
    return folder / "trajectory.jsonl"


@pytest.fixture
def reading(trajectory: Path, tmp_path: Path) -> Callable[[Path], dict[str, tuple[str, ...]]]:
    """The command lines that read a model."""
    good = trajectory.with_name("good.onnx")

    def lines(model: Path) -> dict[str, tuple[str, ...]]:
        file, folder = str(model), tmp_path
        return {
            "show": ("show", file),
            "equivalence": ("equivalence", file, file, "--draws", "1"),
            "optimise": ("optimise", file, "-o", str(folder / "out.onnx"), *SEARCH),
            "replay": ("replay", str(trajectory), file, "-o", str(folder / "replayed.onnx")),
            "train": ("train", file, "--policy-out", str(folder / "policy")),
            "after a good one": ("equivalence", str(good), file, "--draws", "1"),
            "trained on after a good one": ("train", str(good), file, "--policy-out", str(folder / "policy")),
        }

    return lines


def _pointer_for_the_model(path: Path) -> None:
    path.write_text(POINTER)


def _pointer_for_the_data(path: Path) -> None:
    (path.parent / "model.onnx_data").write_text(POINTER)


def _half_a_download(path: Path) -> None:
    data = path.parent / "model.onnx_data"
    data.write_bytes(data.read_bytes()[:300])


def _no_data(path: Path) -> None:
    (path.parent / "model.onnx_data").unlink()


def _a_folder_for_the_data(path: Path) -> None:
    _no_data(path)
    (path.parent / "model.onnx_data").mkdir()


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _a_text(path: Path) -> None:
    path.write_text("this is no model, but a letter to a friend\n" * 20)


def _half_a_model(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _nothing(path: Path) -> None:
    path.unlink()


def _a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _data_that_lead_out(path: Path) -> None:
    data = path.parent / "model.onnx_data"
    data.rename(path.parents[1] / "elsewhere")
    data.symlink_to("../elsewhere")


def _offset_from_the_end(path: Path) -> None:
    _with_entry(path, "offset", "-1")


def _huge_offset(path: Path) -> None:
    _with_entry(path, "offset", str(2**64))


def _length_of_others(path: Path) -> None:
    _with_entry(path, "length", "4")


def _with_entry(path: Path, key: str, value: str) -> None:
    model = onnx.load(path, load_external_data=False)
    next(entry for entry in model.graph.initializer[1].external_data if entry.key == key).value = value
    path.write_bytes(model.SerializeToString())


BROKEN: dict[Callable[[Path], None], str] = {
    _pointer_for_the_model: "{path} is a Git LFS pointer, not the file itself: run `git lfs pull`",
    _pointer_for_the_data: "'model.onnx_data' is a Git LFS pointer, not the data themselves: run `git lfs pull`",
    _half_a_download: "its data would end at byte 512 of 'model.onnx_data', which has 300: get the whole file",
    _no_data: "there is no file 'model.onnx_data', where its data should be: download it, or put it there",
    _a_folder_for_the_data: "/model.onnx_data' is a folder, but should be the file with its data",
    _empty: "{path} is not an ONNX model: it holds no graph or names no opset",
    _a_text: "{path} is not an ONNX model, or is truncated",
    _half_a_model: "{path} is not an ONNX model, or is truncated",
    _a_folder: "{path} is a folder, not an ONNX file",
    _nothing: "there is no file {path}",
    _a_pipe: "{path} is no regular file: name an ONNX file",
    _data_that_lead_out: "outside the model's folder: copy that file there if you trust it",
    _offset_from_the_end: "the offset of its data is '-1', but must be a whole number of at least 0",
    _huge_offset: f"its data would end at byte {2**64 + 4 * N * N} of 'model.onnx_data', which has 512",
    _length_of_others: f"its data has a size of 4 instead of {4 * N * N}",
}


@pytest.mark.parametrize("damage", BROKEN)
def test_what_cannot_be_read_is_refused_by_all_in_one_sentence(
    tmp_path: Path, reading: Callable[[Path], dict[str, tuple[str, ...]]], damage: Callable[[Path], None]
) -> None:
    path = _saved(tmp_path / "model")
    damage(path)
    said = {name: ran(*line) for name, line in reading(path).items()}
    assert {name: (answer.code, answer.escaped, answer.out) for name, answer in said.items()} == {
        name: (2, "", "") for name in said
    }
    (sentence,) = {answer.err for answer in said.values()}
    assert sentence.startswith("rlflow: ")
    assert sentence.count("\n") == 1
    assert BROKEN[damage].format(path=path) in sentence
    assert str(path) in sentence
    assert {file.name for file in tmp_path.iterdir()} <= {"model", "elsewhere"}, "something half-written was left"


def _in_the_cache(folder: Path) -> Path:
    path = _saved(folder / "blobs")
    path.rename(folder / "blobs/0a1b")
    (folder / "blobs/model.onnx_data").rename(folder / "blobs/2c3d")
    snapshot = folder / "snapshots/1f2e"
    snapshot.mkdir(parents=True)
    (snapshot / "model.onnx").symlink_to("../../blobs/0a1b")
    (snapshot / "model.onnx_data").symlink_to("../../blobs/2c3d")
    return snapshot / "model.onnx"


def _by_a_link_to_the_cache(folder: Path) -> Path:
    (folder / "mine.onnx").symlink_to(_in_the_cache(folder / "cache"))
    return folder / "mine.onnx"


def _in_a_linked_folder(folder: Path) -> Path:
    _saved(folder / "real")
    (folder / "link").symlink_to("real")
    return folder / "link/model.onnx"


@pytest.mark.parametrize(
    ("layout", "written"),
    [
        (_in_the_cache, {}),
        (_in_a_linked_folder, {}),
        (_by_a_link_to_the_cache, {"optimise": "out.onnx", "replay": "replayed.onnx"}),
    ],
)
def test_a_model_behind_links_is_read_by_all(
    tmp_path: Path,
    reading: Callable[[Path], dict[str, tuple[str, ...]]],
    layout: Callable[[Path], Path],
    written: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Named by a relative path. What is written needs no other file, and computes what the model in memory does."""
    monkeypatch.chdir(tmp_path)
    path = layout(tmp_path / "models").relative_to(tmp_path)
    lines = reading(path)
    for name in ("show", "equivalence", *written):
        answer = ran(*lines[name])
        assert (answer.code, answer.escaped) == (0, ""), answer
    for file in written.values():
        report = compare(_model(), tmp_path / file, draws=1)
        assert report.equivalent, report.summary
        assert report.non_vacuous_draws == 1


def test_passes_read_a_model_behind_links_and_refuse_one_that_leads_out(tmp_path: Path) -> None:
    out = tmp_path / "out.onnx"
    answer = ran("passes", "apply", str(_in_the_cache(tmp_path / "cache")), "onnxoptimizer", "-o", str(out))
    assert (answer.code, answer.escaped) == (0, "")
    assert compare(_model(), out, draws=1).equivalent
    path = _saved(tmp_path / "model")
    _data_that_lead_out(path)
    with pytest.raises(ModelFormatError, match="outside the model's folder"):
        dataset.read(str(path))
