"""A region that was written and read back is the same work, and a file is written whole or not at all."""

import json
import lzma
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.cost_graphs import graph
from support.strategies import graphs

from rlflow import zoo
from rlflow.cost.analytic import AnalyticCost
from rlflow.cost.fragment import describe, extract
from rlflow.cost.region_record import (
    Faster,
    GraphRecord,
    RegionRecord,
    RegionTime,
    graph_from_json,
    graph_to_json,
    read_graphs,
    read_records,
    write_records,
)
from rlflow.cost.regions import SUMS, partition, twins
from rlflow.errors import GraphError, InputError
from rlflow.ir.graph import Graph
from rlflow.ir.validate import validate
from rlflow.onnx_io import from_onnx
from rlflow.onnx_io.standalone import standalone_model
from rlflow.runtime.inputs import draw_inputs
from rlflow.runtime.session import open_session, run


def there_and_back(region: Graph) -> Graph:
    """Through real text, as a file holds it."""
    return graph_from_json(json.loads(json.dumps(graph_to_json(region))))


def regions(whole: Graph) -> list[Graph]:
    return [extract(whole, describe(whole, region)) for region in partition(whole).regions]


def signature(region: Graph) -> str:
    return describe(region, region.order).signature


def record(region: Graph, **changes: object) -> RegionRecord:
    made = RegionRecord(region, signature(region), "cnn", "conv image=32")
    return replace(made, **changes)


@given(graphs())
def test_a_region_read_back_is_the_same_work(whole: Graph):
    """Signatures tell work apart (tests/cost/test_fragment.py), so that equal ones say much."""
    cut = partition(whole).regions
    for region in cut:
        fragment = describe(whole, region)
        read = there_and_back(extract(whole, fragment))
        validate(read)
        assert signature(read) == fragment.signature
        # alone, one sum stands for those that compute the same and has the readers of all, which may part it from them
        has_twins = any(whole.nodes[i].op in SUMS and twins(whole, i) for i in region)
        assert has_twins or partition(read).regions == {read.order}, "it is one region by itself, too"
        assert AnalyticCost().runtime_ms(read) == AnalyticCost().runtime_ms(extract(whole, fragment))


@given(graphs())
def test_what_is_read_back_is_written_alike(whole: Graph):
    for region in regions(whole):
        assert graph_to_json(there_and_back(region)) == graph_to_json(region)


@pytest.mark.parametrize("name", ["bert", "conv", "dalle", "mobilenet_v2", "nasrnn", "t5_decoder"])
def test_regions_of_the_zoo_run_as_before(name: str):
    """On ONNX Runtime, as they are timed: same interface, same values of all constants that are kept, so that indices
    fit their tables; results of regions without arbitrary weights are equal to the bit.
    """
    compared = 0
    for region in regions(from_onnx(zoo.build(name, **zoo.describe(name).small))):
        read = there_and_back(region)
        assert signature(read) == signature(region)
        before, after = standalone_model(region), standalone_model(read)
        assert [i.type for i in before.graph.input] == [i.type for i in after.graph.input]
        outputs = []
        for model in (before, after):
            feeds = draw_inputs(model, np.random.default_rng(0))
            outputs.append([np.asarray(v) for v in run(open_session(model, "as_written"), feeds).values()])
        for one, other in zip(*outputs, strict=True):
            assert (one.shape, one.dtype) == (other.shape, other.dtype)
        if "@arbitrary" not in graph_to_json(region)["graph"]:
            assert all(np.array_equal(one, other, equal_nan=True) for one, other in zip(*outputs, strict=True))
            compared += 1
    assert compared


def test_names_are_not_kept_and_small_constants_and_indices_are():
    indices = np.array([5, 0, 3, 3, 1, 4, 2, 0, 1, 2])
    scale = np.array([0.125], np.float32)
    whole = graph(
        [("Gather", "secret i", "g", {"axis": 0}), ("Mul", "g s", "y")],
        {"secret": (6, 4)},
        {"y": (10, 4)},
        {"i": indices, "s": scale},
    )
    read = there_and_back(extract(whole, describe(whole, whole.order)))
    assert "secret" not in json.dumps(graph_to_json(whole))
    kept = [node.payload.array() for node in read.nodes.values() if node.op == "Weight"]
    assert sorted(map(len, kept)) == [1, 10]
    assert all(any(np.array_equal(value, other) for other in kept) for value in (indices, scale))


def test_weights_take_no_room():
    """Those of a convolutional net, of which a file would hold thousands."""
    whole = from_onnx(zoo.build("resnet18", width=16, image=32))
    written = [json.dumps(graph_to_json(region)) for region in regions(whole)]
    assert sum(map(len, written)) < 2000 * len(written)
    assert sum(kind.nbytes for node in whole.nodes.values() if node.op == "Weight" for kind in node.types) > 100_000


def test_a_node_that_is_carried_verbatim_is_refused():
    whole = from_onnx(zoo.build("loop"))
    opaque = next(i for i in whole.order if whole.nodes[i].is_opaque)
    with pytest.raises(GraphError, match="Loop is carried verbatim"):
        graph_to_json(extract(whole, describe(whole, (opaque,))))


def test_a_file_holds_what_was_written(tmp_path: Path):
    path = tmp_path / "regions.jsonl.xz"
    written = [record(region, family=str(i)) for i, region in enumerate(regions(from_onnx(zoo.build("conv"))))]
    write_records(path, written)
    read = list(read_records(path))
    assert len(read) > 3
    assert [r.to_json() for r in read] == [r.to_json() for r in written]
    assert [signature(r.graph) for r in read] == [r.signature for r in read]

    first = path.read_bytes()
    write_records(path, read)
    assert path.read_bytes() == first, "the same records are the same bytes: no time, no order of a dict"


ids = st.text("abcdef0123456789", min_size=1, max_size=4)
times = st.floats(0, 1e6)


@settings(max_examples=12)  # each makes a compressed file, which takes a twentieth of a second
@given(
    st.builds(
        GraphRecord,
        variant=ids,
        family=ids,
        configuration=ids,
        processor=ids,
        working_set_mb=times,
        regions=st.dictionaries(ids, st.builds(RegionTime, st.integers(1, 9), times)),
        ms=times,
        sigma_ms=times,
        reorders_ms=times,
        views=st.integers(0, 9),
        faster=st.none() | st.builds(Faster, times, times, times),
        told=st.none() | times,
    )
)
def test_graphs_are_read_back(tmp_path_factory: pytest.TempPathFactory, whole):
    path = tmp_path_factory.mktemp("records") / "graphs"
    write_records(path, [whole])
    assert list(read_graphs(path)) == [whole]


def test_a_writer_that_fails_leaves_the_old_file(tmp_path: Path):
    path = tmp_path / "regions.jsonl.xz"
    region = regions(from_onnx(zoo.build("conv")))[0]
    write_records(path, [record(region)])
    before = path.read_bytes()
    whole = from_onnx(zoo.build("loop"))
    with pytest.raises(GraphError):
        write_records(path, [record(region), record(whole)])
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("ms", [-1.0, float("nan"), float("inf")])
def test_a_time_that_is_none_is_refused(ms: float):
    whole = GraphRecord("original", "cnn", "conv", "epyc", 1.0, {"a": RegionTime(1, 1.0)}, 1.0, 0.0)
    for changes in ({"ms": ms}, {"told": ms}, {"reorders_ms": ms}, {"regions": {"a": RegionTime(1, ms)}}):
        with pytest.raises(ValueError, match="is no time of conv, original"):
            replace(whole, **changes)


def damaged(path: Path, **changes: object) -> Path:
    """A file whose second line has other content; a change to None drops the key."""
    region = regions(from_onnx(zoo.build("conv")))[0]
    good = record(region).to_json()
    bad = {key: value for key, value in {**good, **changes}.items() if value is not None}
    path.write_bytes(lzma.compress("".join(json.dumps(line) + "\n" for line in (good, bad)).encode()))
    return path


@pytest.mark.parametrize(
    "changes",
    [{"family": None}, {"graph": "opset 17"}, {"graph": None}, {"values": None}, {"colour": "red"}],
    ids=str,
)
def test_a_damaged_line_is_named(tmp_path: Path, changes):
    with pytest.raises(InputError, match=r"line 2 is no record .*make study NAME=prices"):
        list(read_records(damaged(tmp_path / "regions.jsonl.xz", **changes)))


@pytest.mark.parametrize("content", [None, b"", b"no xz", lzma.compress(b"\xff\xfe")[:-3]])
def test_a_damaged_file_is_named(tmp_path: Path, content):
    path = tmp_path / "regions.jsonl.xz"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=r"regions\.jsonl\.xz"):
        list(read_records(path))
