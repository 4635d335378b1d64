"""The papers' evaluations: all that is configured exists, the page is that of the figures, parts are resumed."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from experiment.results import read_results
from omegaconf import DictConfig, OmegaConf
from studies.paper.write_page import written
from studies.program import CONF
from support.study_settings import plain_settings
from tracking.composition import compose_configuration

TINY = ("part=graphs", "graphs.graphs=[tiny_chain,tiny_merge]", "graphs.seeds=[0,1]", "graphs.steps=4", "processes=1")


def composed(*overrides: str) -> DictConfig:
    return compose_configuration(["experiment=paper", *overrides])


def _swept(sweep: str) -> dict[str, str]:
    """What a sweep goes over."""
    file = next(CONF.glob(f"sweep/{sweep.removeprefix('sweep=')}.yaml"))
    params: dict[str, str] = OmegaConf.to_container(OmegaConf.load(file).hydra.sweeper.params)  # type: ignore[assignment]
    return params


def test_graphs_and_temperatures_are_those_that_the_papers_published(repository: Path) -> None:
    settings, experiment = plain_settings("paper"), composed("sweep=paper_temperatures")
    published: Any = OmegaConf.to_container(OmegaConf.load(repository / "conf/study/published.yaml"))
    asked = {*composed().graphs}
    assert asked == {*settings["unseen"]["graphs"]} == {*published["table_1"]} == {*published["table_2"]}
    assert len(settings["candidates"]["graphs"]) == 7
    assert experiment.sweep.temperatures == [row[0] for row in published["table_3"]]


def test_rewards_are_those_of_figure_5_and_the_whole_grid() -> None:
    figure_5, grid = (_swept(f"sweep={sweep}") for sweep in ("paper_rewards", "paper_reward_weights"))
    assert len(figure_5["reward"].split(",")) == 5
    weighted = [composed(f"reward={name}").reward for name in figure_5["reward"].split(",")]
    alphas = [reward.alpha for reward in weighted if reward.kind == "weighted"]
    assert sorted([*alphas, *map(float, grid["reward.alpha"].split(","))]) == [tenths / 10 for tenths in range(11)]


def test_all_agents_have_as_many_choices() -> None:
    tokens, vectors = composed(), composed("world_model=graph_level")
    free = composed("sweep=paper_model_free")
    horizon = tokens.controller.dream.max_steps
    assert (
        horizon == vectors.controller.dream.max_steps == vectors.environment.max_steps == free.controller.real.max_steps
    )


@pytest.mark.parametrize("formulation", ["match_level", "graph_level"])
def test_the_full_size_is_the_same_experiment_with_more_of_everything(formulation: str) -> None:
    chosen = f"world_model={formulation}"
    small, full = composed(chosen), composed("experiment=paper_full", chosen)
    assert small.graphs == full.graphs
    assert small.rollouts.episodes < full.rollouts.episodes
    assert small.evaluation.methods.keys() == full.evaluation.methods.keys()


def test_the_full_size_is_the_same_study_with_more_of_everything() -> None:
    small, full = plain_settings("paper"), plain_settings("paper_full")
    assert small.keys() == full.keys()
    assert small["graphs"]["steps"] < full["graphs"]["steps"]


def test_the_page_is_that_of_the_committed_figures(repository: Path, publishable: tuple[Path, ...]) -> None:
    """Or of those that are to be committed with it."""
    page = (repository / "docs/results.md").read_text()
    assert any(page == written(root) for root in publishable), "write it anew: make study NAME=paper.write_page"


@pytest.mark.study
@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["part=grafs"], "there is no part 'grafs': choose one of graphs, unseen"),
        ([*TINY, "workers=2", "worker=2"], "there is no worker 2 among 2"),
        (["part=unseen"], "no job has ended in multirun/all_stages"),
    ],
)
def test_what_cannot_be_run_is_refused_in_a_sentence(
    study_refused: Callable[..., str], asked: list[str], said: str
) -> None:
    assert said in study_refused("paper.cells", *asked)


@pytest.mark.study
def test_a_part_that_is_killed_goes_on_and_workers_share_it(
    repository: Path, store_root: Path, study: Callable[..., Path], study_refused: Callable[..., str]
) -> None:
    """Killed without a chance to tidy up, after its first cell; what was done is not done again."""
    program = ("paper.cells", *TINY)
    started = [sys.executable, str(repository / "pipelines/study.py"), *program]
    killed = subprocess.Popen(started, cwd=store_root, start_new_session=True)
    kept = wait_for(lambda: [*(store_root / ".checkpoints").glob("paper_graphs/*/*-0.json")], killed)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    before = {path: path.stat().st_mtime_ns for path in kept}

    study(*program, "workers=2", "worker=0")
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert not (store_root / "data/results/paper").exists(), "a worker publishes nothing"
    failed = study_refused(*program, "longest_s=0.01")
    assert "without a result, to be tried again by the next run: tiny_" in failed
    assert {path: path.stat().st_mtime_ns for path in before} == before, "a failure costs nothing of the others"
    found = read_results(study(*program) / "paper/graphs.json")
    assert {graph: variants["walk"]["seeds"] for graph, variants in found.items()} == {
        "tiny_chain": [0, 1],
        "tiny_merge": [0, 1],
    }
    assert not [*(store_root / ".checkpoints").glob("paper_graphs/*")], "nothing is kept of what is done"


def wait_for(found: Callable[[], list[Path]], process: subprocess.Popen) -> list[Path]:
    """The first files that there are, while a process works."""
    while process.poll() is None:
        if files := found():
            return files
        time.sleep(0.05)
    raise AssertionError("the program ended before it was killed")
