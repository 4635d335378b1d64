"""Certificates made anew: those that no longer hold, and nothing else in the library."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rlflow.cli.main import app
from rlflow.errors import CertificateError, RuleError
from rlflow.ops.registry import OPERATORS
from rlflow.rules.library import SHIPPED, Library, load
from rlflow.rules.rule import rule_from_json
from rlflow.rules.verification.certify import holds, recertified
from rlflow.rules.verification.verify import VerificationConfig

QUICKLY = VerificationConfig(shapes=4, float_cases=1)


@pytest.fixture
def few(library: Library) -> Library:
    """Two rules of products and one of a Softmax."""
    softmax = next(rule for rule in library.rules if rule.certificate and "Softmax" in rule.certificate.semantics)
    return library.select(["merge-2-matmuls", softmax.id, "scale-into-weight"])


def test_what_holds_is_left_as_it_is(few: Library) -> None:
    assert recertified(few, QUICKLY) == few


def test_exactly_the_rules_of_a_changed_operator_are_verified_again(
    few: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The change leaves the rules true: a type rule that asks the old one.

    The others are the very objects that they were, and the new certificate has the figures of a quick verification.
    """
    old = OPERATORS["Softmax"]
    asked = replace(old, infer=lambda attributes, types: old.infer(attributes, types))
    monkeypatch.setitem(OPERATORS, "Softmax", asked)
    assert [holds(rule) for rule in few.rules] == [True, False, True]
    after = recertified(few, QUICKLY)
    assert all(map(holds, after.rules))
    assert after.rules[0] is few.rules[0]
    assert after.rules[2] is few.rules[2]
    certificate = after.rules[1].certificate
    assert certificate is not None
    assert certificate.float_cases == 1
    assert replace(after.rules[1], certificate=None) == replace(few.rules[1], certificate=None)


def test_a_rule_that_became_false_is_refused_with_its_counter_example() -> None:
    false = rule_from_json("squared", "algebra", [["Neg", "x"]], ["x"], {})
    with pytest.raises(RuleError, match=r"squared.*is refuted"):
        recertified(Library((false,)), QUICKLY)


def test_the_command_mends_a_library_of_an_older_form(tmp_path: Path, few: Library) -> None:
    """As written before semantics were computed: a number typed by hand, and the float error of some machine."""
    path = tmp_path / "old.jsonl"
    records = [rule.record() for rule in few.rules]
    older = {"semantics": "1", "max_relative_error": 1e-7}
    records[2]["certificate"] |= older
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    with pytest.raises(CertificateError, match=r"scale-into-weight.*`rlflow rules certify`"):
        load(path)
    answer = CliRunner().invoke(app, ["rules", "certify", "--library", str(path)])
    assert answer.exit_code == 0, answer.output
    assert "1 certified again, 2 unchanged" in answer.output
    assert "scale-into-weight" in answer.output
    assert load(path) == few
    shipped = {json.loads(line)["id"]: line for line in SHIPPED.read_text().splitlines()}
    assert path.read_text().splitlines() == [shipped[rule.id] for rule in few.rules]
