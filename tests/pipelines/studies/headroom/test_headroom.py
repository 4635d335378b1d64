"""The headroom study: everything that its configuration names exists, and a tiny study runs from end to end."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from omegaconf import DictConfig
from studies.documents import check_results
from support.study_settings import study_settings

from rlflow.cost import price_list
from rlflow.cost.measured import empty_price_list
from rlflow.optimise.gate import GateConfig

TINY = ("graphs.analytic=[tiny_merge]", "graphs.gpu=[]", "graphs.fused=[tiny_merge]", "methods=[greedy,random]")


@pytest.fixture(scope="module")
def config(repository: Path) -> DictConfig:
    return study_settings("headroom")


def options(repository: Path, group: str) -> set[str]:
    return {file.stem for file in (repository / "conf" / group).glob("*.yaml")}


def test_whatever_is_named_is_there(config: DictConfig, repository: Path):
    graphs = {graph for named in config.graphs.values() for graph in named}
    assert graphs | set(config.latency.graphs) <= options(repository, "graph")
    assert {*config.graphs, config.latency.cost} <= options(repository, "cost")
    assert {*config.methods} <= options(repository, "search")
    assert {*config.time_s} - {"default"} <= graphs
    assert {*config.expansions} <= {*config.methods}


def test_the_graphs_are_those_on_which_searches_are_compared(config: DictConfig):
    """The six of the paper's Table 1, others that have been searched before, and heads that read one token."""
    compared = set(config.graphs.analytic)
    assert compared >= {"bert", "vit", "inception_v3", "resnet18", "resnet50", "squeezenet1_1"}
    assert compared >= {"nasrnn", "resnext50", "nasnet_a", "transformer_transducer"}
    assert len([graph for graph in compared if "_token" in graph]) == 8
    assert set(config.graphs.gpu) < compared


def test_the_timing_has_every_setting_of_its_dataclass(config: DictConfig):
    assert GateConfig(**config.latency.gate).rounds == config.latency.gate.rounds
    assert set(config.latency.gate) == {"draws", "rounds", "runs_per_round", "threads"}


@pytest.mark.study
def test_a_tiny_study(repository: Path, store_root: Path, command: Callable):
    """Two cells, and a cost that is left out, since there is no price list."""
    program = ("python", str(repository / "pipelines/study.py"), "headroom", *TINY)
    command(*program, cwd=store_root)
    results = store_root / "data/results"
    assert check_results(results) == []
    assert {path.name for path in (results / "headroom").iterdir()} == {"metrics.json", "table.md", "improvement.png"}
    metrics = json.loads((results / "headroom/metrics.json").read_text())
    assert list(metrics["tiny_merge"]) == ["analytic"]
    assert list(metrics["tiny_merge"]["analytic"]) == ["original", "greedy", "random"]
    assert metrics["tiny_merge"]["analytic"]["greedy"]["improvement_percent"] > 10
    assert not list((store_root / ".checkpoints/headroom").iterdir()), "nothing to go on from"


@pytest.mark.study
def test_what_a_study_measures_joins_the_published_prices(repository: Path, store_root: Path, command: Callable):
    """Which begin empty here, as if nothing of this graph had been measured."""
    prices = store_root / "data/prices/zoo.json.gz"
    empty_price_list(threads=1).save(prices)
    program = (
        "python",
        str(repository / "pipelines/study.py"),
        "headroom",
        "graphs.analytic=[]",
        *TINY[1:3],
        "methods=[greedy]",
    )
    command(*program, cwd=store_root)
    row = json.loads((store_root / "data/results/headroom/metrics.json").read_text())["tiny_merge"]["fused"]["greedy"]
    assert row["prices_measured"] == len(price_list.read(prices).prices) > 1


@pytest.mark.study
def test_a_tiny_timing(repository: Path, store_root: Path, command: Callable):
    """Of microseconds, which prove no more than that the figures are there and belong together."""
    program = ("python", str(repository / "pipelines/study.py"), "headroom.latency")
    settings = ("latency.graphs=[tiny_merge]", "latency.gate.rounds=3", "latency.time_s=5.0")
    command(*program, *settings, cwd=store_root)
    assert check_results(store_root / "data/results") == []
    timed = json.loads((store_root / "data/results/headroom/latency.json").read_text())
    assert list(timed) == ["tiny_merge"]
    for figures in timed["tiny_merge"].values():
        product = figures["original_over_greedy"]["value"] * figures["greedy_over_equality_saturation"]["value"]
        assert product == pytest.approx(figures["original_over_equality_saturation"]["value"], rel=0.5)
        assert figures["rounds"] == 3
