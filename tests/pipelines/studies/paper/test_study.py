"""The papers' evaluations: all that is configured exists, the page is that of the figures, parts are resumed."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from experiment.results import read_results
from omegaconf import OmegaConf
from studies.paper.write_page import written
from support.study_settings import plain_settings

TINY = ("part=graphs", "graphs.graphs=[tiny_chain,tiny_merge]", "graphs.seeds=[0,1]", "graphs.steps=4", "processes=1")


def test_graphs_and_temperatures_are_those_that_the_papers_published(repository: Path) -> None:
    settings = plain_settings("paper")
    published: Any = OmegaConf.to_container(OmegaConf.load(repository / "conf/study/published.yaml"))
    assert {*settings["agents"]["graphs"]} == {*published["table_1"]} == {*published["table_2"]}
    assert len(settings["candidates"]["graphs"]) == 7
    assert settings["temperatures"]["dreamt"]["temperatures"] == [row[0] for row in published["table_3"]]


def test_rewards_are_those_of_figure_5_and_the_whole_grid() -> None:
    rewards = plain_settings("paper")["rewards"]["rewards"]
    assert [*rewards][:5] == ["R1", "R2", "R3", "R4", "R5"]
    weighted = [said for said in rewards.values() if said["kind"] == "weighted"]
    assert sorted(said["alpha"] for said in weighted) == [tenths / 10 for tenths in range(11)]
    assert all(said["alpha"] + said["beta"] == pytest.approx(1.0) for said in weighted)


def test_the_formulations_have_as_many_choices() -> None:
    settings = plain_settings("paper")
    graph_level = settings["agents"]["graph_level"]
    assert len(graph_level["temperatures"]) == 5
    horizon = settings["controller"]["dream"]["max_steps"]
    assert graph_level["environment"]["max_steps"] == graph_level["dream"]["max_steps"] == horizon


def test_the_full_size_is_the_same_study_with_more_of_everything() -> None:
    small, full = plain_settings("paper"), plain_settings("paper_full")
    assert small.keys() == full.keys()
    for part in ("agents", "rewards"):
        steps = [size[part]["model_free"]["ppo"]["total_steps"] for size in (small, full)]
        assert steps[0] < steps[1]


def test_the_page_is_that_of_the_committed_figures(repository: Path, publishable: tuple[Path, ...]) -> None:
    """Or of those that are to be committed with it."""
    page = (repository / "docs/results.md").read_text()
    assert any(page == written(root) for root in publishable), "write it anew: make study NAME=paper.write_page"


@pytest.mark.study
@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["part=grafs"], "there is no part 'grafs': choose one of graphs, agents"),
        ([*TINY, "workers=2", "worker=2"], "there is no worker 2 among 2"),
        (["part=latency", "latency.graphs=[tiny_chain]"], "nothing was found yet on tiny_chain: run part=agents"),
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


@pytest.mark.study
def test_agents_are_timed_by_the_part_that_comes_after(study: Callable[..., Path]) -> None:
    """All agents of one small graph, then the latencies of what they found."""
    tiny = [
        "agents.graphs=[tiny_chain]",
        "agents.seeds=[0]",
        "~agents.searches.equality_saturation",
        "~agents.searches.guided_chains",
        "agents.dreamt.rollouts.episodes=4",
        "agents.dreamt.ppo.total_steps=1600",
        "agents.model_free.ppo.total_steps=256",
        "agents.graph_level.rollouts.episodes=4",
        "agents.graph_level.world_model={encoder_epochs: 1, epochs: 1}",
        "agents.graph_level.ppo.total_steps=4096",
        "agents.graph_level.temperatures=[0.5,1.0]",
        "latency.timing.rounds=2",
    ]
    study("paper.cells", "part=agents", *tiny)
    results = study("paper.cells", "part=latency", *tiny) / "paper"
    agents = json.loads((results / "agents.json").read_text())["tiny_chain"]
    timed = json.loads((results / "latency.json").read_text())["tiny_chain"]
    methods = {"greedy", "taso", "rlflow", "dreamt", "model-free", "graph_level", "taso by its rules"}
    assert {*timed} == {"original", *methods} <= {*agents, "original"}
