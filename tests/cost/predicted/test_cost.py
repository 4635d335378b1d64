"""Predicted cost: a function of the graph alone, searches that repeat, processors."""

import math
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cost_graphs import graph, weight
from support.price_models import PACES, PROCESSOR, drawn_model, regions_of
from support.searches import SEARCHING, make

from rlflow.cost.base import CostContext, far_share, local
from rlflow.cost.models import COST_MODELS, HERE
from rlflow.cost.predicted.cost import PredictedConfig, PredictedCost, nearest
from rlflow.cost.predicted.price_model import PriceModel, load
from rlflow.cost.regions import partition
from rlflow.errors import InputError
from rlflow.ir.structural_hash import structural_hash
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.runtime.blocks import block_channels
from rlflow.runtime.hardware import machine_name, processor_traits
from rlflow.runtime.session import SETTINGS
from rlflow.runtime.timing.bandwidth import bandwidth_gb_s


@pytest.fixture(scope="module")
def model(bert) -> PriceModel:
    return drawn_model([bert(), bert(layer_norm="decomposed")])


@pytest.mark.slow
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("seed", range(3))
def test_the_runtime_does_not_depend_on_the_history(bert, shipped, model, setting, seed) -> None:
    """Along random rewrites a cost model that follows them and a fresh one agree to the last bit."""
    rewriter, rng, follows = Rewriter(shipped.rules), random.Random(seed), PredictedCost(model, setting=setting)
    g = bert(layer_norm="decomposed" if seed % 2 else "fused")
    runtimes = [follows.runtime_ms(g)]
    for _ in range(15):
        g = rewriter.apply(g, rng.choice(rng.choice([found for found in rewriter.matches(g) if found])))
        runtimes.append(follows.runtime_ms(g))
        assert runtimes[-1] == PredictedCost(model, setting=setting).runtime_ms(g)
    assert len(set(runtimes)) > 5


def test_the_price_of_a_graph_is_the_sum_over_its_regions(bert, model) -> None:
    g = bert()
    cost = PredictedCost(model)
    total = math.fsum(cost.region_ms(g, region) for region in partition(g).regions)
    assert cost.runtime_ms(g) == pytest.approx(total, rel=1e-12)
    assert cost.cost(g).runtime_ms == cost.runtime_ms(g)
    assert cost.name == "predicted"


def test_a_view_costs_the_same_whatever_its_size(model) -> None:
    """More where a run touches more, since it finds the caches full; of more than was measured, as of the most."""
    g = graph([("Relu", "x", "r"), ("Flatten", "r", "y", {"axis": 1})], {"x": (2, 512, 1024)}, {"y": (2, 2**19)})
    told = {
        mb: PredictedCost(model).region_ms(replace(g, header=replace(g.header, working_set_mb=mb)), (g.order[-1],))
        for mb in (10.0, 10.1, 5000.0, None)
    }
    assert told == {10.0: 0.0004, 10.1: 0.004, 5000.0: 0.004, None: 0.004}


def test_a_slower_machine_has_longer_prices_in_the_same_ratios(bert, model) -> None:
    g = bert()
    usual, slow = PredictedCost(model), PredictedCost(model, PredictedConfig(pace=4.0))
    for region in partition(g).regions:
        assert slow.region_ms(g, region) == 4.0 * usual.region_ms(g, region)


def test_far_regions_are_those_unlike_all_that_was_learned(bert, model) -> None:
    g, other = bert(), bert(hidden=256, intermediate=1024)
    assert PredictedCost(model).far(g) == []
    far = PredictedCost(model).far(other)
    assert far
    assert far_share(PredictedCost(model), g) == 0.0
    assert far_share(PredictedCost(model), other) == len(far) / len(partition(other).regions) < 1.0
    assert far == sorted(far)


def test_weights_are_warm_in_a_small_model_and_the_graph_says_so(bert, model) -> None:
    """The price is that of the model that the graph came from: rewriting does not change it."""
    g = bert()
    cold = replace(g, header=replace(g.header, working_set_mb=1e3))
    cost = PredictedCost(model)
    assert cost.runtime_ms(g) < cost.runtime_ms(cold)
    assert PredictedCost(model).runtime_ms(cold) == cost.runtime_ms(cold), "nothing is remembered of the other"


def test_prices_are_those_of_a_processor_that_the_model_knows(bert, model) -> None:
    known = {"drawn": PROCESSOR, "slow": replace(PROCESSOR, physics={name: 2 * ms for name, ms in PACES.items()})}
    both = PriceModel(replace(model.description, processors=known), model._trees)
    usual, named, slow = (PredictedCost(both, PredictedConfig(processor=p)) for p in (None, "drawn", "slow"))
    g = bert()
    assert usual.runtime_ms(g) == named.runtime_ms(g) < slow.runtime_ms(g)
    with pytest.raises(InputError, match="no processor 'fast': choose here or one of drawn, slow"):
        PredictedCost(both, PredictedConfig(processor="fast"))


def _traits(threads: int) -> dict[str, float]:
    return {**processor_traits(threads), "bandwidth_gb_s": bandwidth_gb_s(threads)}


def test_the_processor_here_is_the_one_most_like_this_machine(model) -> None:
    """Another one has instructions and caches that no machine has."""
    here = replace(PROCESSOR, traits=_traits(1))
    other = replace(PROCESSOR, traits={**here.traits, "l2_mb": 512.0, "cache_mb": 1e5, "avx512": 0.5, "amx": 0.5})
    both = PriceModel(replace(model.description, processors={"other": other, "drawn": here}), model._trees)
    assert PredictedCost(both, PredictedConfig(processor=HERE)).processor.traits == here.traits


def test_a_processor_that_stands_in_blocks_as_many_channels_as_the_one_here(model) -> None:
    """A processor of other blocks makes other convolutions fast, as a grouped one of half as many channels a group."""
    other = replace(PROCESSOR, reorders=replace(PROCESSOR.reorders, block=2 * block_channels()))
    cost = PredictedCost(
        PriceModel(replace(model.description, processors={"drawn": other}), model._trees), PredictedConfig(HERE)
    )
    channels = block_channels()
    g = graph(
        [("Conv", "x w", "y", {"group": 2})],
        {"x": (1, 2 * channels, 4, 4)},
        {"y": (1, 2 * channels, 4, 4)},
        {"w": weight(2 * channels, channels, 1, 1)},
    )
    (region,) = partition(g).regions
    assert cost._reader.features(g, region).numbers["convolution is blocked"] == 1
    assert cost.processor.reorders.block == channels


POWERS = st.sampled_from([0.5, 1.0, 2.0, 4.0])
DRAWN_TRAITS = st.fixed_dictionaries(
    {name: POWERS for name in ("l2_mb", "cache_mb", "threads", "bandwidth_gb_s")}
    | {name: st.sampled_from([0.0, 1.0]) for name in ("avx512", "amx")}
)


@given(st.lists(DRAWN_TRAITS, min_size=1, max_size=4), DRAWN_TRAITS)
def test_the_bandwidth_is_measured_only_where_it_decides(processors: list[dict[str, float]], here) -> None:
    """Traits are powers of two, so that distances are exact; the reference measures whatever there is to choose."""

    def distance(own: dict[str, float]) -> float:
        doublings = sum(abs(math.log2(own[name] / here[name])) for name in here if name not in ("avx512", "amx"))
        return doublings + 4.0 * (abs(own["avx512"] - here["avx512"]) + abs(own["amx"] - here["amx"]))

    known, asked = {str(place): own for place, own in enumerate(processors)}, list[None]()
    chosen = nearest(known, here, lambda: asked.append(None) or here["bandwidth_gb_s"])
    assert chosen == min(known, key=lambda name: distance(known[name]))
    if len({own["bandwidth_gb_s"] for own in processors}) == 1 and len({distance(own) for own in processors}) > 1:
        alike = [distance(own) for own in processors]
        assert bool(asked) == (alike.count(min(alike)) > 1), "of one bandwidth, only equals are in doubt"


def test_a_processor_here_that_is_known_is_asked_for_by_its_name_and_threads(model) -> None:
    """Its traits in the model are others than the machine tells, as where it shares its caches with other machines."""
    far_off = replace(PROCESSOR, traits={name: 1e6 for name in PROCESSOR.traits})
    alike = {"like one": replace(PROCESSOR, traits=_traits(1)), machine_name(1): far_off}
    alike |= {"like two": replace(PROCESSOR, traits=_traits(2))}
    several = PriceModel(replace(model.description, processors=alike), model._trees)
    chosen = [PredictedCost(several, PredictedConfig(HERE, threads)).processor for threads in (1, 2)]
    assert [one.traits for one in chosen] == [far_off.traits, alike["like two"].traits]
    with pytest.raises(InputError, match="threads is 0"):
        PredictedConfig(threads=0)
    with pytest.raises(InputError, match="threads=2 goes with processor=here"):
        PredictedConfig("like two", threads=2)


def test_dynamic_dimensions_are_priced_at_the_sizes_given(bert, model) -> None:
    small, large = (PredictedCost(model, dimensions={"n": n}) for n in (1, 64))
    g = graph([("MatMul", "x w", "y")], {"x": ("n", 32)}, {"y": ("n", 32)}, {"w": weight(32, 32)})
    assert large.runtime_ms(g) > small.runtime_ms(g)


def test_what_may_be_noise_grows_with_what_changed(model) -> None:
    """Two equal regions are wrong together, so that their errors add up; what stays does not count."""
    config = PredictedConfig(noise_share=0.0, noise_us=1.0, least_sigmas=2.0)
    cost = PredictedCost(model, config)

    def chain(*operators: str):
        nodes = [(op, f"x{i}" if i else "x", f"x{i + 1}") for i, op in enumerate(operators)]
        return graph(nodes, {"x": (8, 8)}, {f"x{len(nodes)}": (8, 8)})

    plain, one, two = chain("Softmax"), chain("Softmax", "Transpose"), chain("Softmax", "Transpose", "Softmax")
    transposed = cost.runtime_ms(one) - cost.runtime_ms(plain)
    assert transposed > 0
    assert cost.least_change_ms(plain, plain) == 0.0
    assert cost.least_change_ms(plain, one) == cost.least_change_ms(one, plain) == pytest.approx(2 * 0.001)
    assert cost.least_change_ms(plain, two) == pytest.approx(2 * math.hypot(0.001, 0.001))
    twice = chain("Softmax", "Softmax", "Softmax")
    assert cost.least_change_ms(plain, twice) == pytest.approx(2 * 2 * 0.001)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["greedy", "chains", "iterated"])
def test_a_search_repeats(bert, shipped, model, method) -> None:
    """Two searches that share nothing: the same steps and prices to the bit, and there are steps."""
    results = [
        make(method, shipped, PredictedCost(model)).optimise(bert(layer_norm="decomposed"), SEARCHING) for _ in range(2)
    ]
    assert results[0].trajectory == results[1].trajectory
    assert results[0].best_ms == results[1].best_ms < results[0].start_ms
    assert structural_hash(results[0].best) == structural_hash(results[1].best)


def test_prices_are_local_so_that_changes_are_remembered(model) -> None:
    assert local(PredictedCost(model)) is not None


@pytest.mark.parametrize(
    "settings", [{"pace": 0.0}, {"pace": math.inf}, {"pace": math.nan}, {"noise_us": -1.0}, {"far": math.nan}]
)
def test_settings_that_make_no_sense_are_refused(settings) -> None:
    (name,) = settings
    with pytest.raises(InputError, match=name):
        PredictedConfig(**settings)


def test_an_unknown_setting_is_refused() -> None:
    with pytest.raises(InputError, match=r"no setting 'speed': choose from processor, threads, pace"):
        COST_MODELS.get("predicted")(CostContext(settings={"speed": 1}))


def test_the_model_that_ships_prices_every_region_of_a_model(bert) -> None:
    cost = COST_MODELS.get("predicted")(CostContext(settings={"pace": 1.0}))
    g = bert()
    assert isinstance(cost, PredictedCost)
    assert cost.model is load()
    assert all(cost.region_ms(g, region) > 0 for region in partition(g).regions)
    assert len(regions_of([g])) > 3
