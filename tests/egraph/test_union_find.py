"""Numbers that become one another."""

from rlflow.egraph.union_find import UnionFind


def test_a_set_is_called_by_its_least_number() -> None:
    sets = UnionFind()
    sets.extend(3)
    sets.extend(2)
    assert [sets.find(i) for i in range(5)] == [0, 1, 2, 3, 4]
    sets.join(3, 4)
    sets.join(1, 3)
    assert [sets.find(i) for i in range(5)] == [0, 1, 2, 1, 1]
