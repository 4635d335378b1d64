"""Work counted by hand on graphs small enough to do so."""

from support.cost_graphs import F32, K, M, N, graph

from rlflow.cost.memory import peak_memory_bytes
from rlflow.cost.work import WorkCounter


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


def test_views_move_nothing_but_are_launched():
    viewed = graph(
        [("Relu", "x", "r"), ("Flatten", "r", "z", {"axis": 1})],
        {"x": (M, K, N)},
        {"z": (M, K * N)},
    )
    work = WorkCounter().graph(viewed)
    assert work.launches == 2
    assert work.bytes_moved == F32 * 2 * M * K * N
