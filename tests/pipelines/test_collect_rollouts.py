"""Workers, in processes of their own, collect what one process does, to the byte."""

import runpy
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from experiment.results import read_results
from studies.documents import check_results

from rlflow.errors import InputError

TINY = ("graph=bert_tiny", "cost=analytic", "rollouts.episodes=5", "rollouts.steps=3")
FILES = ("token_rollouts.npz", "token_rollouts.json")
JOBLIB = ("workers=2", "worker=0,1", "hydra/launcher=joblib", "hydra.launcher.n_jobs=2", "--multirun")


@pytest.fixture
def root(repository: Path, store_root: Path) -> Path:
    """A folder that has what the stage reads."""
    (store_root / "data/rules").mkdir(parents=True)
    shutil.copy(repository / "dvc.yaml", store_root)
    shutil.copy(repository / "src/rlflow/rules/library.jsonl", store_root / "data/rules")
    return store_root


def archive(root: Path) -> list[bytes]:
    return [(root / "data/rollouts/bert_tiny" / name).read_bytes() for name in FILES]


def figures(root: Path) -> dict[str, object]:
    """All of them but what the episodes took."""
    metrics = read_results(root / "data/results/collect_rollouts/metrics.json")["bert_tiny"]
    return {name: value for name, value in metrics.items() if name not in ("steps_per_s", "wall_time_s", "evaluations")}


@pytest.mark.study
def test_two_workers_collect_what_one_does(root: Path, repository: Path, tmp_path_factory, command: Callable):
    """They publish nothing; the stage plays the episode that was lost, and puts all of them together."""
    alone, shared = root, tmp_path_factory.mktemp("shared") / "root"
    shutil.copytree(alone, shared)

    def collect(folder: Path, *overrides: str) -> None:
        command("python", str(repository / "pipelines/collect_rollouts.py"), *TINY, *overrides, cwd=folder)

    collect(alone)
    collect(shared, *JOBLIB)
    checkpoints = shared / ".checkpoints/collect_rollouts"
    episodes = sorted(checkpoints.glob("*/graphs/bert_tiny/episodes/*/episode-*"))
    assert [path.name for path in episodes] == [f"episode-{number}" for number in range(5)]
    assert not list(shared.rglob("data/rollouts")), "neither here nor in multirun/"

    shutil.rmtree(episodes[3])
    collect(shared)
    assert archive(shared) == archive(alone)
    assert figures(shared) == figures(alone)
    assert check_results(shared / "data/results") == []
    assert not list(checkpoints.iterdir()), "nothing to go on from"


@pytest.mark.parametrize(
    ("overrides", "told"),
    [
        (["workers=2", "worker=1", "world_model=graph_level"], "choose world_model=match_level, or one worker"),
        (["workers=2", "worker=1", "cost=fused"], "no two workers measure"),
        (["workers=2", "worker=1", "reward=end_to_end"], "workers beside each other disturb what is timed"),
    ],
)
def test_what_cannot_be_shared_or_measured_is_refused(
    overrides: list[str], told: str, root: Path, repository: Path, monkeypatch: pytest.MonkeyPatch
):
    """In this process, as Hydra would start it."""
    monkeypatch.chdir(root)
    monkeypatch.setattr("sys.argv", ["collect_rollouts.py", *TINY[:2], *overrides])
    monkeypatch.setenv("HYDRA_FULL_ERROR", "1")
    with pytest.raises(InputError, match=told):
        runpy.run_path(str(repository / "pipelines/collect_rollouts.py"), run_name="__main__")
