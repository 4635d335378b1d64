"""What is new comes first, whatever order it is given in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from studies.prices.region_grams import novel_first, region_grams
from support.cost_graphs import graph, weight


def test_the_order_of_a_case_small_enough_for_paper():
    """Worth at the beginning: a 3, b 2, c 2, d 2. After a, c is worth 1/2 + 1 and b, all of which a has, 1/2 + 1/2;
    after a and d, c shares nothing new with d.
    """
    grams = {"b": ("x", "y"), "c": ("x", "u"), "d": ("v", "w"), "a": ("x", "y", "z")}
    assert novel_first(grams, {}) == ["a", "d", "c", "b"]


def test_repetitions_come_last():
    """Of ten equal regions and three of other kinds, one of the ten and the three are among the first four."""
    grams = {f"same{i}": ("MatMul", "MatMul 7x7") for i in range(10)} | {f"other{i}": (f"{i}", "q") for i in range(3)}
    first = novel_first(grams, {})[:4]
    assert sum(name.startswith("same") for name in first) == 1


def test_companions_follow_at_once():
    grams = {"a": ("x", "y", "z"), "b": ("x",), "c": ("u", "v")}
    assert novel_first(grams, {}) == ["a", "c", "b"]
    assert novel_first(grams, {"a": ("a", "b")}) == ["a", "b", "c"]


names = st.text("abcdefgh", min_size=1, max_size=2)


@given(st.dictionaries(names, st.lists(names, min_size=1, unique=True).map(sorted).map(tuple), min_size=1), st.data())
def test_each_region_comes_once_and_the_best_one_first_whatever_the_order(grams, data):
    """By definition, against the heap: each next one has the greatest worth of all that are left."""
    ordered = novel_first(grams, {})
    assert sorted(ordered) == sorted(grams)
    assert novel_first(dict(data.draw(st.permutations(list(grams.items())))), {}) == ordered
    seen: list[str] = []

    def worth(name: str) -> float:
        return sum(1 / (1 + seen.count(gram)) for gram in grams[name])

    for place, name in enumerate(ordered):
        assert worth(name) == pytest.approx(max(worth(other) for other in ordered[place:]))
        seen += grams[name]


def region(rows: int = 4, prefix: str = "", operator: str = "Relu") -> tuple[str, ...]:
    nodes = [("MatMul", f"{prefix}x {prefix}w", f"{prefix}u"), (operator, f"{prefix}u", f"{prefix}y")]
    return region_grams(
        graph(nodes, {f"{prefix}x": (rows, 8)}, {f"{prefix}y": (rows, 8)}, {f"{prefix}w": weight(8, 8)})
    )


def test_grams_tell_operators_sizes_and_wiring():
    assert region() == region(prefix="other/")
    assert {"MatMul", "MatMul 2x3, 3x3", "MatMul > Relu", "all MatMul Relu"} < set(region())
    assert set(region()) ^ set(region(rows=16)) == {
        *("MatMul 2x3, 3x3", "MatMul 4x3, 3x3"),
        *("Relu 2x3", "Relu 4x3"),
    }
    assert "MatMul > Tanh" in set(region(operator="Tanh")) - set(region())
