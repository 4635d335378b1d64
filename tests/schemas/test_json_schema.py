"""The JSON Schema of a type admits what the type admits, says what its texts say, and how figures reproduce."""

import json
from pathlib import Path

import pytest
from experiment.documents.evaluate import Evaluate
from experiment.results import read_results
from jsonschema import Draft202012Validator
from studies.documents import document_type
from support.documents import sample
from support.every_document import EVERY

from rlflow.schemas import json_schema


@pytest.mark.parametrize("name", EVERY)
def test_it_is_a_schema_that_knows_the_keys_of_documents(name: str) -> None:
    schema = json_schema(EVERY[name])
    Draft202012Validator.check_schema(schema)
    document = sample(EVERY[name], optional=True)
    assert not list(Draft202012Validator(schema).iter_errors(document))
    assert list(Draft202012Validator(schema).iter_errors({"made": "up"}))


@pytest.mark.exhaustive
def test_every_published_document_follows_its_schema(repository: Path) -> None:
    for path in sorted((repository / "data/results").rglob("*.json")):
        schema = json_schema(document_type(path))
        assert not list(Draft202012Validator(schema).iter_errors(read_results(path))), path


def test_fields_are_described_by_the_texts_below_them() -> None:
    """Those of further keys too, and of inherited ones."""
    schema = json_schema(Evaluate)
    assert json.loads(json.dumps(schema)) == schema
    result = schema["$defs"]["Result"]["properties"]
    assert result["cost_after_ms"] == {
        "type": "number",
        "minimum": 0,
        "reproduces": "equal",
        "description": "Cost model's runtime of the best graph.",
    }
    assert schema["$defs"]["Methods"]["patternProperties"] == {".*": {"$ref": "#/$defs/Result"}}
    search = json_schema(EVERY["learned/delivered.json"])["$defs"]["Latencies"]["properties"]
    assert search["original_over_original"]["description"] == "Two timings of the same model: the noise floor."
