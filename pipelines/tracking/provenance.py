"""The provenance of a run: commit, DVC lock, overrides, and the process that holds it."""

import hashlib
import os
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path

import psutil

CLOCK_TOLERANCE_S = 2.0  # psutil derives a process's start from the boot time, which moves when the clock is set


def source_tags(root: Path, overrides: Sequence[str] = ()) -> dict[str, str]:
    """The MLflow tags of the code and data in `root`; a tag that cannot be known is left out."""
    commit, status = _git(root, "rev-parse", "HEAD"), _git(root, "status", "--porcelain")
    lock = root / "dvc.lock"
    tags = {
        "mlflow.source.git.commit": None if commit is None else commit.strip(),
        "git.dirty": None if status is None else str(bool(status.strip())).lower(),
        "dvc.lock.md5": hashlib.md5(lock.read_bytes()).hexdigest() if lock.is_file() else None,
        "dvc.stage": os.environ.get("DVC_STAGE"),
        "dvc.exp.name": os.environ.get("DVC_EXP_NAME"),
        "hydra.overrides": " ".join(overrides) or None,
    }
    return {key: value for key, value in tags.items() if value is not None}


def committed(root: Path, path: str, revision: str = "HEAD") -> str | None:
    """The text of a file at a revision, by default the last commit; None if that has none, or is none."""
    return _git(root, "show", f"{revision}:{path}")


def commit_of(root: Path, revision: str) -> str | None:
    """The hash of the commit that git knows by this name; None if it knows none."""
    found = _git(root, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    return None if found is None else found.strip()


def changed(root: Path, *paths: str) -> list[str]:
    """The files below `paths` that differ from the last commit, as git names them; none outside a checkout."""
    return (_git(root, "diff", "--name-only", "HEAD", "--", *paths) or "").splitlines()


def process_tag() -> str:
    """A tag of this process: host, id and start time, since ids are used again."""
    return f"{socket.gethostname()} {os.getpid()} {psutil.Process().create_time():.2f}"


def is_gone(tag: str) -> bool:
    """Return True if the process of a `process_tag` has ended; False if it ran on another host."""
    host, identifier, started = tag.rsplit(" ", 2)
    if host != socket.gethostname():
        return False
    try:
        process = psutil.Process(int(identifier))
        alive = process.status() != psutil.STATUS_ZOMBIE
        return not alive or abs(process.create_time() - float(started)) > CLOCK_TOLERANCE_S
    except psutil.NoSuchProcess:
        return True


def _git(root: Path, *arguments: str) -> str | None:
    try:
        answer = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return answer.stdout
