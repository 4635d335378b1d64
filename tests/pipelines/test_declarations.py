"""dvc.yaml against the code: a stage runs again whenever something that it uses has changed."""

import ast
from pathlib import Path

import grimp
import pytest

from rlflow.tracking.declaration import read_declaration

STAGES = (
    "generate_rules",
    "collect_rollouts",
    "fit_world_model",
    "train_controller",
    "evaluate",
    "temperature_sweep",
)
WATCHING = (
    "rlflow.tracking",
    "rlflow.errors",
    "rlflow.extras",
    "rlflow.atomic_file",
    "rlflow.schemas",
    "rlflow.evaluation.results",
    "rlflow.evaluation.figures",
)
"""Modules that cannot change what a stage computes: they only watch, draw, or refuse."""
MATERIALS = "rlflow.tracking.factories"
"""What it imports does count."""


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph("rlflow", exclude_type_checking_imports=True)


def imported(script: Path, graph: grimp.ImportGraph) -> set[str]:
    """Modules of the library that a script imports, with all that these import; those that watch are left out."""
    direct: set[str] = set()
    for node in ast.walk(ast.parse(script.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("rlflow"):
            below = {f"{node.module}.{alias.name}" for alias in node.names}
            direct |= (below & graph.modules) or {node.module}
    found: set[str] = set()
    waiting = direct
    while waiting := {m for m in waiting - found if m == MATERIALS or not m.startswith(WATCHING)}:
        found |= waiting
        waiting = set().union(*(graph.find_modules_directly_imported_by(module) for module in waiting))
    return found - {MATERIALS}


@pytest.mark.parametrize("stage", STAGES)
def test_every_module_that_a_stage_uses_is_a_dependency(stage: str, repository: Path, graph: grimp.ImportGraph):
    declaration = read_declaration(stage, repository)
    script = f"pipelines/{stage}.py"
    assert script in declaration.dependencies
    modules = imported(repository / script, graph)
    assert modules, "a stage that uses nothing of the library does nothing"
    missing = {module for module in modules if not _covered(module, declaration.dependencies, repository)}
    assert not missing, f"add to the deps of {stage}: {sorted(missing)}"


@pytest.mark.parametrize("stage", STAGES)
def test_every_dependency_exists_or_is_an_output(stage: str, repository: Path):
    outputs = {path for name in STAGES for path in read_declaration(name, repository).outputs}
    dependencies = read_declaration(stage, repository).dependencies
    assert [p for p in dependencies if p not in outputs and not (repository / p).exists()] == []


def _covered(module: str, dependencies: tuple[str, ...], repository: Path) -> bool:
    path = Path("src", *module.split("."))
    file = path.with_suffix(".py") if (repository / path.with_suffix(".py")).exists() else path / "__init__.py"
    if not (repository / file).exists() or not (repository / file).read_text().strip():
        return True
    return any(file.is_relative_to(dependency) for dependency in dependencies)
