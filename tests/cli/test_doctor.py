"""`rlflow doctor`: sentences, a document, exit codes, and a file only where one is asked for."""

import json

import onnx
import pytest
from support.small_models import dense_model
from support.subnormal_models import convolutions

from rlflow import schemas
from rlflow.equivalence.compare import compare
from rlflow.schemas.doctor import DoctorReport
from rlflow.subnormal.flush import decayed

WEIGHTS = ("--only", "subnormal weights")


@pytest.fixture
def slow(tmp_path):
    onnx.save(convolutions(), tmp_path / "slow.onnx")
    return tmp_path / "slow.onnx"


@pytest.fixture
def healthy(tmp_path):
    onnx.save(dense_model(), tmp_path / "healthy.onnx")
    return tmp_path / "healthy.onnx"


def test_a_finding_is_a_sentence_and_exit_code_1(rlflow, slow):
    before = slow.read_bytes()
    code, out, err = rlflow("doctor", slow, *WEIGHTS)
    assert (code, err) == (1, "")
    first, finding = out.splitlines()
    assert first.endswith(": one thing to do.")
    assert finding.startswith("Subnormal weights: ")
    assert "Measured here: " in finding
    assert slow.read_bytes() == before


def test_the_document_follows_its_schema(rlflow, slow, tmp_path):
    target = tmp_path / "out.onnx"
    code, out, _ = rlflow("doctor", slow, *WEIGHTS, "-o", target, "--json")
    document = json.loads(out)
    schemas.validate(DoctorReport, document)
    assert code == 0, "all of it is done in the file"
    (finding,) = document["findings"]
    assert (finding["finder"], finding["is_mended"], document["output"]) == ("subnormal weights", True, str(target))
    assert finding["latency"]["ratio"] > 0
    assert not decayed(onnx.load(target)).all
    assert compare(slow, target).equivalent


def test_a_healthy_model_exits_with_0_and_is_copied_to_the_byte(rlflow, healthy, tmp_path):
    target = tmp_path / "out.onnx"
    code, out, err = rlflow("doctor", healthy, *WEIGHTS, "-o", target)
    assert (code, err) == (0, "")
    assert "nothing to do" in out
    assert f"Wrote {target}: the model as it is." in out
    assert target.read_bytes() == healthy.read_bytes()


def test_every_finder_has_its_turn(rlflow, slow):
    code, out, err = rlflow("doctor", slow, "--budget", "60s", "--json")
    document = json.loads(out)
    schemas.validate(DoctorReport, document)
    assert (code, err) == (1, "")
    assert "subnormal weights" in {finding["finder"] for finding in document["findings"]}


@pytest.mark.parametrize(
    ("arguments", "because"),
    [
        (("missing.onnx",), "there is no file"),
        (("healthy.onnx", "--only", "hiccups"), "there is no finder 'hiccups'"),
        (("healthy.onnx", "--shape", "z=1x4"), "the model has no input 'z'"),
        (("healthy.onnx", "-o", "nowhere/out.onnx"), "there is no folder"),
    ],
)
def test_what_cannot_be_used_is_refused(refused, healthy, monkeypatch, arguments, because):
    monkeypatch.chdir(healthy.parent)
    assert because in refused("doctor", *arguments)
