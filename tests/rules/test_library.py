"""A library that was tampered with does not load, and the message names the rule."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rlflow.errors import CertificateError, InputError, RuleError
from rlflow.rules.certificate import METHOD, check_certificate
from rlflow.rules.library import SHIPPED, Library, load
from rlflow.rules.rule import Rule
from rlflow.rules.verification.verify import VerificationConfig, certified

Corruption = Callable[[dict[str, Any]], None]


def put(path: str, value: object) -> Corruption:
    def corrupt(rule: dict[str, Any]) -> None:
        *parents, last = path.split(".")
        for parent in parents:
            rule = rule[parent]
        assert rule[last] != value, "the corruption must change something"
        rule[last] = value

    return corrupt


CORRUPTIONS = {
    "source": put("source", [["Add", ["Relu", "x"], "s"]]),
    "target": put("target", [["Relu", "x"]]),
    "condition dropped": put("where", []),
    "condition changed": put("where", [["==", ["elements", "s"], 2]]),
    "template": put("variables", {}),
    "constant": put("variables.w.constant", False),
    "id": put("id", "linear-000000000000"),
    "name": put("name", "another-name"),
    "opset": put("opset", 13),
    "origin": put("origin", "enumerated n=2 seed=0"),
    "attributes": put("attributes", {"?p": ["permutation", "x"]}),
    "shapes tested": put("certificate.shapes", 100000),
    "trials": put("certificate.trials", 64),
    "refuted": put("certificate.refuted_without_condition", 1000),
    "digest": put("certificate.digest", "0" * 64),
    "certificate dropped": put("certificate", None),
    "another verifier": put("certificate.semantics.verifier", "0" * 12),
    "another MatMul": put("certificate.semantics.MatMul", "0" * 12),
    "semantics typed by hand": put("certificate.semantics", "1"),
    "other method": put("certificate.method", "trust me"),
    "a figure added": put("certificate", {"method": METHOD, "max_relative_error": 0.0}),
}


@pytest.fixture
def written(library: Library, tmp_path: Path) -> Path:
    path = tmp_path / "library.jsonl"
    library.save(path)
    return path


def test_an_untouched_library_loads(written: Path, library: Library) -> None:
    assert load(written).hash == library.hash
    assert [r.id for r in load(written).rules] == [r.id for r in library.rules]


@pytest.mark.parametrize("corruption", CORRUPTIONS.values(), ids=CORRUPTIONS)
def test_a_corrupted_rule_is_refused_by_name(written: Path, library: Library, corruption: Corruption) -> None:
    victim = library.get("scale-into-weight")
    lines = written.read_text().splitlines()
    place = next(i for i, line in enumerate(lines) if json.loads(line)["id"] == victim.id)
    rule = json.loads(lines[place])
    corruption(rule)
    lines[place] = json.dumps(rule)
    written.write_text("\n".join(lines))
    with pytest.raises(RuleError) as refusal:
        load(written)
    assert rule["name"] in str(refusal.value)


def test_a_certificate_of_another_rule_is_refused(written: Path, library: Library) -> None:
    first, second, *_ = (json.loads(line) for line in written.read_text().splitlines())
    first["certificate"] = second["certificate"]
    written.write_text(json.dumps(first))
    with pytest.raises(CertificateError, match=first["id"]):
        load(written)


@pytest.mark.parametrize("line", ["not json", "[]", '{"name": "half a rule"}'])
def test_a_line_that_is_no_rule_is_named_by_its_number(written: Path, line: str) -> None:
    written.write_text(written.read_text() + line + "\n")
    number = len(written.read_text().splitlines())
    with pytest.raises(RuleError, match=f"line {number} "):
        load(written)


@pytest.mark.parametrize(
    ("field", "value"), [("attributes", 1), ("attributes", "x"), ("opset", None), ("declared_at", []), ("name", {})]
)
def test_a_field_of_another_kind_is_named(written: Path, field: str, value: object) -> None:
    first, *others = written.read_text().splitlines()
    written.write_text("\n".join([json.dumps({**json.loads(first), field: value}), *others]))
    with pytest.raises(RuleError, match=re.escape(f"is no rule: its {field} is {value!r}")):
        load(written)


def test_bytes_that_are_no_text_are_bad_input(written: Path) -> None:
    written.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="is no rule library"):
        load(written)


def test_a_missing_library_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="absent"):
        load(tmp_path / "absent.jsonl")


_REFUSALS = {
    "certificate dropped": "has no certificate",
    "semantics typed by hand": "has no certificate of today's form",
    "another MatMul": "another meaning of MatMul",
    "another verifier": "another meaning of verifier",
    "other method": "by another method, trust me",
    "trials": "changed after verification",
}


@pytest.mark.parametrize(("name", "reason"), _REFUSALS.items())
def test_a_refusal_says_why_and_what_to_do(written: Path, library: Library, name: str, reason: str) -> None:
    rule = library.get("scale-into-weight").to_json()
    CORRUPTIONS[name](rule)
    written.write_text(json.dumps(rule))
    with pytest.raises(CertificateError, match=reason) as refusal:
        load(written)
    assert "`rlflow rules certify`" in str(refusal.value)


def test_the_float_error_of_a_machine_is_told_but_not_written(library: Library) -> None:
    """Not vacuous: the error of this rule is above zero, and another one changes neither the line nor the digest."""
    rule = certified(library.get("scale-into-weight"), VerificationConfig())
    assert rule.certificate is not None
    assert rule.certificate.max_relative_error
    elsewhere = replace(rule, certificate=replace(rule.certificate, max_relative_error=0.5))
    assert elsewhere == rule == library.get("scale-into-weight")
    assert json.dumps(elsewhere.to_json()) == json.dumps(library.get("scale-into-weight").to_json())
    check_certificate(elsewhere)


def test_where_a_rule_is_declared_is_no_part_of_what_is_certified(library: Library) -> None:
    """A line more in the file of a declaration must not void the certificates below it."""

    class Moved(Rule):
        def to_json(self) -> dict[str, Any]:
            return super().to_json() | {"declared_at": "declared/elsewhere.py:1"}

    rule = library.get("scale-into-weight")
    moved = Moved(**{name: getattr(rule, name) for name in rule.__dataclass_fields__})
    check_certificate(moved)


def test_the_shipped_file_is_what_would_be_written(library: Library, written: Path) -> None:
    assert written.read_bytes() == SHIPPED.read_bytes()


SCRIPT = """
import sys
from rlflow.rules.library import load
count = len(load().rules)
heavy = ("onnx", "onnxruntime", "torch", "rlflow.rules.declared", "rlflow.rules.dsl", "rlflow.rules.verification")
print(count, sorted(name for name in sys.modules if name.startswith(heavy)))
"""


def test_to_load_a_library_imports_neither_declarations_nor_onnx_runtime() -> None:
    """In a process of its own: in this one, other tests have imported everything."""
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    count, imported = done.stdout.split(maxsplit=1)
    assert imported == "[]\n"
    assert int(count) >= 715
