"""The documentation as a site, built once for the tests of a module."""

import subprocess
import sys
from pathlib import Path

import pytest
from support.repository import REPOSITORY


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site; `strict` in mkdocs.yml makes an error of each link that leads nowhere."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder
