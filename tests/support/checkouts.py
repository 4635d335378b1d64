"""Small git repositories that hold a few files of this one."""

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
