"""What was measured of rules in several runtimes: read as it ships, told in words, and used for what is left out."""

import json
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from rlflow.errors import RLFlowError
from rlflow.rules import portability
from rlflow.rules.library import Library
from rlflow.rules.portability import FILE, gainless_in, gains_of, in_words
from rlflow.schemas import validate
from rlflow.schemas.portability import Portability, portable
from rlflow.show.rules_page import rule_content


def gain(decision: str, ratio: float, interval: list[float] | None = None) -> dict[str, Any]:
    figures = {"ratio": ratio, "interval": interval, "before_ms": ratio, "after_ms": 1.0, "rounds": 4}
    return {"decision": decision, **figures}


def row(portable: str, gains: Mapping[str, Any], refused: Mapping[str, str] = {}) -> dict[str, Any]:
    about = {"name": "a rule", "graph": "bert_tiny", "operators": "MatMul float32[1, 2]"}
    return {**about, "portable": portable, "gains": gains, "refused": refused}


ROWS = [
    row("portable", {"deployed": gain("faster", 1.21, [1.2, 1.22]), "openvino": gain("faster", 1.1)}),
    row("partly", {"deployed": gain("faster", 1.21), "openvino": gain("same", 1.0)}),
    row("partly", {"deployed": gain("faster", 1.21)}, {"openvino": "no such operator"}),
    row("nowhere", {"deployed": gain("slower", 0.8), "openvino": gain("same", 1.0)}),
    row("undecided", {"deployed": gain("undecided", 1.01), "openvino": gain("faster", 1.3)}),
]


@pytest.fixture
def rules(library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Library]:
    """The first rules of the library, of which each has one of the rows."""
    first = Library(library.rules[: len(ROWS)])
    document = {
        "processor": "some-processor",
        "threads": 1,
        "runtimes": {"deployed": "ONNX Runtime 1", "openvino": "OpenVINO 2"},
        "load": [0.0, 1.0],
        "rules": {rule.id: row for rule, row in zip(first.rules, ROWS, strict=True)},
    }
    validate(Portability, document)
    (tmp_path / FILE).write_text(json.dumps(document))
    monkeypatch.setattr(resources, "files", lambda package: tmp_path)
    portability._shipped.cache_clear()
    yield first
    portability._shipped.cache_clear()


def test_a_rule_says_in_which_runtimes_it_gains(rules: Library) -> None:
    words = [in_words(rule) for rule in rules.rules]
    assert words[0] == (
        "in bert_tiny on some-processor: 1.21 times as fast in ONNX Runtime 1 (1.20 to 1.22), 1.10 times as fast in "
        "OpenVINO 2; its gain is portable"
    )
    assert words[1].endswith("it gains in ONNX Runtime 1 alone")
    assert "refused by OpenVINO 2; it gains in ONNX Runtime 1 alone" in words[2]
    assert words[3].endswith("by itself it gains nothing there")
    assert words[4].endswith("timing did not decide whether its gain is portable")
    assert f"Measured {words[0]}." in rule_content(rules.rules[0])["notes"]


def test_of_a_rule_that_was_not_measured_nothing_is_said(rules: Library, library: Library) -> None:
    other = library.rules[len(ROWS)]
    assert (gains_of(other), in_words(other)) == (None, "")
    assert not [note for note in rule_content(other)["notes"] if note.startswith("Measured")]


def test_rules_that_gain_elsewhere_alone_are_known_by_setting(rules: Library) -> None:
    ids = [rule.id for rule in rules.rules]
    assert gainless_in("openvino") == {ids[1], ids[2]}
    assert gainless_in("deployed") == frozenset()
    assert gainless_in("another") == frozenset()


def test_a_row_that_contradicts_its_decisions_is_refused(rules: Library) -> None:
    document = {
        **{"processor": "some-processor", "threads": 1, "runtimes": {"deployed": "ONNX Runtime 1"}, "load": [0.0, 1.0]},
        "rules": {"a-rule": ROWS[1] | {"portable": "portable"}},
    }
    with pytest.raises(RLFlowError, match="portable, but the decisions say partly"):
        validate(Portability, document)


def test_what_refuses_a_rewrite_gains_nothing_by_it() -> None:
    assert portable(["faster"]) == "portable"
    assert portable(["faster"], refused=1) == "partly"
    assert portable([], refused=2) == "undecided"
    assert portable(["slower"], refused=1) == "nowhere"


def test_what_ships_is_what_was_published_of_rules_that_there_are(repository: Path, library: Library) -> None:
    published = repository / "data/results/portability/metrics.json"
    shipped = repository / "src/rlflow/rules" / FILE
    assert shipped.read_bytes() == published.read_bytes()
    known = {rule.id: rule.name for rule in library.rules}
    found = json.loads(shipped.read_text())["rules"]
    assert found
    assert all(known.get(rule) == row["name"] for rule, row in found.items() if rule in known)
