"""What a certificate was made under: a change of meaning voids the rules that use it, and nothing else does."""

import ast
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from rlflow.errors import CertificateError
from rlflow.ops.registry import OPERATORS
from rlflow.rules import definitions, expression, semantics
from rlflow.rules.certificate import check_certificate
from rlflow.rules.library import SHIPPED, Library, load
from rlflow.rules.semantics import FOLLOWED
from rlflow.rules.verification.certify import holds

Command = Callable[..., CompletedProcess[str]]

TELL = "import json; from rlflow.rules import library, semantics; shown = {}\n"
TELL += "for rule in library.read(library.SHIPPED).rules: shown[rule.id] = semantics.semantics(rule)\n"
TELL += "print(json.dumps(shown))"


def used(name: str, library: Library) -> set[str]:
    """The rules with this operator, as their certificates say."""
    return {rule.id for rule in library.rules if rule.certificate and name in rule.certificate.semantics}


def void(library: Library) -> set[str]:
    return {rule.id for rule in library.rules if not holds(rule)}


def doubled(domain: Any, attributes: Any, x: Any) -> tuple[Any, ...]:
    return (domain.add(x[0], x[0]),)


def test_a_changed_evaluate_voids_the_rules_of_its_operator(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not vacuous: dozens of rules have a Softmax, and hundreds have none."""
    monkeypatch.setitem(OPERATORS, "Softmax", replace(OPERATORS["Softmax"], evaluate=doubled))
    expected = used("Softmax", library)
    assert 5 < len(expected) < len(library.rules) - 100
    assert void(library) == expected
    with pytest.raises(CertificateError, match="under another meaning of Softmax: `rlflow rules certify`"):
        load(SHIPPED)


@pytest.mark.parametrize(
    "change",
    [{"arity": (1, 3)}, {"defaults": {"axis": 0}}, {"infer": lambda attributes, types: (types[0],)}],
    ids=["arity", "defaults", "infer"],
)
def test_so_do_its_type_rule_its_arity_and_its_defaults(
    library: Library, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any]
) -> None:
    monkeypatch.setitem(OPERATORS, "Softmax", replace(OPERATORS["Softmax"], **change))
    assert void(library) == used("Softmax", library)


def _semantics(rule: Any) -> dict[str, str]:
    return rule.certificate.semantics  # type: ignore[no-any-return]


def test_how_an_operator_is_priced_and_written_voids_nothing(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    dearer = replace(OPERATORS["Softmax"], flops=lambda attributes, inputs, outputs: 1, since=14)
    monkeypatch.setitem(OPERATORS, "Softmax", dearer)
    assert not void(library)


def test_a_new_operator_and_a_new_function_void_nothing(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    doubling = replace(OPERATORS["Relu"], name="Doubled", evaluate=doubled)
    monkeypatch.setitem(OPERATORS, "Doubled", doubling)
    monkeypatch.setitem(expression.FUNCTIONS, "third", lambda values: values[2])
    assert not void(library)


def test_a_changed_function_voids_the_rules_whose_conditions_call_it(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(expression.FUNCTIONS, "compose", lambda first, second: first)
    voided = [rule for rule in library.rules if not holds(rule)]
    calling = [rule for rule in library.rules if '"compose"' in json.dumps(rule.to_json())]
    assert voided == calling
    assert 0 < len(calling) < len(library.rules) / 2
    with pytest.raises(CertificateError, match="another meaning of expressions"):
        check_certificate(voided[0])


def test_operators_of_one_factory_mean_different_things() -> None:
    """Exp and Log differ only in the function that their `evaluate` has captured."""
    digests = {name: semantics._operator(operator) for name, operator in OPERATORS.items()}
    assert len(set(digests.values())) == len(OPERATORS) > 40


def test_the_roots_of_the_verifier_are_there() -> None:
    """A root that was renamed would silently drop out of the digest."""
    for module, name in semantics._VERIFIER:
        assert definitions.module(module).definitions(name), name


def test_what_is_followed_can_be_followed(repository: Path) -> None:
    """By name: no function imports a part of this package, and no other statement at the top level binds a name."""
    files = [path for name in FOLLOWED for path in _files(repository / "src", name)]
    assert len(files) > 20
    plain = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign, ast.Expr, ast.If)
    for path in files:
        tree = ast.parse(path.read_text())
        assert {type(statement) for statement in tree.body} <= set(plain), path
        assert all(ast.unparse(s.test) == "TYPE_CHECKING" for s in tree.body if isinstance(s, ast.If)), path
        imports = {node for node in ast.walk(tree) if _imports_rlflow(node)}
        outside = {n for s in tree.body if not isinstance(s, ast.FunctionDef | ast.ClassDef) for n in ast.walk(s)}
        assert imports <= outside, path


def _imports_rlflow(node: ast.AST) -> bool:
    return isinstance(node, ast.Import | ast.ImportFrom) and "rlflow" in ast.unparse(node)


def _files(source: Path, module: str) -> list[Path]:
    path = source.joinpath(*module.split("."))
    return sorted(path.glob("*.py")) if path.is_dir() else [path.with_suffix(".py")]


class _Rewritten(ast.NodeTransformer):
    """Other docstrings everywhere, and one function that does something else first."""

    def __init__(self, changed: str) -> None:
        self.changed = changed

    def visit_Expr(self, node: ast.Expr) -> ast.Expr:
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            node.value.value = f"Said otherwise: {len(node.value.value)}."
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        self.generic_visit(node)
        if node.name == self.changed:
            node.body.insert(0, ast.parse("x = [x[0] * 2]").body[0])
        return node


@pytest.mark.slow
def test_comments_docstrings_and_formatting_void_nothing(
    repository: Path, tmp_path: Path, command: Command, library: Library
) -> None:
    """A copy of the package with other docstrings, other line breaks and no comments is asked in its own process.

    Not vacuous: it is the copy that answers, since its Softmax is doubled, which voids the rules of Softmax alone.
    """
    softmax = OPERATORS["Softmax"].evaluate
    for path in (repository / "src").rglob("*"):
        copy = tmp_path / path.relative_to(repository / "src")
        copy.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".py":
            edited = softmax.__name__ if path.stem == softmax.__module__.split(".")[-1] else ""
            copy.write_text(ast.unparse(_Rewritten(edited).visit(ast.parse(path.read_text()))))
        elif path.suffix == ".jsonl":
            copy.write_bytes(path.read_bytes())
    shown = json.loads(command(sys.executable, "-c", TELL, cwd=tmp_path, PYTHONPATH=str(tmp_path)).stdout)
    assert {rule.id for rule in library.rules if shown[rule.id] != _semantics(rule)} == used("Softmax", library)


def test_a_library_is_read_without_onnx_runtime_and_the_verifier(repository: Path, command: Command) -> None:
    """Digests are computed of text: reading a library stays quick."""
    script = "import sys; from rlflow.rules import library; library.load(); "
    script += "print([n for n in sys.modules if n.startswith(('onnx', 'rlflow.rules.verification'))])"
    assert command(sys.executable, "-c", script, cwd=repository, PYTHONPATH="src").stdout.strip() == "[]"
