"""The generator: it truly enumerates, keeps what is new, and cannot be poisoned (research notes on rules, 1.4)."""

from dataclasses import replace
from pathlib import Path

import pytest
from support.generation import SMALL, equations, with_leaves

from rlflow.errors import InputError, RuleError
from rlflow.ir.tensor_type import TensorType
from rlflow.rules import pattern
from rlflow.rules.certificate import Certificate
from rlflow.rules.library import Library, load
from rlflow.rules.pattern import parse
from rlflow.rules.rule import rule_from_json
from rlflow.rules.verification.verify import VerificationConfig, certified, verify
from rlflow.synthesis import generate as generation
from rlflow.synthesis import prune
from rlflow.synthesis.enumeration import Enumeration, Leaf, Pair, enumerate_pairs
from rlflow.synthesis.families import FAMILIES, SHIPPED
from rlflow.synthesis.generate import (
    TRIALS,
    GenerationReport,
    GeneratorConfig,
    LibraryConfig,
    build_library,
    generate,
    write_library,
)

ALGEBRA_2 = GeneratorConfig(FAMILIES["algebra"], max_operators=2)


def with_operators(*operators: str) -> GeneratorConfig:
    """A family of few tensors."""
    choices = tuple(choice for choice in FAMILIES["algebra"].operators if choice.op in operators)
    family = replace(SMALL.family, name="-".join(operators), operators=choices, leaves=SMALL.family.leaves[:2])
    return replace(SMALL, family=family)


@pytest.fixture(scope="module")
def full() -> GenerationReport:
    return generate(ALGEBRA_2)


@pytest.mark.slow
def test_one_seed_one_library(small: GenerationReport) -> None:
    again = generate(SMALL)
    assert [r.to_json() for r in again.rules] == [r.to_json() for r in small.rules]
    assert replace(again, cpu_s=0.0) == replace(small, cpu_s=0.0)


def test_another_seed_finds_the_same_rules(small: GenerationReport) -> None:
    assert equations(generate(replace(SMALL, seed=7))) == equations(small)


def test_known_identities_are_found(full: GenerationReport) -> None:
    expected = {
        "Add(a, b) => Add(b, a)",
        "Mul(a, b) => Mul(b, a)",
        "Relu(Relu(a)) => Relu(a)",
        "Transpose[perm=p1](Transpose[perm=p0](a)) => a  if is_identity(compose(p0, p1))",
        "MatMul(MatMul(a, b), c) => MatMul(a, MatMul(b, c))",
        "MatMul(a, MatMul(b, c)) => MatMul(MatMul(a, b), c)",
        "MatMul(a, Add(b, c)) => Add(MatMul(a, b), MatMul(a, c))",
        "Mul(a, Add(b, c)) => Add(Mul(a, b), Mul(a, c))",
        "Transpose[perm=p0](Relu(a)) => Relu(Transpose[perm=p0](a))",
        "Transpose[perm=p0](MatMul(a, b)) => MatMul(Transpose[perm=p0](b), Transpose[perm=p0](a))"
        "  if swaps_last_two(p0)",
    }
    assert expected <= equations(full)


def test_true_rules_are_not_tied_to_matrices(full: GenerationReport) -> None:
    """Activations of a transformer have rank 3 and 4: elementwise rules are for any shape, products for any batch."""
    for rule in full.rules:
        operators = {node.op for node in pattern.operators(*rule.source, *rule.target)}
        templates = [spec.shape for spec in rule.variables.values()]
        if "MatMul" not in operators:
            assert not templates, rule.equation()
        else:
            assert any(shape and str(shape[0]).startswith("...") for shape in templates), rule.equation()


def test_the_report_adds_up(full: GenerationReport) -> None:
    assert full.enumerated > full.classes > full.duplicate_pairs > full.after_renaming > full.after_instance > 0
    assert full.kept == len(full.rules) == len({r.id for r in full.rules})
    assert "rules" not in full.to_json()


def test_a_dimension_without_a_number_is_refused() -> None:
    with pytest.raises(InputError, match="'q'"):
        generate(with_leaves(Leaf("a", ("q",))))


def test_no_rule_contains_its_own_source(full: GenerationReport) -> None:
    """Relu(x) => Relu(Relu(x)) is true and could be applied for ever."""
    for rule in full.rules:
        assert not prune.contains(rule.target[0], rule.source[0])


def test_only_certified_rules_prune() -> None:
    known = prune.KnownRules()
    rule = rule_from_json("unverified", "test", [["Relu", ["Relu", "x"]]], [["Relu", "x"]])
    with pytest.raises(RuleError, match="unverified"):
        known.add(rule)
    types = {"x": TensorType("float32", (2,))}
    sides = parse(["Relu", ["Relu", "x"]]), parse(["Relu", "x"])
    assert not known.explain(*sides, types)
    known.add(certified(rule, VerificationConfig()))
    assert known.explain(*sides, types)


def test_a_false_equality_is_refuted_and_prunes_nothing(
    monkeypatch: pytest.MonkeyPatch, small: GenerationReport
) -> None:
    """Were the search to report a = Relu(a), which derives all else, nothing else may get lost."""

    def with_accident(*arguments: object) -> Enumeration:
        found = enumerate_pairs(*arguments)  # type: ignore[arg-type]
        accident = Pair(parse("a"), parse(["Relu", "a"]))
        return replace(found, pairs=(accident, *found.pairs))

    monkeypatch.setattr(generation, "enumerate_pairs", with_accident)
    report = generate(SMALL)
    assert report.refuted == 1
    assert equations(report) == equations(small)


def test_shapes_are_no_product_order(library: Library) -> None:
    """Verification in product order would stop at dimensions of 1, where T(a) = a and products commute."""
    shape = {"shape": ["m", "n"]}
    square = {"shape": ["n", "n"]}
    transpose = [["Transpose", {"perm": [1, 0]}, "a"]]
    few = VerificationConfig(shapes=4)
    for seed in range(20):
        config = replace(few, seed=seed)
        assert not isinstance(verify(rule_from_json("t", "test", transpose, ["a"], {"a": square}), config), Certificate)
        assert not isinstance(verify(rule_from_json("t", "test", transpose, ["a"], {"a": shape}), config), Certificate)


def test_general_rules_come_before_their_instances(full: GenerationReport) -> None:
    """T(a + a) = T(a) + T(a) is an instance of T(a + b) = T(a) + T(b), and must not be kept beside it."""
    written = equations(full)
    assert "Transpose[perm=p0](Add(a, b)) => Add(Transpose[perm=p0](a), Transpose[perm=p0](b))" in written
    assert not {e for e in written if e.startswith("Transpose") and "Add(a, a)" in e}
    types = {name: TensorType("float32", (2, 3)) for name in "ab"}
    pairs = tuple(Pair(parse(["Relu", one]), parse(["Relu", ["Relu", one]])) for one in (["Add", "a", "a"], "a"))
    (first, second) = generation.distinct(pairs, types)
    assert pattern.show(first.other) == "Relu(Relu(a))"
    assert pattern.show(second.other) == "Relu(Relu(Add(a, a)))"


def test_rules_that_others_imply_later_are_not_thrown_away(full: GenerationReport) -> None:
    """A minimal basis proves as much, but a bounded search with it reaches less: both ways round a product stay,
    although each follows from the other and from associativity.
    """
    scale = {e for e in equations(full) if "elements" in e and "MatMul" in e and "Mul(" in e}
    assert {e.partition(" =>")[0] for e in scale} >= {
        "MatMul(a, Mul(b, c))",
        "MatMul(Mul(a, b), c)",
        "Mul(a, MatMul(b, c))",
    }


@pytest.mark.exhaustive
def test_the_shipped_library_is_what_the_generator_builds(library: Library, tmp_path: Path) -> None:
    built, report = build_library(LibraryConfig.of(SHIPPED, TRIALS, 0, VerificationConfig()), tmp_path)
    assert [(r.id, r.name, r.origin) for r in built.rules] == [(r.id, r.name, r.origin) for r in library.rules]
    assert report.declared + sum(found.kept for found in report.families.values()) >= len(library.rules)


def test_a_declared_rule_keeps_its_name(library: Library) -> None:
    names = [r.name for r in library.rules]
    assert "cancel-transposes" in names
    assert not any(n.startswith("Transpose[perm=p1](Transpose[perm=p0](a)) => a") for n in names)
    assert len({r.id.removeprefix(r.family) for r in library.rules}) == len(library.rules)


@pytest.mark.slow
def test_write_library(tmp_path: Path) -> None:
    path = tmp_path / "library.jsonl"
    report = write_library(path, LibraryConfig(families=(SMALL,), declared=()))
    assert report.declared == 0
    assert len(load(path).rules) == report.families["small"].kept > 0
    assert [p.name for p in tmp_path.iterdir()] == ["library.jsonl"]


@pytest.mark.slow
def test_a_family_adds_only_what_does_not_follow_from_those_before(tmp_path: Path) -> None:
    """Not vacuous: alone, the second family has rules, and with Relu, which the first lacks, some are new."""
    without, whole = with_operators("Add", "Mul"), with_operators("Add", "Mul", "Relu")
    again = replace(without, family=replace(without.family, name="again"))

    def built(*families: GeneratorConfig) -> set[str]:
        library, _ = build_library(LibraryConfig(families=families, declared=()), tmp_path)
        return {rule.equation() for rule in library.rules}

    first, second = built(without), built(whole)
    assert len(first & second) > 3
    assert built(without, again) == first
    assert built(without, whole) - first == {e for e in second if "Relu" in e}


def test_a_verifier_that_accepts_a_false_rule_stops_everything(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    true = rule_from_json("true", "control", [["Relu", ["Relu", "x"]]], [["Relu", "x"]])
    monkeypatch.setattr("rlflow.rules.declared.catalogue.false_controls", lambda: [true])
    with pytest.raises(RuleError, match="which is false"):
        build_library(LibraryConfig(families=(), declared=()), tmp_path)


@pytest.mark.exhaustive
def test_three_operators() -> None:
    report = generate(GeneratorConfig(FAMILIES["algebra"], max_operators=3))
    assert report.refuted <= report.after_instance // 10
    assert report.kept > generate(GeneratorConfig(FAMILIES["algebra"], max_operators=2)).kept
