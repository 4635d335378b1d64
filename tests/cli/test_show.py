"""`rlflow show`: words, text and pictures of real models, before and after."""

import onnx
import pytest
from support.pages import content_of

from rlflow import zoo

BERT = {"layers": 1, "hidden": 64, "heads": 2, "intermediate": 128, "sequence": 16, "vocabulary": 50}


@pytest.fixture
def chain(tmp_path):
    path = tmp_path / "chain.onnx"
    onnx.save(zoo.build("tiny_chain"), str(path))
    return path


@pytest.fixture
def optimised(chain, rlflow):
    path = chain.with_name("optimised.onnx")
    assert rlflow("optimise", chain, "-o", path, "--method", "greedy")[0] == 0
    return path


def test_words(rlflow, chain) -> None:
    code, out, err = rlflow("show", chain)
    assert (code, err) == (0, "")
    assert out == (
        "opset 17\n"
        "input   x: float32[32, 64]\n"
        "output  y: float32[32, 64]\n"
        "weights 0.3 MB\n"
        "\n"
        "4 operators run:\n"
        "  MatMul                   4\n"
        "\n"
        "4 layers, 2 of them unique:\n"
        "     2 x MatMul: float32[32, 256]\n"
        "     2 x MatMul: float32[32, 64]\n"
    )


def test_words_of_two_models(rlflow, chain, optimised) -> None:
    """Three products with constants become one that is made when the model is loaded: only one runs."""
    code, out, err = rlflow("show", chain, "--after", optimised)
    assert (code, err) == (0, "")
    assert "4 -> 1 operators run:\n  MatMul                   4 -> 1\n" in out
    assert "4 -> 1 layers, 2 -> 1 of them unique" in out
    assert "opset 17\n" in out, "what is the same is told once"


def test_text_can_be_read_again(rlflow, tmp_path) -> None:
    """It has no weights, so what it says in words is all that can be compared: the same for the model and its text."""
    model, text = tmp_path / "bert.onnx", tmp_path / "bert.txt"
    onnx.save(zoo.build("bert", **BERT), str(model))
    text.write_text(rlflow("show", model, "--text")[1])
    assert text.stat().st_size < model.stat().st_size / 10
    assert rlflow("show", text) == rlflow("show", model)
    assert rlflow("show", text, "--text")[1] == text.read_text()


@pytest.mark.parametrize("suffix", ["svg", "png", "pdf", "dot"])
def test_pictures(rlflow, chain, suffix) -> None:
    other = chain.with_name("other.onnx")
    onnx.save(zoo.build("conv"), str(other))
    target = chain.with_name(f"picture.{suffix}")
    code, out, err = rlflow("show", chain, "--after", other, "-o", target)
    assert (code, out, err) == (0, f"Wrote {target}.\n", "")
    start = {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF", "dot": b"digraph"}[suffix]
    assert target.read_bytes().startswith(start)


def test_a_page_of_two_models(rlflow, chain, optimised) -> None:
    """With both models' operators, what they cost, and what took the place of what."""
    target = chain.with_name("new") / "changes.html"
    target.parent.mkdir()
    code, out, err = rlflow("show", chain, "--after", optimised, "-o", target)
    assert (code, out, err) == (0, f"Wrote {target}.\n", "")
    told = content_of(target.read_text(encoding="utf-8"))
    assert [row["count"] for row in told["operators"]] == [[4, 1]]
    (saved,) = told["saved"]
    assert saved["title"].endswith(" → MatMul")
    assert saved["saved"] > 0


def test_a_page_of_a_loop_has_its_body(rlflow, tmp_path) -> None:
    model, target = tmp_path / "loop.onnx", tmp_path / "loop.html"
    onnx.save(zoo.build("loop"), str(model))
    assert rlflow("show", model, "-o", target)[0] == 0
    told = content_of(target.read_text(encoding="utf-8"))
    assert [graph["title"] for graph in told["graphs"]] == ["main graph", "the body of loop/Loop"]


def test_a_page_of_a_text(rlflow, chain) -> None:
    """It has no weights, and none are needed."""
    text, target = chain.with_suffix(".txt"), chain.with_suffix(".html")
    text.write_text(rlflow("show", chain, "--text")[1])
    assert rlflow("show", text, "-o", target)[0] == 0
    assert [row["op"] for row in content_of(target.read_text(encoding="utf-8"))["operators"]] == ["MatMul"]
