"""Workers, in processes of their own, collect what one process does, to the byte."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from experiment.results import read_results
from studies.documents import check_results

TINY = ("round=first", "graph=bert_tiny", "cost=analytic", "rollouts.episodes=5", "rollouts.steps=3")
FIRST = "data/rounds/first"
FILES = ("token_rollouts.npz", "token_rollouts.json")
JOBLIB = ("workers=2", "worker=0,1", "hydra/launcher=joblib", "hydra.launcher.n_jobs=2", "--multirun")


@pytest.fixture
def collect(repository: Path, migrated_database: Path, command: Callable) -> Callable[..., None]:
    """Run the stage in a folder that has what it reads, as a user would."""

    def run(root: Path, *overrides: str) -> None:
        if not root.exists():
            (root / "data/rules").mkdir(parents=True)
            shutil.copy(migrated_database, root / "mlflow.db")
            shutil.copy(repository / "dvc.yaml", root)
            shutil.copy(repository / "src/rlflow/rules/library.jsonl", root / "data/rules")
        command("python", str(repository / "pipelines/collect_rollouts.py"), *TINY, *overrides, cwd=root)

    return run


def archive(root: Path) -> list[bytes]:
    return [(root / FIRST / "rollouts/bert_tiny" / name).read_bytes() for name in FILES]


def figures(root: Path) -> dict[str, object]:
    """All of them but what the episodes took."""
    metrics = read_results(root / "data/results/rounds/first/collect_rollouts/metrics.json")["bert_tiny"]
    return {name: value for name, value in metrics.items() if name not in ("steps_per_s", "wall_time_s", "evaluations")}


@pytest.mark.study
def test_two_workers_collect_what_one_does(collect: Callable, tmp_path: Path):
    """They publish nothing; the stage plays the episode that was lost, and puts all of them together."""
    alone, shared = tmp_path / "alone", tmp_path / "shared"
    collect(alone)
    collect(shared, *JOBLIB)
    episodes = sorted((shared / ".checkpoints/collect_rollouts@first").glob("*/graphs/bert_tiny/episodes/episode-*"))
    assert [path.name for path in episodes] == [f"episode-{number}" for number in range(5)]
    assert not list(shared.rglob(f"{FIRST}/rollouts")), "neither here nor in multirun/"

    shutil.rmtree(episodes[3])
    collect(shared)
    assert archive(shared) == archive(alone)
    assert figures(shared) == figures(alone)
    assert check_results(shared / "data/results") == []
    assert not list((shared / ".checkpoints/collect_rollouts@first").iterdir()), "nothing to go on from"


@pytest.mark.parametrize(
    ("override", "told"),
    [("formulation=pooled", "choose world_model=tokens, or one worker"), ("cost=fused", "no two workers measure")],
)
def test_what_workers_cannot_share_is_refused(collect: Callable, tmp_path: Path, override: str, told: str):
    with pytest.raises(AssertionError, match=told):
        collect(tmp_path / "root", "workers=2", "worker=1", override)


@pytest.mark.slow
def test_rollouts_over_tokens_take_the_reward_of_prices_alone(collect: Callable, tmp_path: Path):
    with pytest.raises(AssertionError, match="reward=end_to_end cannot be used with world_model=tokens"):
        collect(tmp_path / "root", "reward=end_to_end")
