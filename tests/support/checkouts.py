"""Git repositories that hold files of this one, and what this one has committed.

A run of one's own writes over figures in the working tree. What must agree with a committed page is what was committed
with it, or what lies here to be committed with it next: one of `publishable`.
"""

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

COMMIT = ["-c", "user.name=tester", "-c", "user.email=tester@example.org", "commit", "--quiet", "-m", "published"]


def checkout_of(repository: Path, paths: Iterable[str], folder: Path) -> Path:
    """A new repository at `folder` whose only commit has these files as they are here."""
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(repository / path, folder / path)
    for command in (["init", "--quiet"], ["add", "."], COMMIT):
        subprocess.run(["git", *command], cwd=folder, check=True)
    return folder


def package_files(repository: Path) -> list[str]:
    """The files of which the package is built, those that git knows and that are here."""
    asked = ["src", "pyproject.toml", "README.md", "LICENSE"]
    said = subprocess.run(["git", "ls-files", "-z", *asked], cwd=repository, capture_output=True, text=True, check=True)
    return [name for name in said.stdout.split("\0") if name and (repository / name).exists()]


def publishable(repository: Path, folder: Path) -> tuple[Path, ...]:
    """The files of the last commit, written to a new folder, and the working tree; that alone outside of git."""
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=repository, capture_output=True)
    if archive.returncode:
        return (repository,)
    folder.mkdir(exist_ok=True)
    # `tarfile` of early releases of Python 3.11 has no filter, without which later ones warn.
    subprocess.run(["tar", "--extract", "--directory", str(folder)], input=archive.stdout, check=True)
    return folder, repository
