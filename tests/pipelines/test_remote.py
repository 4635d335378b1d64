"""An experiment's artefacts in a shared cache and in a remote: another checkout has its models without a run.

The experiment is that of `make smoke` on this commit; if it has not been run, it is run here, which takes minutes. So
it is a study, which `.ci/run` plays after `make smoke`.
"""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

Command = Callable[..., subprocess.CompletedProcess[str]]
pytestmark = pytest.mark.study
REMOTE = "s3://rlflow/experiments"
REGION = "us-east-1"
KEYS = {"AWS_ACCESS_KEY_ID": "tester", "AWS_SECRET_ACCESS_KEY": "tester", "AWS_DEFAULT_REGION": REGION}


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of an S3 server on this machine, with a bucket."""
    pytest.importorskip("dvc_s3", reason="the extra `dev` has it")
    boto3 = pytest.importorskip("boto3", reason="the extra `dev` has it")
    moto = pytest.importorskip("moto.server", reason="the extra `dev` has it")
    started = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    started.start()
    host, port = started.get_host_and_port()
    address = f"http://{host}:{port}"
    keys = {"aws_access_key_id": "tester", "aws_secret_access_key": "tester", "region_name": REGION}
    client = boto3.client("s3", endpoint_url=address, **keys)
    client.create_bucket(Bucket=REMOTE.split("/")[2])
    client.close()
    yield address
    started.stop()


@pytest.fixture
def experiment(repository: Path, command: Command) -> str:
    """The commit of the tiny experiment."""
    head = command("git", "rev-parse", "HEAD", cwd=repository).stdout.strip()
    reference = f"refs/exps/{head[:2]}/{head[2:]}/smoke"
    if not command("git", "for-each-ref", reference, cwd=repository).stdout:
        smoke = ("dvc", "exp", "run", "--temp", "--force", "--name", "smoke", "-S", "experiment=smoke")
        command(*smoke, cwd=repository)
    return command("git", "rev-parse", reference, cwd=repository).stdout.strip()


@pytest.fixture
def checkout_at(repository: Path, experiment: str, tmp_path: Path, command: Command, server: str) -> Callable:
    """Make a fresh clone of the experiment's commit that knows the remote."""

    def checkout_at(name: str) -> Path:
        folder = tmp_path / name
        command("git", "clone", "--quiet", str(repository), str(folder), cwd=tmp_path)
        command("git", "fetch", "--quiet", "origin", experiment, cwd=folder)
        command("git", "checkout", "--quiet", experiment, cwd=folder)
        command("dvc", "remote", "add", "--local", "--default", "store", REMOTE, cwd=folder)
        command("dvc", "remote", "modify", "--local", "store", "endpointurl", server, cwd=folder)
        return folder

    return checkout_at


def test_a_fresh_clone_pulls_the_models_and_optimises_with_them(
    repository: Path, checkout_at: Callable, command: Command
):
    """Without a run: nothing of the clone's own was trained, and `dvc status` finds nothing to do."""
    publisher = checkout_at("publisher")
    command("dvc", "cache", "dir", "--local", str(repository / ".dvc/cache"), cwd=publisher)
    command("dvc", "push", cwd=publisher, **KEYS)

    clone = checkout_at("clone")
    assert not (clone / "data/policies").exists()
    command("dvc", "pull", cwd=clone, **KEYS)
    assert "up to date" in command("dvc", "status", cwd=clone).stdout
    assert not (clone / "mlflow.db").exists(), "which any run would have left"

    command("rlflow", "zoo", "build", "tiny_chain", "-o", "tiny.onnx", cwd=clone)
    learned = ("--method", "rlflow", "--trained-on", "bert_tiny")
    report = command("rlflow", "optimise", "tiny.onnx", "-o", "faster.onnx", *learned, cwd=clone)
    assert (clone / "faster.onnx").exists(), report.stdout


def test_a_shared_cache_holds_the_models_of_all_checkouts(repository: Path, checkout_at: Callable, command: Command):
    """Another checkout takes them from there, without a remote."""
    checkout = checkout_at("colleague")
    command("dvc", "cache", "dir", "--local", str(repository / ".dvc/cache"), cwd=checkout)
    command("dvc", "checkout", cwd=checkout)
    assert sorted(path.name for path in (checkout / "data/policies").iterdir()) == ["bert_tiny", "t5_tiny"]
    assert "up to date" in command("dvc", "status", cwd=checkout).stdout


def test_an_experiment_is_applied_where_no_study_was_run(
    repository: Path, experiment: str, checkout_at: Callable, command: Command
):
    """And nothing is left to do: what studies keep, which this checkout never had, is no part of the experiment."""
    checkout = checkout_at("newcomer")
    command("dvc", "cache", "dir", "--local", str(repository / ".dvc/cache"), cwd=checkout)
    command("git", "checkout", "--quiet", "HEAD~1", cwd=checkout)
    command("dvc", "exp", "apply", experiment, cwd=checkout)
    assert "up to date" in command("dvc", "status", cwd=checkout).stdout
