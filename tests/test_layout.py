"""A test is found by the name of what it tests: `src/rlflow/a/b.py` is tested in `tests/a/test_b.py`."""

import ast
from pathlib import Path

import pytest

# Modules without a test of their name: what they hold is told beside each.
WITHOUT_LOGIC = {
    "__main__.py": "calls the command line",
    "errors.py": "classes of errors",
    "agents/config.py": "settings, read by world_model/settings.py",
    "agents/candidates/config.py": "settings, read by world_model/settings.py",
    "agents/pooled/config.py": "settings, read by world_model/settings.py",
    "agents/tokens/config.py": "settings, read by world_model/settings.py",
    "cost/base.py": "an interface",
    "cost/models.py": "a list of names, tested in test_plugins.py",
    "optimise/methods.py": "a list of names, tested in test_plugins.py",
    "ops/schema.py": "the interface of operators",
}
TESTED_BY_FAMILY = {
    "ops": "test_against_onnx_runtime.py draws every operator; others take the domains, types and windows of all",
    "rules/dsl": "every declared rule is written in it, and none would come out with its id if it were read otherwise",
    "rules/declared": "families are tested with the graphs that they are for, a few of them together",
}


def _modules(repository: Path) -> list[str]:
    """All modules by their path, without the pages that a package begins with."""
    source = repository / "src/rlflow"
    found = (path.relative_to(source).as_posix() for path in source.rglob("*.py"))
    return sorted(path for path in found if not path.endswith("__init__.py"))


def _test_of(module: str) -> str:
    path = Path(module)
    return (path.parent / f"test_{path.name}").as_posix()


def test_every_module_has_a_test_of_its_name(repository: Path) -> None:
    missing = [
        module
        for module in _modules(repository)
        if not (repository / "tests" / _test_of(module)).exists()
        and module not in WITHOUT_LOGIC
        and Path(module).parent.as_posix() not in TESTED_BY_FAMILY
    ]
    assert not missing, f"write {[f'tests/{_test_of(module)}' for module in missing]}"


def test_exceptions_are_modules_without_a_test(repository: Path) -> None:
    stale = [
        module
        for module in WITHOUT_LOGIC
        if module not in _modules(repository) or (repository / "tests" / _test_of(module)).exists()
    ]
    assert not stale, "take them off the list of exceptions"
    assert all((repository / "src/rlflow" / package).is_dir() for package in TESTED_BY_FAMILY)


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
