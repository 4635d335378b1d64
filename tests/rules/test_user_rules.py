"""A user's own rules need a certificate like ours, wherever they come from."""

from dataclasses import replace
from pathlib import Path

import pytest

from rlflow.errors import CertificateError, InputError, RuleError
from rlflow.rules.library import Library
from rlflow.rules.user_rules import load_rules, verified
from rlflow.rules.verification.verify import VerificationConfig

QUICKLY = VerificationConfig(shapes=8, float_cases=1)

OWN = """
from rlflow.rules.dsl import Rewrite, Tensor, false_control, rule
from rlflow.rules.dsl.operators import Add, Mul, Neg, Relu, Sub


@rule("subtract-a-negative")
def subtract_a_negative(x: Tensor, y: Tensor) -> Rewrite:
    return Rewrite(Sub(x, Neg(Neg(Neg(y)))), Add(x, y))


@false_control("subtract-as-it-stands", of="subtract-a-negative")
def subtract_as_it_stands(x: Tensor, y: Tensor) -> Rewrite:
    return Rewrite(Sub(x, Neg(y)), Sub(x, y))
"""
FALSE = """

@rule("relu-is-odd")
def relu_is_odd(x: Tensor) -> Rewrite:
    return Rewrite(Neg(Relu(Neg(x))), Relu(x))
"""
TRUE_CONTROL = """

@false_control("sums-commute")
def sums_commute(x: Tensor, y: Tensor) -> Rewrite:
    return Rewrite(Mul(Add(x, y), 2.0), Mul(Add(y, x), 2.0))
"""


def _file(folder: Path, text: str) -> Path:
    path = folder / "own.py"
    path.write_text(text)
    return path


def test_own_rules_are_verified_and_certified(tmp_path: Path) -> None:
    path = _file(tmp_path, OWN)
    library, refused = verified(path, QUICKLY)
    (rule,) = library.rules
    assert refused == 1
    assert rule.certificate is not None
    assert (rule.family, rule.origin, rule.declared_at) == ("user", "declared", f"{path}:6")

    library.save(tmp_path / "own.jsonl")
    assert load_rules(tmp_path / "own.jsonl") == library
    assert load_rules(path).hash == library.hash
    assert load_rules(path) is load_rules(path), "a file that did not change is verified once"


def test_a_refuted_rule_is_told_with_its_line_and_a_counter_example(tmp_path: Path) -> None:
    path = _file(tmp_path, OWN + FALSE)
    line = (OWN + FALSE).splitlines().index('@rule("relu-is-odd")') + 1
    with pytest.raises(RuleError, match="relu-is-odd") as error:
        load_rules(path)
    assert str(error.value).startswith(f"{path}:{line}: ")
    assert "at shapes {'x'" in str(error.value)


def test_a_false_control_that_is_true_is_told(tmp_path: Path) -> None:
    with pytest.raises(RuleError, match="'sums-commute' is true"):
        verified(_file(tmp_path, OWN + TRUE_CONTROL), QUICKLY)


def test_a_library_without_certificates_is_refused(tmp_path: Path, library: Library) -> None:
    path = tmp_path / "own.jsonl"
    Library(verified(_file(tmp_path, OWN), QUICKLY)[0].rules).save(path)
    path.write_text(path.read_text().replace('"Add"', '"Mul"', 1))
    with pytest.raises((RuleError, CertificateError)):
        load_rules(path)


@pytest.mark.parametrize("name", ["own.txt", "own.onnx", "none.py"])
def test_other_files_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=name):
        load_rules(tmp_path / name)


def test_ours_come_first_and_theirs_that_say_the_same_are_dropped(tmp_path: Path, library: Library) -> None:
    own = verified(_file(tmp_path, OWN), QUICKLY)[0]
    assert [r.id for r in library.extended(own).rules] == [r.id for r in (*library.rules, *own.rules)]

    same = Library(tuple(replace(rule, family="user", name=f"my-{rule.name}") for rule in library.rules[:3]))
    assert not {r.id for r in same.rules} & {r.id for r in library.rules}, "the family is part of an id"
    assert library.extended(same) == library
    assert library.extended(library) == library
