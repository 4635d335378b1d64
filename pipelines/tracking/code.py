"""A digest of the code that each stage uses: the `code` stage of dvc.yaml, which the others have as a parameter.

    digest_of(Path("pipelines/evaluate.py"), root)      # "3b1c09f2a7d45e68"

DVC compares files by their paths and bytes, so that a stage would run for hours because a file was moved or a comment
was mended. Here the code of a stage is its script with all modules that it imports, and theirs; of each the syntax
counts, without docstrings and without the places that it imports from, and the data that lie beside it in the library.

The invariant: two trees have one digest if and only if they hold the same functions, classes and data, whatever the
files are called.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from rlflow.atomic_file import written_whole
from tracking.declaration import stage_names

DIGESTS = Path("data/code.yaml")
_FOLDERS = {
    "rlflow": "src",
    "experiment": "pipelines",
    "studies": "pipelines",
    "tracking": "pipelines",
    "support": "tests",
}
"""Of each package the folder that it lies in."""
WATCHING = (
    "tracking",
    "studies.figures",
    "studies.paper.documents",
    "studies.pass_ordering.documents",
    "studies.policy.documents",
    "studies.program",
    "studies.published",
    "rlflow.errors",
    "rlflow.extras",
    "rlflow.atomic_file",
    "rlflow.kept",
    "rlflow.schemas",
    "rlflow.plugins",
    "experiment.curves",
    "experiment.documents",
    "experiment.figures",
    "experiment.plot_rows",
    "experiment.results",
    "experiment.stage_summaries",
    "rlflow.cli.progress",
    "rlflow.show",
)
"""Modules that cannot change what a stage computes: they only watch, draw, refuse, or look a name up."""
_MATERIALS = ("tracking.factories", "studies.policy.curriculum")
"""Modules whose imports count, though they only watch themselves."""
_REGISTRIES = ("rlflow.cost.models", "rlflow.optimise.methods", "rlflow.passes.backends", "rlflow.zoo.registry")
"""Modules that import what they name, when it is chosen."""
_OBJECT = re.compile(r"((?:rlflow|experiment|studies)(?:\.\w+)+):(\w+)")
_MODULE = re.compile(r"(?:rlflow|experiment|studies)(?:\.\w+)+")
_NO_DATA = (".py", ".md", ".typed")


@dataclass(frozen=True)
class Code:
    """The part of a digest that one file of Python adds: its syntax, and the modules of ours that it imports."""

    syntax: str
    imports: frozenset[str]


def main() -> None:
    """Write the digests of all stages, and of those of the studies that are DVC projects, in the working folder."""
    root = Path()
    digests: dict[str, Any] = {name: digest_of(script, root) for name, script in scripts(root, root / "pipelines")}
    for project in sorted(path.parent for path in root.glob("data/*/dvc.yaml")):
        programs = scripts(project, root / "pipelines/studies" / project.name)
        digests[project.name] = {name: digest_of(script, root) for name, script in programs}
    with written_whole(DIGESTS) as draft:
        draft.write_text(yaml.safe_dump(digests, sort_keys=True))


def scripts(project: Path, folder: Path) -> Iterator[tuple[str, Path]]:
    """The stages of `project`/dvc.yaml that are scripts of a folder, with these."""
    return ((name, folder / f"{name}.py") for name in stage_names(project) if (folder / f"{name}.py").is_file())


def digest_of(script: Path, root: Path) -> str:
    """A digest of the script and of all that it imports of ours, below the repository's `root`."""
    files = [script, *(_file(module, root) for module in modules_of(script, root))]
    parts = {_code(file, root).syntax for file in files}
    beside = {path for file in files if file.is_relative_to(root / "src") for path in file.parent.iterdir()}
    parts |= {_data(path) for path in beside if path.is_file() and path.suffix not in _NO_DATA}
    return hashlib.sha256("\n".join(sorted(parts)).encode()).hexdigest()[:16]


def modules_of(script: Path, root: Path) -> frozenset[str]:
    """Modules that a script imports, with all that these import; those that only watch are left out."""
    found: set[str] = set()
    waiting = {*_code(script, root).imports}
    while waiting := {name for name in waiting - found if name in _MATERIALS or not name.startswith(WATCHING)}:
        found |= waiting
        waiting = {name for module in waiting for name in _code(_file(module, root), root).imports}
    return frozenset(found - {*_MATERIALS})


@cache
def _code(file: Path, root: Path) -> Code:
    """Read one file. Imports under `if TYPE_CHECKING` compute nothing, and do not count."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    statements = [node for node in _computing(tree) if isinstance(node, ast.ImportFrom | ast.Import)]
    names = {
        f"{node.module}.{alias.name}" for node in statements if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    names |= {alias.name for node in statements if isinstance(node, ast.Import) for alias in node.names}
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    if file in {_file(name, root) for name in _REGISTRIES}:
        names |= {match[1] for match in map(_OBJECT.fullmatch, texts) if match}
    modules = {module for name in names if (module := _module(name, root))}
    modules |= {
        text for text in texts if _MODULE.fullmatch(text) and _file(text, root).is_file()
    }  # `python -m` runs it
    return Code(_syntax(tree), frozenset(modules))


def _computing(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.If) and isinstance(child.test, ast.Name) and child.test.id == "TYPE_CHECKING"):
            yield from _computing(child)


def _module(name: str, root: Path) -> str | None:
    """The module of ours that this name is, or is defined in; None if it is of another package."""
    if name.partition(".")[0] not in _FOLDERS:
        return None
    return name if _file(name, root).is_file() else _module(name.rpartition(".")[0], root)


def _file(module: str, root: Path) -> Path:
    path = root.joinpath(_FOLDERS[module.partition(".")[0]], *module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _syntax(node: Any) -> str:
    """The syntax of a file as a text that no version of Python writes otherwise, without where things lie."""
    if isinstance(node, list):
        parts = [_syntax(part) for part in node if not _is_import_of_ours(part) and not _is_docstring(part)]
        names = sorted(f"{a.name} {a.asname}" for part in node if _is_import_of_ours(part) for a in part.names)
        return f"[{' '.join(names + parts)}]"
    if isinstance(node, ast.AST):
        fields = ((name, value) for name, value in ast.iter_fields(node) if value not in (None, []))
        return f"{type(node).__name__}({' '.join(f'{name}={_syntax(value)}' for name, value in fields)})"
    return repr(_OBJECT.sub(r"\2", node) if isinstance(node, str) else node)


def _is_import_of_ours(node: Any) -> bool:
    return isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in _FOLDERS


def _is_docstring(node: Any) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _data(path: Path) -> str:
    return f"{path.name} {hashlib.sha256(path.read_bytes()).hexdigest()}"


if __name__ == "__main__":
    main()
