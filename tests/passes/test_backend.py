"""Facts of programs."""

from rlflow.passes.backend import Facts, PassCost


def test_operations_are_those_of_all_types() -> None:
    assert Facts("key", (("Add", 2), ("Mul", 3)), PassCost(1.0, 0.0, 8.0)).operations == 5
    assert Facts("key", (), PassCost(0.0, 0.0, 0.0)).operations == 0
