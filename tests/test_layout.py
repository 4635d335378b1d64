"""Tests reach every module: one that no test imports, itself or through another module, would rot unseen."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

RUN_BY_NAME = {"rlflow.__main__"}
"""Modules that no test imports: `python -m rlflow` runs it."""


def _module(path: Path, folder: Path) -> str:
    """The dotted name of a file; a package is named by its folder."""
    parts = path.relative_to(folder).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(source: str) -> Iterator[str]:
    """Every name that a source imports, now or by its name: `from a.b import c` may mean the module a.b or a.b.c."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value.partition(":")[0]


def test_every_module_of_the_library_is_reached_by_a_test(repository: Path) -> None:
    """Not vacuous: there are hundreds, and the exceptions are not reached indeed."""
    source = repository / "src"
    imports = {_module(path, source): set(_imports(path.read_text("utf-8"))) for path in source.rglob("*.py")}
    tests = [path for path in (repository / "tests").rglob("*.py") if path != Path(__file__)]
    imported = {name for path in tests for name in _imports(path.read_text("utf-8"))}
    reached: set[str] = set()
    waiting = imported & imports.keys()
    while waiting := waiting - reached:
        reached |= waiting
        waiting = {name for module in waiting for name in imports[module] & imports.keys()}
    assert len(imports) > 100
    named = {_module(path, source) for path in source.rglob("*.py") if path.name != "__init__.py"}
    assert named - reached == RUN_BY_NAME, "write a test of each, or take it off the list"


def _test_files(repository: Path) -> list[Path]:
    return [path for path in (repository / "tests").rglob("*.py") if "support" not in path.parts]


def test_shared_parts_come_from_support_alone(repository: Path) -> None:
    """No test imports another test or a conftest."""
    tests, wrong = repository / "tests", []
    for path in _test_files(repository):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            wrong += [f"{path}: {name}" for name in names if (tests / f"{name.replace('.', '/')}.py").exists()]
            if isinstance(node, ast.ImportFrom) and (tests / (node.module or ".").replace(".", "/")).is_dir():
                wrong += [f"{path}: {alias.name}" for alias in node.names if _is_test(tests, node, alias.name)]
    assert not [name for name in wrong if ": support." not in name]


def _is_test(tests: Path, statement: ast.ImportFrom, name: str) -> bool:
    """Whether `from package import name` reads a module of the tests."""
    return (tests / (statement.module or "").replace(".", "/") / f"{name}.py").exists() and name.startswith("test_")


@pytest.mark.parametrize("depth", ["tests", "tests/rules"])
def test_no_test_hides_in_support(repository: Path, depth: str) -> None:
    """pytest collects by name: what is called a test there would never run, and a helper here would be collected."""
    assert not list((repository / "tests/support").rglob("test_*.py"))
    helpers = [p for p in (repository / depth).glob("*.py") if not p.name.startswith(("test_", "conftest"))]
    assert not helpers
