"""What is asked of an installation of jaxlib."""

import importlib.util
from importlib.metadata import version

import pytest

from rlflow.extras import MissingExtraError
from rlflow.passes.xla.probe import VERSIONS, probe, require_jax, version_problem


def test_this_installation_passes() -> None:
    """The trial of a pass finds nothing wrong; with a pass left on that should be off it would."""
    assert version_problem(version("jaxlib")) == ""
    probe()  # raises otherwise


def test_another_version_is_refused_by_name() -> None:
    assert version_problem(VERSIONS[0]) == ""
    problem = version_problem("0.11.0")
    assert "jaxlib 0.11.0 is installed" in problem
    assert VERSIONS[0] in problem


def test_a_missing_package_is_named_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python's own way to say that a package is not there: its finders find nothing."""
    find = importlib.util.find_spec
    monkeypatch.setattr("rlflow.passes.xla.probe.find_spec", lambda name: None if name == "jaxlib" else find(name))
    with pytest.raises(MissingExtraError, match=r"needs jaxlib, which is not installed: pip install 'rlflow\[xla\]'"):
        require_jax()
