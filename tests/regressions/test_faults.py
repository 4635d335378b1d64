"""Every fault that docs/faults.md lists is still caught by the tests that it names."""

import ast
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
REFERENCE = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def rows():
    lines = (ROOT / "docs/faults.md").read_text().splitlines()
    return [line for line in lines if line.startswith("| ") and not line.startswith(("| fault", "|---"))]


def test_every_fault_names_tests_that_exist():
    listed = rows()
    assert len(listed) == 21
    for row in listed:
        references = REFERENCE.findall(row)
        assert references, row
        for path, name in references:
            tree = ast.parse((ROOT / path).read_text())
            assert name in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}, (path, name)


def test_a_dream_loads_nothing_real():
    """In a fresh process, all of `world_model`: what is not loaded cannot be stepped. Not vacuous: dreams are."""
    script = """
import importlib, pkgutil, sys
import rlflow.world_model as package
for module in pkgutil.walk_packages(package.__path__, "rlflow.world_model."):
    importlib.import_module(module.name)
print(*(name for name in sys.modules if name.startswith("rlflow.")))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT / "src")
    loaded = done.stdout.split()
    assert {"rlflow.world_model.dream_env", "rlflow.world_model.graph_level.dream_env"} <= set(loaded)
    real = (
        "rlflow.rules",
        "rlflow.runtime",
        "rlflow.environments",
        "rlflow.processes",
        "rlflow.search",
        "rlflow.cost",
        "rlflow.onnx_io",
    )
    assert not [m for m in loaded if m.startswith(real)]
