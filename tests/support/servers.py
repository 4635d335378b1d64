"""Servers for tests, started for real in a folder that is thrown away: PostgreSQL, and MLflow's for artifacts."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

_ACCOUNT = "postgres"
"""PostgreSQL refuses to run as root, and Debian's package brings this account."""


def postgres_programs() -> Path | None:
    """The folder of `initdb` and `pg_ctl`; None if PostgreSQL is not installed. Debian keeps them off the PATH."""
    found = [path for path in Path("/usr/lib/postgresql").glob("*/bin") if (path / "initdb").exists()]
    if found:
        return max(found, key=lambda path: int(path.parent.name))
    program = shutil.which("initdb")
    return Path(program).resolve().parent if program else None


@contextmanager
def postgres() -> Iterator[str]:
    """Run a PostgreSQL server; yields the address of its database.

    Its files are no business of pytest's folder, in which only the account that tests run under may look.
    """
    with tempfile.TemporaryDirectory() as folder:
        account = _ACCOUNT if os.geteuid() == 0 else None
        if account is not None:
            shutil.chown(folder, account)
        yield from _served(Path(folder), account)


def _served(folder: Path, account: str | None) -> Iterator[str]:
    programs, port, data = postgres_programs(), free_port(), folder / "data"
    assert programs is not None

    def run(*command: str) -> None:
        subprocess.run(command, user=account, cwd=folder, env=os.environ | {"HOME": str(folder)}, check=True)

    run(str(programs / "initdb"), "-D", str(data), "-U", "rlflow", "-A", "trust", "--no-sync", "--locale=C.UTF-8")
    settings = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off"
    run(str(programs / "pg_ctl"), "-D", str(data), "-w", "-o", settings, "-l", str(folder / "log"), "start")
    try:
        yield f"postgresql+psycopg://rlflow@127.0.0.1:{port}/postgres"
    finally:
        run(str(programs / "pg_ctl"), "-D", str(data), "-m", "immediate", "stop")


@contextmanager
def artifact_server(folder: Path) -> Iterator[str]:
    """Run MLflow's server for artifacts alone, which keeps them in a folder; yields the root to give to experiments.

    The folder has a migrated database, `mlflow.db`, which the server's processes would make all at once.
    """
    port = free_port()
    options = ("--artifacts-only", f"--port={port}", f"--artifacts-destination={(folder / 'files').as_uri()}")
    with mlflow_server(options, port, folder) as address:
        yield f"{address}/api/2.0/mlflow-artifacts/artifacts"


@contextmanager
def mlflow_server(options: Sequence[str], port: int, folder: Path) -> Iterator[str]:
    """Run MLflow's server with these options, which name the port; yields its address."""
    command = [sys.executable, "-m", "mlflow", "server", "--workers", "1", *options]
    server = subprocess.Popen(command, cwd=folder)
    try:
        wait_until_healthy(f"http://127.0.0.1:{port}/health", server)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()


def wait_until_healthy(address: str, server: subprocess.Popen, longest_s: float = 120.0) -> None:
    """Wait until a server answers; an assertion fails if its process ends, or after so many seconds."""
    end = time.monotonic() + longest_s
    while time.monotonic() < end:
        assert server.poll() is None, f"the server of {address} ended with code {server.returncode}"
        try:
            with urllib.request.urlopen(address, timeout=5):
                return
        except OSError:
            time.sleep(0.2)
    raise AssertionError(f"{address} did not answer within {longest_s} s")


def free_port() -> int:
    """A port of this host that nobody listens at."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]
