"""Work counted by hand on graphs small enough to do so."""

import pytest
from support.cost_graphs import graph, weight

from rlflow.cost.analytic import AnalyticConfig, AnalyticCost
from rlflow.cost.memory import peak_memory_bytes
from rlflow.cost.work import WorkCounter

F32 = 4
M, K, N = 3, 5, 7


@pytest.fixture
def linear():
    """relu(x w) + x w, with w = a b made of constants: the product is read twice."""
    return graph(
        [("MatMul", "a b", "w"), ("MatMul", "x w", "y"), ("Relu", "y", "r"), ("Add", "r y", "z")],
        {"x": (M, K)},
        {"z": (M, N)},
        {"a": weight(K, 2), "b": weight(2, N)},
    )


def test_flops_bytes_and_launches_in_closed_form(linear):
    """Three different sizes, so that no dimension can stand for another."""
    work = WorkCounter().graph(linear)
    assert work.launches == 3
    assert work.flops == 2 * M * K * N + M * N + M * N
    product = M * K + K * N + M * N
    assert work.bytes_moved == F32 * (product + 2 * M * N + 3 * M * N)


def test_constant_work_is_load_time_work(linear):
    """w = a b is computed once: it is in no other figure than its own and, as a folded weight, in memory."""
    work = WorkCounter().graph(linear)
    assert work.load_time_flops == 2 * K * 2 * N
    # alive: x and y at the product, y and r at the Relu, y, r and z at the sum; w stays, a and b go when it is folded
    assert peak_memory_bytes(linear) == F32 * (K * N + max(M * K + M * N, 2 * M * N, 3 * M * N))


@pytest.mark.parametrize("length", [2, 9])
@pytest.mark.parametrize(("kept", "alive"), [(False, 2), (True, 3)])
def test_an_activation_lives_until_its_last_reader(length, kept, alive):
    """A chain holds an operand and a result, however long it is; a value that is read again at its end is one more."""
    nodes = [("Relu", f"v{i}", f"v{i + 1}") for i in range(length)]
    nodes.append(("Add", f"v{length} v1", "z") if kept else ("Relu", f"v{length}", "z"))
    chain = graph(nodes, {"v0": (M, K)}, {"z": (M, K)})
    assert peak_memory_bytes(chain) == alive * F32 * M * K


def test_views_move_nothing_but_are_launched():
    viewed = graph(
        [("Relu", "x", "r"), ("Flatten", "r", "z", {"axis": 1})],
        {"x": (M, K, N)},
        {"z": (M, K * N)},
    )
    work = WorkCounter().graph(viewed)
    assert work.launches == 2
    assert work.bytes_moved == F32 * 2 * M * K * N


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
