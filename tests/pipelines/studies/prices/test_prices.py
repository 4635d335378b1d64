"""Prices: the study's configuration fits the library, and a tiny run goes from models to files that can be read."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from omegaconf import DictConfig, OmegaConf
from studies.prices.data_sheet import figures
from studies.prices.placed_variants import MeasuringConfig, placed_variants
from studies.prices.prices import GRAPHS, REGIONS, merged
from studies.prices.variants import Configuration, VariantsConfig, original_of, round_of, variants
from support.exports.full_size import FULL_SIZE
from support.exports.priced import SCRIPTED, TRACED
from support.study_settings import study_settings

from rlflow import zoo
from rlflow.cost.fragment import describe
from rlflow.cost.region_record import (
    Faster,
    GraphRecord,
    RegionRecord,
    RegionTime,
    read_graphs,
    read_records,
    write_records,
)
from rlflow.runtime.hardware import processor_name
from rlflow.runtime.profile import ProfileConfig

QUICK = MeasuringConfig(VariantsConfig(2, 1, (3,)), ProfileConfig(1, 2), slow_pace=1000.0)
TINY = (
    "models=[{family: mlp, entry: mlp}, {family: tiny, entry: tiny_scale}, {family: tiny, entry: tiny_merge}]",
    "full_size=[{family: mlp, entry: mlp, settings: {batch: 3}}]",
    "exported=[]",
    "variants.models.walks=1",
    "profile.sessions=1",
    "measuring.slow_pace=1000.0",  # a test passes on a busy machine
)


@pytest.fixture(scope="module")
def config(repository: Path) -> DictConfig:
    return study_settings("prices")


def test_the_configuration_has_every_setting_of_its_dataclasses(config: DictConfig):
    settings = OmegaConf.to_container(config, resolve=True)
    given = {**settings["measuring"], "variants": 0, "profile": 0, "seed": 0}
    assert {*given} == {field.name for field in fields(MeasuringConfig)}
    assert {*settings["profile"], "threads"} == {field.name for field in fields(ProfileConfig)}
    for ways in settings["variants"].values():
        assert {*ways, "round"} == {field.name for field in fields(VariantsConfig)}


def test_every_model_of_the_zoo_is_there_in_several_configurations(config: DictConfig):
    """But for the loop, whose operators the library carries verbatim, and one that is there at its full size alone."""
    settings = OmegaConf.to_container(config, resolve=True)
    models = [Configuration(**model) for model in settings["models"]]
    full = [Configuration(**model) for model in settings["full_size"]]
    assert {model.entry for model in models} == {*zoo.names()} - {"loop", "mobilenet_v3"}
    assert "mobilenet_v3" in {model.entry for model in full}
    names = [model.name for model in (*models, *full)]
    assert len(set(names)) > 85
    assert min(Counter(model.family for model in models).values()) > 2
    for model in models:
        assert {*model.settings} <= {*zoo.describe(model.entry).settings}


def test_what_prices_are_learned_from_judges_none(config: DictConfig):
    settings: Any = OmegaConf.to_container(config, resolve=True)
    files = {model["entry"] for model in settings["exported"]}
    assert files == {f"{a.name}_script.onnx" for a in SCRIPTED} | {f"{a.name}_dynamo.onnx" for a in TRACED}
    assert not {a.name for a in (*SCRIPTED, *TRACED)} & {a.name for a in FULL_SIZE}


def test_an_export_that_is_not_there_is_named_before_anything_is_run(study_refused: Callable[..., str]):
    said = study_refused("prices", "exports=nowhere", "exported=[{family: bert, entry: roberta_script.onnx}]")
    assert "nowhere/roberta_script.onnx is not there: make renew NAME='exports.priced nowhere'" in said


def test_variants_are_the_original_and_what_became_of_it():
    found = dict(variants(Configuration("mlp", "mlp").graph(), VariantsConfig(5, 2, (2, 4)), seed=0))
    assert {"original", "walk 0, 2 steps", "walk 1, 4 steps"} <= found.keys()
    assert len({found[name].order for name in found}) > 2


def test_a_configuration_has_the_domains_that_its_rewrites_may_use():
    graph = Configuration("mlp", "mlp", {}, {"com.microsoft": 1, "": 20}).graph()
    assert graph.header.offers({"com.microsoft": 1, "": 20})


def rounding_ms(graph: GraphRecord) -> float:
    """The most that a sum of times may gain as each is written to five digits."""
    return 0.5e-5 * (1.01 + sum(time.times for time in graph.regions.values()))


def test_a_graph_is_what_its_regions_are():
    """Each region is there as a graph of its signature, and the times of all make up most of that of the graph."""
    row = placed_variants(Configuration("bert", "bert", zoo.describe("bert").small), QUICK)
    graphs = [GraphRecord.from_json(graph) for graph in row["graphs"]]
    assert {"original", "walk 0, 3 steps"} <= {graph.variant for graph in graphs}
    for graph in graphs:
        assert graph.regions.keys() <= row["regions"].keys()
        assert 0 < graph.regions_ms <= graph.ms + rounding_ms(graph)
        assert graph.processor == processor_name()
        assert graph.told
    assert not row["left_out"]


def test_what_is_carried_verbatim_is_taken_off():
    """A loop has no text: its time is neither a region's nor the graph's."""
    row = placed_variants(Configuration("loop", "loop"), QUICK)
    (graph, *_) = [GraphRecord.from_json(graph) for graph in row["graphs"]]
    assert "Loop" not in json.dumps(row["regions"])
    assert graph.ms >= graph.regions_ms - rounding_ms(graph)


def graph(variant: str, told: float | None, faster: Faster | None = None) -> GraphRecord:
    return GraphRecord(
        variant, "bert", "small", "epyc", 1.0, {"a": RegionTime(1, 1.0)}, 1.0, 0.01, faster=faster, told=told
    )


def test_a_first_round_replaces_what_was_measured_of_a_model_on_this_processor(tmp_path: Path) -> None:
    """All rounds of it, as another price model found them; a later round replaces what has its name alone."""
    region = RegionRecord(Configuration("mlp", "mlp").graph(), "a", "mlp", "mlp")
    before = [
        replace(graph(variant, None), processor=where) for where in ("epyc", "xeon") for variant in ("one", "two")
    ]
    write_records(tmp_path / REGIONS, [region])
    write_records(tmp_path / GRAPHS, before)
    row = {"graphs": [replace(graph("one", None), ms=5.0).to_json()], "regions": {}}
    kept = {
        anew: [(g.processor, g.variant, g.ms) for g in merged(tmp_path, {"bert": row}, anew=anew)[1]]
        for anew in (True, False)
    }
    other = [("xeon", "one", 1.0), ("xeon", "two", 1.0)]
    assert kept == {True: [("epyc", "one", 5.0), *other], False: [("epyc", "one", 5.0), ("epyc", "two", 1.0), *other]}


def test_a_region_that_no_kernel_computes_tells_no_price(tmp_path: Path) -> None:
    """A second product of the same operands: ONNX Runtime computes one."""
    region = RegionRecord(Configuration("mlp", "mlp").graph(), "a", "mlp", "mlp")
    both = replace(graph("one", None), regions={"a": RegionTime(1, 1.0), "b": RegionTime(1, 0.0)})
    write_records(tmp_path / REGIONS, [region, replace(region, signature="b")])
    write_records(tmp_path / GRAPHS, [both])
    regions, graphs = merged(tmp_path, {}, anew=False)
    assert [record.signature for record in regions] == ["a"]
    assert [{*record.regions} for record in graphs] == [{"a"}]


@pytest.mark.parametrize("number", [1, 2, 3])
def test_each_round_has_its_own_original(number: int) -> None:
    (original, _), *_ = variants(Configuration("mlp", "mlp").graph(), VariantsConfig(1, 0, (), number), seed=0)
    assert (original, round_of(original)) == (original_of(number), number)
    assert round_of("walk 0, 12 steps") == 1


def test_a_claim_is_a_gain_that_was_told_before() -> None:
    """A walk was told to be slower and did not run beside its original, and of one nothing was told."""
    graphs = [
        *(graph("original", 1.0), graph("walk 0, 2 steps", 0.9), graph("walk 1, 2 steps", 2.0, Faster(1.5, 1.4, 1.6))),
        *(graph("predicted, round 1", 1.25, Faster(1.25, 1.2, 1.3)), graph("walk 2, 9 steps", None)),
        graph("predicted, round 2", 2.0, Faster(0.9, 0.8, 0.99)),
    ]
    regions = [RegionRecord(Configuration("mlp", "mlp").graph(), "a", "mlp", "mlp")]
    claims = figures(regions, graphs, ())["claims"]
    true = {"claimed": 1, "faster": 1.0, "surely_faster": 1, "surely_slower": 0, "slower_by_2_percent": 0}
    assert claims == {
        "epyc": {
            "predicted, round 1": true | {"told": 1.25, "real": 1.25, "worst": 1.25},
            "predicted, round 2": {
                "claimed": 1,
                "faster": 0.0,
                "surely_faster": 0,
                "surely_slower": 1,
                "slower_by_2_percent": 1,
            }
            | {"told": 2.0, "real": 0.9, "worst": 0.9},
            "walk": true | {"told": 2.0, "real": 1.5, "worst": 1.5},
        }
    }


@pytest.mark.study
def test_a_tiny_run(study: Callable[..., Path], store_root: Path):
    """From models to files that can be read; all that is named is there, and nothing is left to go on from."""
    figures = json.loads((study("prices", *TINY) / "prices/metrics.json").read_text())
    folder = store_root / "data/regions"
    records, graphs = list(read_records(folder / "regions.jsonl.xz")), list(read_graphs(folder / "graphs.jsonl.xz"))
    assert len(records) == figures["regions"] > 10
    assert {record.family for record in records} == {"mlp", "tiny"}
    assert all(describe(record.graph, record.graph.order).signature == record.signature for record in records)
    assert {s for graph in graphs for s in graph.regions} == {record.signature for record in records}
    assert {graph.configuration for graph in graphs} == {"mlp", "tiny_scale", "tiny_merge", "mlp batch=3"}
    assert {graph.processor for graph in graphs} == {processor_name()}
    assert f"{len(records)} distinct regions" in (folder / "README.md").read_text()
    assert not list((store_root / ".checkpoints/prices").iterdir())

    # Another run takes the place of what it measures again, and leaves alone what another processor did.
    other = [replace(graph, processor="another") for graph in graphs[:1]]
    write_records(folder / "graphs.jsonl.xz", [*other, *graphs])
    again = json.loads((study("prices", *TINY[:1], "full_size=[]", *TINY[2:]) / "prices/metrics.json").read_text())
    assert again["processors"] == {"another": 1, processor_name(): figures["graphs"]}
