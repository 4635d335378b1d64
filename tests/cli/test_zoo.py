"""`rlflow zoo` as a person meets it."""

import json

import onnx

from rlflow import schemas
from rlflow.schemas.rules import ZooList


def test_zoo_models_are_listed_and_built(rlflow, tmp_path):
    code, out, _ = rlflow("zoo", "list", "--json")
    schemas.validate(ZooList, json.loads(out))
    assert code == 0
    target = tmp_path / "bert.onnx"
    small = ["layers=1", "hidden=32", "heads=2", "intermediate=64", "sequence=8", "vocabulary=20"]
    code, _, err = rlflow("zoo", "build", "bert", "-o", target, *(p for s in small for p in ("--set", s)))
    assert code == 0, err
    onnx.checker.check_model(str(target))
