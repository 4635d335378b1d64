"""MLflow in containers: what the files say agrees with each other and with the documentation, and its command serves.

No test starts a container, since CI has no Docker. The server that one would hold is started as it is.
"""

import re
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
import yaml
from packaging.requirements import Requirement
from support.repository import REPOSITORY
from support.servers import free_port, mlflow_server, postgres, postgres_programs
from tracking.run import open_run
from tracking.store import open_store

DEPLOY = REPOSITORY / "deploy"
SERVICES: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
DATABASE, MLFLOW = SERVICES["database"], SERVICES["mlflow"]
DOCKERFILE = (DEPLOY / "Dockerfile").read_text()
COMMAND = dict(option.split("=", 1) for option in MLFLOW["command"])
(TOLD,) = re.findall(
    r"^RLFLOW_PASSWORD=(\S+) docker compose -f (\S+) up --detach\n"
    r"export MLFLOW_TRACKING_URI=(\S+)\nexport MLFLOW_DEFAULT_ARTIFACT_ROOT=(\S+)$",
    (REPOSITORY / "docs/configuration.md").read_text(),
    re.MULTILINE,
)
"""A password, the file, and both variables, as the documentation tells them."""


def ports(service: dict[str, Any]) -> list[str]:
    """The ports of this machine that lead to one of the service, which has the same number."""
    (opened,) = service["ports"]
    address, outside, inside = opened.rsplit(":", 2)
    assert address == "${RLFLOW_ADDRESS:-127.0.0.1}", "nobody else gets in by default"
    assert outside == inside
    return [outside]


def test_what_the_documentation_tells_leads_to_the_services() -> None:
    password, file, tracking, artifacts = TOLD
    assert file == "deploy/compose.yaml"
    (database, server), backend = map(urlsplit, (tracking, artifacts)), urlsplit(COMMAND["--backend-store-uri"])
    variables = DATABASE["environment"]
    assert (database.username, database.path) == (variables["POSTGRES_USER"], f"/{variables['POSTGRES_DB']}")
    assert database.password == password
    assert [str(database.port)] == ports(DATABASE)
    assert [str(server.port)] == ports(MLFLOW) == [COMMAND["--port"]]
    assert f"EXPOSE {server.port}\n" in DOCKERFILE
    assert (backend.scheme, backend.username, backend.path) == (database.scheme, database.username, database.path)
    assert backend.netloc.endswith("@database:5432")
    assert backend.netloc.split(":")[1].startswith("${RLFLOW_PASSWORD}")
    assert variables["POSTGRES_PASSWORD"].startswith("${RLFLOW_PASSWORD:?"), "there is no password that all know"


def test_what_is_kept_lies_in_volumes() -> None:
    """The image makes the folder of files for the account that the server runs under."""
    assert MLFLOW["volumes"] == [f"files:{COMMAND['--artifacts-destination']}"]
    assert f"install --directory --owner mlflow {COMMAND['--artifacts-destination']}\nUSER mlflow\n" in DOCKERFILE
    assert DATABASE["volumes"] == ["database:/var/lib/postgresql/data"]


def test_the_image_holds_the_mlflow_and_the_driver_of_the_package() -> None:
    extras = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    wanted = {r.name: r for r in map(Requirement, [*extras["experiments"], *extras["postgres"]])}
    installed = [
        Requirement(text) for text in re.findall(r'"([^"]+)"', DOCKERFILE.split("RUN pip install")[1].split("\n")[0])
    ]
    assert installed == [wanted["mlflow"], wanted["psycopg"]]


@pytest.mark.slow
@pytest.mark.skipif(postgres_programs() is None, reason="PostgreSQL is not installed: make services")
def test_the_server_of_the_container_serves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its command beside a real PostgreSQL, and a run with a file, by the two variables that are told."""
    _, _, _, artifacts = TOLD
    port, figure = free_port(), tmp_path / "size.txt"
    figure.write_text("3")
    with postgres() as database:
        here = {
            "--backend-store-uri": database,
            "--artifacts-destination": str(tmp_path / "files"),
            "--port": str(port),
            "--host": "127.0.0.1",
        }
        assert set(here) == set(COMMAND)
        with mlflow_server([f"{name}={here[name]}" for name in COMMAND], port, tmp_path) as server:
            monkeypatch.setenv("MLFLOW_TRACKING_URI", database)
            monkeypatch.setenv("MLFLOW_DEFAULT_ARTIFACT_ROOT", f"{server}{urlsplit(artifacts).path}")
            with open_run(open_store(tmp_path), "first", parameters={}, tags={}) as run:
                run.artifact(figure)
        with psycopg.connect(database.replace("+psycopg", "")) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT run_uuid FROM runs")
            assert cursor.fetchall() == [(run.run_id,)]
    assert [path.read_text() for path in (tmp_path / "files").rglob("size.txt")] == ["3"]
