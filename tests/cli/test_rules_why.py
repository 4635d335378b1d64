"""`rlflow rules why` as a person meets it."""

import json

import pytest
from support.onnx_models import save

from rlflow import schemas
from rlflow.schemas.rules import RulesWhy


@pytest.fixture
def loop(tmp_path):
    return save(tmp_path / "loop.onnx", "loop")


def test_places_and_reasons_in_words(rlflow, loop) -> None:
    """The model's two last products are a match; before them, and in the body, one product stands alone."""
    code, out, err = rlflow("rules", "why", "associate-weights", loop)
    assert (code, err) == (0, "")
    first, *assumes = out.splitlines()[:3]
    assert first == "associate-weights  MatMul(MatMul(x, v), w) => MatMul(x, MatMul(v, w))"
    assert [line.startswith("It assumes that ") for line in assumes] == [True, True]
    assert out.splitlines()[3:] == [
        "It matches at loop/contract/MatMul.",
        "    2 x  where the rule wants MatMul, there is an input of the graph",
        "         at loop/drive/MatMul, body/MatMul in the body of loop/Loop",
        "    1 x  where the rule wants MatMul, there is Loop",
        "         at loop/expand/MatMul",
    ]


def test_the_document_says_the_same(rlflow, loop) -> None:
    code, out, _ = rlflow("rules", "why", "associate-weights", loop, "--json")
    document = json.loads(out)
    schemas.validate(RulesWhy, document)
    assert code == 0
    assert document["rule"]["name"] == "associate-weights"
    assert [place["root"] for place in document["matches"]] == ["loop/contract/MatMul"]
    assert {place["graph"] for obstacle in document["near"] for place in obstacle["places"]} == {
        "main graph",
        "the body of loop/Loop",
    }


def test_what_the_model_lacks_is_named(rlflow, loop) -> None:
    out = rlflow("rules", "why", "fold-batch-normalisation", loop)[1]
    assert "It matches nowhere." in out
    assert "The model has no BatchNormalization and no Conv." in out
    assert "Nothing else comes near" in out


def test_dynamic_sizes_can_be_given(rlflow, tmp_path) -> None:
    """A rule that holds at some sizes alone matches once they are known."""
    settings = {"layers": 1, "hidden": 32, "heads": 2, "intermediate": 64, "sequence": "n", "vocabulary": 50}
    model = save(tmp_path / "bert.onnx", "bert", **settings, positions=16)
    shapes = [part for name in ("input_ids", "token_type_ids", "attention_mask") for part in ("--shape", f"{name}=1x8")]
    asked = ("rules", "why", "linear-to-gemm", model, "--json")
    open_, known = (json.loads(rlflow(*asked, *more)[1]) for more in ((), shapes))
    assert len(open_["matches"]) < len(known["matches"])
    at_any_size = "what it writes has another type than what it replaces, is empty, or holds not at every size"
    assert [at_any_size in {each["reason"] for each in told["near"]} for told in (open_, known)] == [True, False]


@pytest.mark.parametrize("command", ["why", "show"])
def test_a_name_that_is_misspelled(refused, loop, command) -> None:
    model = (loop,) if command == "why" else ()
    assert "did you mean linear-to-gemm" in refused("rules", command, "linear-to-gem", *model)
    assert "`rlflow rules list` shows all" in refused("rules", command, "xyzzy", *model)
