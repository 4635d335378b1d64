"""What an installation may lack: the list agrees with pyproject.toml and with the code, and a gap is one sentence."""

import ast
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from importlib.util import find_spec
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from rlflow import extras
from rlflow.errors import InputError
from rlflow.extras import EXTRAS, MissingExtraError, modules_of, needs, require

ROOT = Path(__file__).parents[1]
BROUGHT_ALONG = {"ml_dtypes": "onnx", "olive": "olive-ai"}
"""Modules that a package of another name brings: one that our dependencies cannot do without, or one that may not be
installed."""


def declared() -> dict[str, set[str]]:
    """Extra -> names of the distributions that pyproject.toml asks for; the core is the extra ''."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = {"": project["dependencies"], **project["optional-dependencies"]}
    return {extra: {canonicalize_name(Requirement(line).name) for line in lines} for extra, lines in wanted.items()}


installed = cache(packages_distributions)
"""Reading what every installed distribution brings takes a second."""


def distributions_of(module: str) -> set[str]:
    """What is not installed, as OpenVINO may be, goes by the name of its module."""
    known = BROUGHT_ALONG.get(module, module)
    return {canonicalize_name(name) for name in installed().get(known, (known,))}


def imported_modules() -> Iterator[tuple[Path, str]]:
    """Top-level modules that any file of the library and of the experiment imports, be it inside a function."""
    for path in sorted([*(ROOT / "src").rglob("*.py"), *(ROOT / "pipelines").rglob("*.py")]):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                yield from ((path, alias.name.partition(".")[0]) for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                yield path, node.module.partition(".")[0]


OURS = {"rlflow", "experiment", "studies", "tracking"}


def test_every_module_that_the_library_imports_is_declared() -> None:
    """A package that comes with another one today may not come with it tomorrow. Studies may use a developer's."""
    third_party = {(p, m) for p, m in imported_modules() if m not in sys.stdlib_module_names | OURS}
    assert {module for _, module in third_party} > {"numpy", "torch", "mlflow", "matplotlib"}
    wanted = declared()
    for path, module in sorted(third_party):
        extra = next((extra for extra in wanted if module in modules_of(extra)), "")
        brought = wanted[extra] | (wanted["dev"] if path.is_relative_to(ROOT / "pipelines") else set())
        assert distributions_of(module) & brought, f"{path} imports {module}, which no dependency brings"


@pytest.mark.parametrize("extra", EXTRAS)
def test_every_module_of_an_extra_is_brought_by_it(extra: str) -> None:
    for module in EXTRAS[extra]:
        assert distributions_of(module) & declared()[extra], f"extra {extra} brings no {module}"


def test_all_extras_are_what_all_brings_but_a_compiler_of_one_version_and_a_baseline() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    (everything,) = (Requirement(line) for line in project["all"])
    others = {"frameworks", "xla", "xla-onnx"}
    assert (everything.name, everything.extras) == ("rlflow", set(EXTRAS) - others)
    assert "rlflow[all]" in project["dev"]


def test_what_is_installed_is_not_complained_about() -> None:
    entered = []
    present = [extra for extra, modules in EXTRAS.items() if all(map(find_spec, modules))]
    assert {"learn", "experiments", "plots"} <= set(present)
    for extra in present:
        with needs(extra, "this test"):
            require(extra, "this test")
            entered.append(extra)
    assert entered == present


@pytest.mark.parametrize(
    ("lacking", "sentence"),
    [
        (("no_such_a",), "drawing needs no_such_a, which is not installed: pip install 'rlflow[plots]'"),
        (
            ("no_such_a", "sys", "no_such_b", "no_such_c"),
            "drawing needs no_such_a, no_such_b and no_such_c, which are not installed: pip install 'rlflow[plots]'",
        ),
    ],
)
def test_what_is_missing_is_one_sentence(lacking, sentence, monkeypatch) -> None:
    monkeypatch.setattr(extras, "EXTRAS", {"plots": lacking})
    with pytest.raises(MissingExtraError) as refusal, needs("plots", "drawing"):
        pytest.fail("the imports were tried")
    assert str(refusal.value) == sentence
    assert isinstance(refusal.value, InputError), "exit code 2 on the command line"
    assert isinstance(refusal.value, ImportError), "which is what `try: import ...` of a caller expects"
