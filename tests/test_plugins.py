"""Names for methods and cost models: ours, those of other packages, and those that nobody knows."""

import subprocess
import sys
from pathlib import Path

import pytest

from rlflow.cost.models import COST_MODELS
from rlflow.errors import InputError
from rlflow.optimise.methods import METHODS
from rlflow.plugins import Registry

MODULE = """
class Annealing:
    pass
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package as pip installs it: a module, and the metadata that announce it."""
    (tmp_path / "annealing_of_mine.py").write_text(MODULE)
    metadata = tmp_path / "annealing_of_mine-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: annealing-of-mine\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        "[rlflow.methods]\n"
        "annealing = annealing_of_mine:Annealing\n"
        "broken = annealing_of_mine:NoSuchThing\n"
        "greedy = annealing_of_mine:Annealing\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


@pytest.mark.parametrize("registry", [METHODS, COST_MODELS], ids=["methods", "cost models"])
def test_every_name_of_ours_can_be_imported(registry: Registry) -> None:
    assert list(registry.built_in) == registry.names()
    assert all(callable(registry.get(name)) for name in registry.built_in)


def test_a_package_announces_a_method(package: Path) -> None:
    assert METHODS.names() == [*METHODS.built_in, "annealing", "broken"]
    assert METHODS.get("annealing").__name__ == "Annealing"
    assert METHODS.get("greedy").__module__ == "rlflow.search.greedy", "a name of ours always means ours"
    assert "annealing" not in COST_MODELS.names(), "another group"


def test_a_package_that_cannot_be_imported_is_named(package: Path) -> None:
    with pytest.raises(InputError, match=r"method 'broken' cannot be imported from annealing_of_mine:NoSuchThing"):
        METHODS.get("broken")


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"there is no cost model 'magic': choose one of measured, .*analytic"):
        COST_MODELS.get("magic")


def test_to_list_the_names_imports_nothing_heavy() -> None:
    script = (
        "import sys; from rlflow.optimise.methods import METHODS; from rlflow.cost.models import COST_MODELS; "
        "METHODS.names(); COST_MODELS.names(); "
        "print(sorted({'numpy', 'onnx', 'onnxruntime', 'torch'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
