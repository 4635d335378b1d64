"""Learning the price model: the settings are those of the library, and a small study runs and repeats."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from omegaconf import DictConfig, OmegaConf
from studies.price_model.price_model import machines, stand_ins
from support.cost_graphs import SMALL_BERT
from support.price_models import PACES, examples, regions_of
from support.study_settings import study_settings

from rlflow import zoo
from rlflow.cost.predicted import physics
from rlflow.cost.predicted.cost import PredictedConfig
from rlflow.cost.predicted.price_model import DESCRIPTION, TREES, read
from rlflow.cost.predicted.training import LearningConfig
from rlflow.cost.region_record import GraphRecord, RegionRecord, RegionTime, write_records
from rlflow.onnx_io import from_onnx


@pytest.fixture(scope="module")
def config(repository: Path) -> DictConfig:
    return study_settings("price_model")


def test_the_settings_are_those_of_the_library(config: DictConfig) -> None:
    assert LearningConfig(**config.learning) == LearningConfig()
    assert config.reference in machines(OmegaConf.to_container(config.processors), config.views_mb, ())


def test_the_processor_most_like_an_unseen_one_stands_in_for_it() -> None:
    """Instructions count for more than caches: a large cache alone does not make an AMD of an Intel."""
    traits = {"avx512": 1.0, "threads": 1.0, "bandwidth_gb_s": 10.0}
    four = {"threads": 4.0, "bandwidth_gb_s": 30.0}
    known = {
        "small": {"traits": {**traits, "l2_mb": 1.0, "cache_mb": 32.0, "amx": 0.0}},
        "large": {"traits": {**traits, "l2_mb": 1.0, "cache_mb": 120.0, "amx": 0.0}},
        "large with AMX": {"traits": {**traits, "l2_mb": 2.0, "cache_mb": 120.0, "amx": 1.0}},
        "huge with AMX": {"traits": {**traits, "l2_mb": 2.0, "cache_mb": 300.0, "amx": 1.0}},
        "huge with AMX-threads-4": {"traits": {**traits, **four, "l2_mb": 2.0, "cache_mb": 300.0, "amx": 1.0}},
    }
    assert stand_ins(known) == {
        "small": "large",
        "large": "small",
        "large with AMX": "huge with AMX",
        "huge with AMX": "large with AMX",
        "huge with AMX-threads-4": "large with AMX",
    }
    assert stand_ins({"small": known["small"]}) == {}


def test_a_view_takes_what_neither_regions_nor_reorders_take(config: DictConfig) -> None:
    """In the median over the graphs of a processor that have views and touch about as much: no step without a graph."""
    kept = {"a": RegionTime(2, 1.0)}
    graphs = [
        GraphRecord(
            "original", "bert", "", processor, mb, kept, 3.0 + views * us / 1e3, 0.0, reorders_ms=1.0, views=views
        )
        for processor, mb, views, us in (
            *(("x", 1.0, 2, 4.0), ("x", 2.0, 1, 5.0), ("x", 2.0, 4, 90.0), ("x", 1.0, 0, 0.0)),
            *(("x", 20.0, 1, 7.0), ("y", 2.1, 3, 1.0)),
        )
    ]
    of = {"traits": {}, "reorders": {}}
    found = machines(dict.fromkeys("xyz", of), (2.0, 10.0, 20.0), graphs)
    assert np.allclose(found["x"].view_ms, [(2.0, 0.005), (20.0, 0.007)])
    assert np.allclose(found["y"].view_ms, [(10.0, 0.001)])
    assert found["z"].view_ms == ((0.0, 0.0),)


def test_the_cost_has_the_settings_of_its_dataclass(repository: Path) -> None:
    section = OmegaConf.to_container(OmegaConf.load(repository / "conf/cost/predicted.yaml"))
    assert isinstance(section, dict)
    assert (section.pop("kind"), section.pop("setting")) == ("predicted", "deployed")
    assert PredictedConfig(**section) == PredictedConfig()


@pytest.fixture
def regions(tmp_path: Path) -> Path:
    """Two families of small BERTs as `make study NAME=prices` would write them, with times by the law of physics."""
    records, graphs = {}, []
    for family, hidden in (("narrow", 32), ("wide", 64)):
        found = regions_of([from_onnx(zoo.build("bert", **{**SMALL_BERT, "layers": 1, "hidden": hidden}))])
        own = examples(found, lambda f: physics.milliseconds(PACES, physics.terms(f, cold=1.0)))
        times = {example.signature: RegionTime(1, example.ms) for example in own}
        for signature, region in found.items():
            records[signature] = RegionRecord(region, signature, family, "small")
        for processor in study_settings("price_model").processors:
            graphs.append(GraphRecord("original", family, "small", processor, 1e3, times, 1.0, 0.01))
    folder = tmp_path / "regions"
    write_records(folder / "regions.jsonl.xz", records.values())
    write_records(folder / "graphs.jsonl.xz", graphs)
    return folder


@pytest.mark.study
def test_a_small_study_repeats(study: Callable[..., Path], store_root: Path, regions: Path) -> None:
    """Twice, in processes of their own: the same bytes. XGBoost fits the trees, ONNX Runtime runs them."""
    files = []
    for name in ("first", "second"):
        folder = store_root / name
        folder.mkdir()
        places = [f"{part}={regions / part}.jsonl.xz" for part in ("regions", "graphs")]
        small = (f"model={folder}", "trees.rounds=20", "learning.least_regions=2")
        metrics = study("price_model", *places, *small) / "price_model/metrics.json"
        files.append([(folder / DESCRIPTION).read_bytes(), (folder / TREES).read_bytes(), metrics.read_bytes()])
        assert set(read(folder).description.trained_on["times"]) == {*study_settings("price_model").processors}
    assert files[0] == files[1]
