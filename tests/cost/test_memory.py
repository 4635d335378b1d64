"""The peak of memory counted by hand: an activation lives until its last reader."""

import pytest
from support.cost_graphs import F32, K, M, graph

from rlflow.cost.memory import peak_memory_bytes


@pytest.mark.parametrize("length", [2, 9])
@pytest.mark.parametrize(("kept", "alive"), [(False, 2), (True, 3)])
def test_an_activation_lives_until_its_last_reader(length, kept, alive):
    """A chain holds an operand and a result, however long it is; a value that is read again at its end is one more."""
    nodes = [("Relu", f"v{i}", f"v{i + 1}") for i in range(length)]
    nodes.append(("Add", f"v{length} v1", "z") if kept else ("Relu", f"v{length}", "z"))
    chain = graph(nodes, {"v0": (M, K)}, {"z": (M, K)})
    assert peak_memory_bytes(chain) == alive * F32 * M * K
