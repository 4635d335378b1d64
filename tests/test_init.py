"""The public names: `import rlflow` is light, and what a type checker sees is what there is."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import rlflow
from rlflow import errors

OLDER = {"Optimiser": "Method"}
"""Older names that are still imported."""


def test_what_a_type_checker_sees_is_what_there_is() -> None:
    """Names imported at once and under TYPE_CHECKING, together, are `__all__`; the latter are imported on demand."""
    tree = ast.parse(Path(rlflow.__file__).read_text())
    (guarded,) = (node for node in tree.body if isinstance(node, ast.If))
    on_demand, at_once = (
        {alias.asname or alias.name for node in body if _is_ours(node) for alias in node.names}
        for body in (guarded.body, tree.body)
    )
    assert on_demand == set(rlflow._HOMES)
    assert on_demand | at_once == set(rlflow.__all__)


def _is_ours(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rlflow")


@pytest.mark.parametrize("name", rlflow.__all__)
def test_every_public_name_is_there(name: str) -> None:
    found = getattr(rlflow, name)
    assert found.__name__ in (OLDER.get(name, name), "load"), "load_library is rlflow.rules.library.load"


def test_every_error_is_public() -> None:
    kinds = {name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, Exception)}
    assert kinds <= set(rlflow.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'rlflow' has no attribute 'magic'"):
        _ = rlflow.magic


def test_the_import_is_light() -> None:
    script = "import sys, rlflow; print(sorted({'numpy', 'onnx', 'onnxruntime', 'torch'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
