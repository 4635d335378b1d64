"""Learning the price model: the settings are those of the library, and a small study runs and repeats."""

from collections.abc import Callable
from pathlib import Path

import pytest
from omegaconf import DictConfig, OmegaConf
from studies.documents import check_results
from support.cost_graphs import SMALL_BERT
from support.price_models import PACES, examples, regions_of
from support.study_settings import study_settings

from rlflow import zoo
from rlflow.cost.predicted import physics
from rlflow.cost.predicted.cost import PredictedConfig
from rlflow.cost.predicted.price_model import DESCRIPTION, TREES, read
from rlflow.cost.predicted.training import LearningConfig
from rlflow.cost.region_record import GraphRecord, RegionRecord, RewriteRecord, write_records
from rlflow.onnx_io import from_onnx


@pytest.fixture(scope="module")
def config(repository: Path) -> DictConfig:
    return study_settings("price_model")


def test_the_settings_are_those_of_the_library(config: DictConfig) -> None:
    assert LearningConfig(**config.learning) == LearningConfig()
    assert config.far == PredictedConfig().far


def test_the_cost_has_the_settings_of_its_dataclass(repository: Path) -> None:
    section = OmegaConf.to_container(OmegaConf.load(repository / "conf/cost/predicted.yaml"))
    assert isinstance(section, dict)
    assert (section.pop("kind"), section.pop("setting")) == ("predicted", "deployed")
    assert PredictedConfig(**section) == PredictedConfig()


@pytest.fixture
def regions(tmp_path: Path) -> Path:
    """Two families of small BERTs as `make study NAME=prices` would write them, with times by the law of physics."""
    records, graphs, rewrites = {}, [], []
    for family, hidden in (("narrow", 32), ("wide", 64)):
        found = regions_of([from_onnx(zoo.build("bert", **{**SMALL_BERT, "layers": 1, "hidden": hidden}))])
        for example in examples(found, lambda f: physics.milliseconds(PACES, physics.terms(f))):
            region = found[example.signature]
            records[example.signature] = RegionRecord(region, example.signature, example.ms, 0.0, 0.9, family, "small")
        graphs.append(GraphRecord(dict.fromkeys(found, 1), 0, "original", family, "small"))
        rewrites += [RewriteRecord((a,), (b,), 0, "rule", family, "small") for a in found for b in found if a < b]
    folder = tmp_path / "regions"
    for name, content in (("regions", records.values()), ("graphs", graphs), ("rewrites", rewrites)):
        write_records(folder / f"{name}.jsonl.xz", content)
    return folder


@pytest.mark.study
def test_a_small_study_repeats(repository: Path, store_root: Path, command: Callable, regions: Path) -> None:
    """Twice, in processes of their own: the same bytes. XGBoost fits the trees, ONNX Runtime runs them."""
    files = []
    for name in ("first", "second"):
        folder = store_root / name
        folder.mkdir()
        places = [f"{part}={regions / part}.jsonl.xz" for part in ("regions", "graphs", "rewrites")]
        program = ("python", str(repository / "pipelines/study.py"), "price_model", *places, f"model={folder}")
        command(*program, "trees.rounds=20", "learning.least_regions=2", cwd=store_root)
        assert check_results(store_root / "data/results") == []
        metrics = store_root / "data/results/price_model/metrics.json"
        files.append([(folder / DESCRIPTION).read_bytes(), (folder / TREES).read_bytes(), metrics.read_bytes()])
        assert set(read(folder).description.trained_on["families"]) == {"narrow", "wide"}
    assert files[0] == files[1]
