"""Prices: the study's configuration fits the library, and a tiny run goes from models to files that can be read."""

import json
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pytest
from omegaconf import DictConfig, OmegaConf
from studies.documents import check_results
from studies.prices.region_gathering import Configuration, GatheringConfig
from studies.prices.region_timings import MeasuringConfig
from support.study_settings import study_settings

from rlflow import zoo
from rlflow.cost.fragment import describe
from rlflow.cost.region_record import read_graphs, read_records, read_rewrites
from rlflow.runtime.timing.batches import BatchConfig

TINY = (
    "models=[{family: mlp, entry: mlp}, {family: tiny, entry: tiny_scale}, {family: tiny, entry: tiny_merge}]",
    "gathering.walks=1",
    "gathering.tried=20",
    "measuring.again=3",
    "measuring.slow_pace=1000.0",  # a test passes on a busy machine
    "measuring.batch.eviction_bytes=1_000_000",
)


@pytest.fixture(scope="module")
def config(repository: Path) -> DictConfig:
    return study_settings("prices")


def test_the_configuration_has_every_setting_of_its_dataclasses(config: DictConfig):
    settings = OmegaConf.to_container(config, resolve=True)
    batch = settings["measuring"].pop("batch")
    ours = [(BatchConfig, batch), (GatheringConfig, settings["gathering"]), (MeasuringConfig, settings["measuring"])]
    for kind, section in ours:
        assert {*section, "seed", "batch"} >= {field.name for field in fields(kind)}
        kind(**section)


def test_every_model_of_the_zoo_is_there_in_several_configurations(config: DictConfig):
    """But for the loop, whose operators the library carries verbatim, and a model that came after the prices."""
    settings = OmegaConf.to_container(config.models, resolve=True)
    models = [Configuration(**model) for model in settings]
    assert {model.entry for model in models} == {*zoo.names()} - {"loop", "mobilenet_v3"}
    assert len({model.name for model in models}) == len(models) > 70
    assert min(Counter(model.family for model in models).values()) > 2
    for model in models:
        assert {*model.settings} <= {*zoo.describe(model.entry).settings}


@pytest.mark.study
def test_a_tiny_run(repository: Path, store_root: Path, command: Callable):
    """From models to files that can be read; all that is named is there, and nothing is left to go on from."""
    command("python", str(repository / "pipelines/study.py"), "prices", *TINY, cwd=store_root)
    assert check_results(store_root / "data/results") == []
    figures = json.loads((store_root / "data/results/prices/metrics.json").read_text())
    folder = store_root / "data/regions"
    records = list(read_records(folder / "regions.jsonl.xz"))
    rewrites, graphs = list(read_rewrites(folder / "rewrites.jsonl.xz")), list(read_graphs(folder / "graphs.jsonl.xz"))
    assert len(records) == figures["regions"] > 10
    assert {record.family for record in records} == {"mlp", "tiny"}
    timed = {record.signature for record in records}
    assert all(describe(record.graph, record.graph.order).signature == record.signature for record in records)
    assert timed.issuperset(s for rewrite in rewrites for s in (*rewrite.before, *rewrite.after))
    assert len(rewrites) == figures["rewrites"] > 5
    assert {graph.configuration for graph in graphs} == {"mlp", "tiny_scale", "tiny_merge"}
    assert f"{len(records)} distinct regions" in (folder / "README.md").read_text()
    assert not list((store_root / ".checkpoints/prices").iterdir())


@pytest.mark.study
def test_a_run_whose_time_is_over_goes_on(repository: Path, store_root: Path, command: Callable):
    """With what was gathered; of timings, tests/pipelines/studies/prices/test_region_timings.py says so."""
    program = ("python", str(repository / "pipelines/study.py"), "prices", *TINY)
    first = command(*program, "measuring.time_s=1e-9", cwd=store_root, check=False)
    assert first.returncode
    assert "run it again" in first.stderr
    assert not (store_root / "data/regions").exists(), "nothing is published where nothing was timed"
    (gathered,) = (store_root / ".checkpoints/prices").iterdir()
    assert {path.name for path in gathered.iterdir()} == {"mlp.json", "tiny.json"}

    shutil.copy(
        gathered / "tiny.json", gathered / "mlp.json"
    )  # seen in the result only if it is read, not gathered anew
    command(*program, cwd=store_root)
    records = read_records(store_root / "data/regions/regions.jsonl.xz")
    assert {record.family for record in records} == {"tiny"}
    assert not list((store_root / ".checkpoints/prices").iterdir())
