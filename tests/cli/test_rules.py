"""`rlflow rules` as a person meets it."""

import json

import pytest

from rlflow import schemas
from rlflow.errors import InputError
from rlflow.rules.library import load
from rlflow.rules.portability import gains_of
from rlflow.schemas.rules import RuleRecord, RulesDiff, RulesGenerate, RulesList, RulesRecall, RulesVerify


@pytest.mark.exhaustive
def test_one_family_alone_is_enumerated(rlflow, tmp_path):
    path = tmp_path / "library.jsonl"
    code, out, _ = rlflow("rules", "generate", "--family", "join=1", "-o", path, "--json")
    assert code == 0
    document = json.loads(out)
    schemas.validate(RulesGenerate, document)
    assert set(document["families"]) == {"join"}
    assert path.exists()


def test_rules_are_listed_shown_and_verified(rlflow):
    code, out, _ = rlflow("rules", "list", "--json")
    document = json.loads(out)
    schemas.validate(RulesList, document)
    assert code == 0
    assert len(document["rules"]) >= 40
    code, out, _ = rlflow("rules", "show", "merge-3-matmuls")
    assert code == 0
    assert "MatMul(x, w0)" in out
    assert "verified at" in out


def test_a_library_is_written_as_a_page_or_refused(rlflow, tmp_path):
    """A refusal leaves nothing behind."""
    page = tmp_path / "pages" / "rules.html"
    assert rlflow("rules", "list", "-o", page)[0] == 0
    assert load().rules[0].id in page.read_text()
    for wrong in (("-o", tmp_path / "rules.txt"), ("-o", tmp_path / "other.html", "--json")):
        code, _, err = rlflow("rules", "list", *wrong)
        assert code == InputError.exit_code
        assert "leave out" in err or "let it end in .html" in err
    assert [path.name for path in tmp_path.iterdir()] == ["pages"]


def test_every_rule_can_be_shown_as_a_document_and_as_a_picture(rlflow, tmp_path):
    for rule in load().rules:
        schemas.validate(RuleRecord, rule.record())
    for rule in json.loads(rlflow("rules", "list", "--json")[1])["rules"][::70]:
        code, out, _ = rlflow("rules", "show", rule["id"], "--json")
        assert code == 0
        shown = json.loads(out)
        text = shown.pop("declaration", "")
        assert shown.pop("measured", None) == gains_of(load().get(rule["id"]))
        assert shown == load().get(rule["id"]).record()
        assert (f'"{rule["name"]}"' in text) == ("declared_at" in shown)
    picture = tmp_path / "rule.svg"
    assert rlflow("rules", "show", "merge-3-matmuls", "--picture", picture)[0] == 0
    drawn = picture.read_text()
    assert drawn.startswith("<?xml")
    assert drawn.count("<path") > 12  # six operators and variables, three outputs, and what connects them


def test_a_library_is_verified_again_and_compared_with_another(rlflow, tmp_path):
    """The other library lacks one rule and has a second one under a new certificate."""
    from dataclasses import replace

    from rlflow.rules import library
    from rlflow.rules.library import Library
    from rlflow.rules.verification.verify import VerificationConfig, certified

    shipped = library.load()
    dropped, again, kept = shipped.rules[:3]
    other = certified(replace(again, certificate=None), VerificationConfig(shapes=16, seed=5))
    Library((other, kept)).save(tmp_path / "few.jsonl")
    code, out, _ = rlflow("rules", "verify", "--library", tmp_path / "few.jsonl", "--json")
    report = json.loads(out)
    schemas.validate(RulesVerify, report)
    assert code == 0
    assert report["rules_verified"] == 2
    Library((dropped, again, kept)).save(tmp_path / "more.jsonl")
    code, out, _ = rlflow("rules", "diff", tmp_path / "few.jsonl", tmp_path / "more.jsonl", "--json")
    document = json.loads(out)
    schemas.validate(RulesDiff, document)
    assert code == 0
    assert [[rule["id"] for rule in document[key]] for key in ("added", "recertified", "removed")] == [
        [dropped.id],
        [again.id],
        [],
    ]
    assert document["unchanged"] == 1
    code, out, _ = rlflow("rules", "diff", tmp_path / "more.jsonl", tmp_path / "few.jsonl")
    assert code == 0
    assert [line.split()[:2] for line in out.splitlines()[:2]] == [["-", dropped.id], ["~", again.id]]
    assert out.splitlines()[-1] == "0 added, 1 removed, 1 recertified, 1 unchanged"


def test_rules_recall_tells_what_becomes_of_each_equation(rlflow, tmp_path):
    path = tmp_path / "foreign.txt"
    path.write_text("3: matmul(matmul(a,b),c) == matmul(a,matmul(b,c))\n9: matmul(a,b) == matmul(b,a)\n")
    code, out, _ = rlflow("rules", "recall", path, "--json")
    document = json.loads(out)
    schemas.validate(RulesRecall, document)
    assert code == 0
    assert [(e["number"], e["outcome"]) for e in document["equations"]] == [(3, "instance"), (9, "refuted")]
    assert document["totals"] == {"instance": 1, "derived": 0, "conditional": 0, "refuted": 1, "not_found": 0}
    code, out, _ = rlflow("rules", "recall", path)
    assert code == 0
    assert "the sides differ at a [" in out
    path.write_text("matmul(a,b)\n")
    code, _, err = rlflow("rules", "recall", path)
    assert code == 2
    assert "line 1" in err


OWN = """
from rlflow.rules.dsl import Rewrite, Tensor, false_control, rule
from rlflow.rules.dsl.operators import Relu, Tanh


@rule("relu-twice")
def relu_twice(x: Tensor) -> Rewrite:
    return Rewrite(Relu(Relu(x)), Relu(x))


@false_control("relu-of-tanh", of="relu-twice")
def relu_of_tanh(x: Tensor) -> Rewrite:
    return Rewrite(Relu(Tanh(x)), Tanh(x))
"""


def test_own_rules_are_verified_and_written(rlflow, tmp_path):
    own, written = tmp_path / "own.py", tmp_path / "own.jsonl"
    own.write_text(OWN)
    code, out, err = rlflow("rules", "verify", own, "-o", written)
    assert code == 0, err
    assert "relu-twice" in out
    assert "1 rules verified; 1 false controls refused." in out
    code, out, _ = rlflow("rules", "show", "relu-twice", "--library", written)
    assert code == 0
    assert f"declared at {own}:6" in out
    assert "def relu_twice(x: Tensor) -> Rewrite:" in out
    schemas.validate(RulesVerify, json.loads(rlflow("rules", "verify", own, "--json")[1]))


def test_refuted_rules_are_told_with_their_lines(rlflow, tmp_path):
    """Both of them, not the first alone; and a true one that is called a false control."""
    own, written = tmp_path / "own.py", tmp_path / "own.jsonl"
    false = OWN.replace("Rewrite(Relu(Relu(x)), Relu(x))", "Rewrite(Relu(Relu(x)), x)")
    own.write_text(false.replace("Rewrite(Relu(Tanh(x)), Tanh(x))", "Rewrite(Relu(Relu(Tanh(x))), Relu(Tanh(x)))"))
    code, out, err = rlflow("rules", "verify", own, "-o", written)
    assert (code, out) == (1, "")
    assert f"{own}:6: " in err
    assert "(relu-twice) is refuted" in err
    assert f"{own}:11: false control 'relu-of-tanh' is true" in err
    assert not written.exists()


def test_a_declared_rule_is_shown_with_its_place_and_its_text(rlflow):
    code, out, _ = rlflow("rules", "show", "slice-before-softmax")
    assert code == 0
    assert "declared at declared/pushdown.py:" in out
    assert '@law("slice-before-softmax", "gather-before-softmax", over=SELECTIONS)\ndef softmax(' in out
