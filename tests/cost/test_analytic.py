"""The analytic cost is the roofline, and carries all figures of a cost."""

from dataclasses import replace

import numpy as np
import pytest
from support.cost_graphs import F32, K, M, N
from support.walks import REWRITER

from rlflow import zoo
from rlflow.cost.analytic import AnalyticConfig, AnalyticCost, GpuConfig
from rlflow.cost.base import CostContext
from rlflow.cost.models import COST_MODELS
from rlflow.cost.work import WorkCounter
from rlflow.errors import InputError
from rlflow.onnx_io import from_onnx


def test_the_analytic_runtime_is_the_roofline(linear):
    """Each term once limited by arithmetic, once by traffic, once by the launch, by choosing the machine."""
    flops = [2 * M * K * N, M * N, M * N]
    moved = [F32 * (M * K + K * N + M * N), F32 * 2 * M * N, F32 * 3 * M * N]

    def runtime_ms(gflops: float, gbytes: float, launch_us: float) -> float:
        return AnalyticCost(AnalyticConfig(gflops, gbytes, launch_us)).runtime_ms(linear)

    assert runtime_ms(1e-6, 1e9, 0.0) == pytest.approx(sum(flops) / 1e-6 / 1e6, rel=1e-12)
    assert runtime_ms(1e9, 1e-6, 0.0) == pytest.approx(sum(moved) / 1e-6 / 1e6, rel=1e-12)
    assert runtime_ms(1e12, 1e12, 5.0) == pytest.approx(3 * 5e-3, rel=1e-6)
    mixed = sum(max(f / 3 / 1e6, b / 2 / 1e6) + 7e-3 for f, b in zip(flops, moved, strict=True))
    assert runtime_ms(3, 2, 7.0) == pytest.approx(mixed, rel=1e-12)


def test_a_price_does_not_depend_on_the_way_to_the_graph(bert):
    """To the bit, although only what each rewrite changed is priced again; the price does change."""
    model, graph, rng = AnalyticCost(), bert(), np.random.default_rng(0)
    prices = [model.runtime_ms(graph)]
    for _ in range(40):
        found = [match for matches in REWRITER.matches(graph) for match in matches]
        parent = graph
        graph = REWRITER.apply(parent, found[int(rng.integers(len(found)))])
        prices.append(model.runtime_ms(graph))
        assert prices[-1] == AnalyticCost().runtime_ms(replace(graph, edit=None))
    assert len(set(prices)) > 10


def test_a_cost_carries_all_figures(linear):
    model = AnalyticCost()
    cost = model.cost(linear)
    work = WorkCounter().graph(linear)
    assert cost.runtime_ms == model.runtime_ms(linear)
    assert cost.to_json() == {
        "runtime_ms": cost.runtime_ms,
        "flops": work.flops,
        "bytes_moved": work.bytes_moved,
        "launches": 3,
        "load_time_flops": work.load_time_flops,
    }


def test_the_gpu_profile_is_bound_by_launches():
    """On a layer of BERT-Base they take almost half of the time; on the default machine a twentieth at most."""
    layer = from_onnx(zoo.build("bert", layers=1, vocabulary=64))
    shares = {}
    for name, config in {"gpu": GpuConfig(), "analytic": AnalyticConfig()}.items():
        launches_ms = len(layer.order) * config.launch_us / 1e3
        shares[name] = launches_ms / COST_MODELS.get(name)(CostContext()).runtime_ms(layer)
    assert shares["gpu"] > 0.4
    assert shares["analytic"] < 0.05


def test_prices_of_two_machines_have_two_names():
    """A trajectory keeps the name. Settings change the machine and not the name."""
    own = COST_MODELS.get("gpu")(CostContext(settings={"launch_us": 7.0}))
    assert own.config == GpuConfig(launch_us=7.0)
    assert [own.name, AnalyticCost().name] == ["gpu", "analytic"]


@pytest.mark.parametrize(
    "config", [{"gflops_per_s": 0.0}, {"gbytes_per_s": -1.0}, {"gflops_per_s": float("nan")}, {"launch_us": -2.0}]
)
@pytest.mark.parametrize("machine", [AnalyticConfig, GpuConfig])
def test_machines_that_cannot_be_are_refused(machine, config):
    with pytest.raises(InputError, match=next(iter(config))):
        machine(**config)
