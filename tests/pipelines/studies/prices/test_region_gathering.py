"""What is gathered is what a search would ask the price of, each once, and it can be timed."""

import json
from collections import Counter
from dataclasses import replace

import pytest
from studies.prices.region_gathering import Configuration, Gathered, GatheringConfig, gather, merged

from rlflow import zoo
from rlflow.cost.fragment import describe
from rlflow.cost.region_record import graph_from_json
from rlflow.cost.regions import VIEWS, partition
from rlflow.ir.graph import Graph
from rlflow.onnx_io import from_onnx

LITTLE = GatheringConfig(expansions=4, walks=2, steps=6, tried=30)
BERT = Configuration("bert", "bert", zoo.describe("bert").small)
CONV = Configuration("conv", "conv")


@pytest.fixture(scope="module")
def gathered() -> Gathered:
    return gather([BERT], LITTLE)


def signatures(whole: Graph) -> Counter[str]:
    cut = partition(whole).regions
    running = [region for region in cut if not all(whole.nodes[i].op in VIEWS for i in region)]
    return Counter(describe(whole, region).signature for region in running)


def test_regions_are_kept_under_the_signature_that_they_have(gathered: Gathered):
    assert len(gathered.regions) > 30
    for signature, region in gathered.regions.items():
        read = graph_from_json(region.content)
        assert describe(read, read.order).signature == signature == region.signature
        assert not all(read.nodes[i].op in VIEWS for i in read.order)
        assert region.grams
        assert (region.family, region.configuration) == ("bert", BERT.name)


def test_the_original_is_among_the_graphs_with_all_its_regions(gathered: Gathered):
    """As the partition of the model says, and not as the gathering has counted them."""
    whole = from_onnx(zoo.build(BERT.entry, **BERT.settings))
    (original,) = (graph for graph in gathered.graphs if graph.variant == "original")
    assert original.regions == signatures(whole)
    assert original.views == len(partition(whole).regions) - sum(signatures(whole).values())
    assert {graph.variant for graph in gathered.graphs} == {"original", "analytic", "gpu"}


def test_everything_that_is_named_was_gathered(gathered: Gathered):
    named = [s for rewrite in gathered.rewrites for s in (*rewrite.before, *rewrite.after)]
    named += [s for graph in gathered.graphs for s in graph.regions]
    assert set(named) <= set(gathered.regions)
    assert len(gathered.rewrites) > 10
    for rewrite in gathered.rewrites:
        assert not Counter(rewrite.before) & Counter(rewrite.after), "what both have is not what the rewrite changed"
    assert len({(r.before, r.after, r.views) for r in gathered.rewrites}) == len(gathered.rewrites)


def test_rewrites_lead_from_the_original_to_what_the_searches_found(gathered: Gathered):
    """The difference between the two graphs is the sum of rewrites, some of which are known: not a word of it is
    compared with what the gathering noted on its way."""
    originals, ends = ([g for g in gathered.graphs if (g.variant == "original") == first] for first in (True, False))
    new = {s for end in ends for s in end.regions} - set(originals[0].regions)
    assert new, "the searches find something"
    assert new <= {s for rewrite in gathered.rewrites for s in rewrite.after}


def test_the_same_again(gathered: Gathered):
    assert gather([BERT], LITTLE).to_json() == gathered.to_json()
    assert gather([BERT], replace(LITTLE, seed=1)).to_json() != gathered.to_json()


def test_it_is_read_back(gathered: Gathered):
    assert Gathered.from_json(json.loads(json.dumps(gathered.to_json()))).to_json() == gathered.to_json()


def test_domains_admit_their_operators():
    ours = Configuration("bert", "bert", BERT.settings, {"com.microsoft": 1})
    used = {op for op in operators(gather([ours], LITTLE)) if op.startswith("com.microsoft")}
    assert used
    assert not used & operators(gather([BERT], LITTLE))


def operators(gathered: Gathered) -> set[str]:
    graphs = [graph_from_json(region.content) for region in gathered.regions.values()]
    return {graph.nodes[i].op for graph in graphs for i in graph.order}


@pytest.mark.parametrize(
    ("change", "reason"), [({"largest_bytes": 20_000}, "too large"), ({"longest_ms": 0.004}, "too long")], ids=str
)
def test_what_is_too_large_is_counted_and_left_out(change, reason):
    little = replace(LITTLE, walks=0, tried=0, expansions=1)
    every, some = gather([CONV], little), gather([CONV], replace(little, **change))
    assert 0 < len(some.regions) < len(every.regions)
    assert some.left_out == {reason: len(every.regions) - len(some.regions)}
    assert not some.graphs, "a sum with a part missing is no sum"


@pytest.mark.slow
def test_what_is_carried_verbatim_is_left_out():
    assert gather([Configuration("loop", "loop")], LITTLE).left_out == {"carried verbatim": 1}


def test_families_are_merged_and_the_first_one_names_a_region(gathered: Gathered):
    other = gather([replace(BERT, family="cousin")], LITTLE)
    both = merged([gathered, other])
    assert list(both.regions) == list(gathered.regions)
    assert {region.family for region in both.regions.values()} == {"bert"}
    assert len(both.graphs) == 2 * len(gathered.graphs)
