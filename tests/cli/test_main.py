"""The entry point: every command of the list runs, and asking for help does not load what only commands need."""

import subprocess
import sys
from importlib.metadata import version

import onnx
import onnxruntime
import pytest

from rlflow.cli.main import COMMANDS

HEAVY = ("google", "matplotlib", "networkx", "numpy", "onnx", "onnxruntime", "scipy", "torch")
CODE = """
import sys
{work}
print(*(module for module in {heavy} if module in sys.modules), file=sys.stderr)
"""
HELP = """
sys.argv = ["rlflow", "--help"]
from rlflow.cli import main
try:
    main()
except SystemExit as stop:
    assert not stop.code
"""


def loaded_by(work: str) -> tuple[str, list[str]]:
    """Standard output of `work` in a fresh interpreter, and which heavy modules it had loaded at its end."""
    code = CODE.format(work=work, heavy=HEAVY)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout, done.stderr.split()


def test_help_loads_nothing_heavy() -> None:
    shown, heavy = loaded_by(HELP)
    assert all(name in shown for name in COMMANDS)
    assert heavy == []


def test_importing_the_library_loads_nothing_heavy() -> None:
    assert loaded_by("import rlflow") == ("", [])


def test_optimising_does_not_load_what_other_work_needs() -> None:
    """Nor is the probe blind: it sees what is loaded."""
    _, heavy = loaded_by("import rlflow.optimise.api")
    assert {"numpy", "onnx"} <= set(heavy)
    assert not {"scipy", "networkx", "matplotlib", "torch"} & set(heavy)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_tells_its_options(rlflow, command) -> None:
    code, out, err = rlflow(command, "--help")
    assert (code, err) == (0, "")
    assert f"rlflow {command}" in out
    assert "--install-completion" not in out


def test_the_versions_are_told(rlflow) -> None:
    """Of what decides what is computed: a report of a fault begins with them."""
    code, out, err = rlflow("--version")
    assert (code, err) == (0, "")
    assert out == f"rlflow {version('rlflow')}, onnx {onnx.__version__}, onnxruntime {onnxruntime.__version__}\n"


def test_an_unknown_command_is_refused(rlflow) -> None:
    code, out, err = rlflow("optimize")
    assert (code, out) == (2, "")
    assert "optimize" in err


def test_an_interrupt_is_one_sentence(rlflow, monkeypatch) -> None:
    """Typer makes an exit of an interrupt before `main` sees it."""

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("rlflow.zoo.build", interrupted)
    code, out, err = rlflow("zoo", "build", "mlp", "-o", "mlp.onnx")
    assert (code, out, err) == (130, "", "rlflow: interrupted; no file was left half written\n")
