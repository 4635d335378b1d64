"""Reading a library is light: it is data, and needs neither the declarations nor ONNX Runtime."""

import subprocess
import sys

SCRIPT = """
import sys
from rlflow.rules.library import load
count = len(load().rules)
heavy = ("onnx", "onnxruntime", "torch", "rlflow.rules.declared", "rlflow.rules.dsl", "rlflow.rules.verification")
print(count, sorted(name for name in sys.modules if name.startswith(heavy)))
"""


def test_to_load_a_library_imports_neither_declarations_nor_onnx_runtime() -> None:
    """In a process of its own: in this one, other tests have imported everything."""
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    count, imported = done.stdout.split(maxsplit=1)
    assert imported == "[]\n"
    assert int(count) >= 716
