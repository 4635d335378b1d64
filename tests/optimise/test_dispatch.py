"""Files for sizes: each has one of its own, with a name that tells which."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rlflow
from rlflow import zoo
from rlflow.errors import InputError
from rlflow.optimise.dispatch import sized, write_table

SHAPE = st.tuples(st.integers(1, 20), st.integers(1, 20))
SIZES = st.lists(st.tuples(SHAPE, SHAPE, SHAPE), min_size=2, max_size=5, unique=True)


@given(SIZES)
def test_no_two_sizes_have_the_same_file(sizes: list[tuple[tuple[int, int], ...]]) -> None:
    each = [dict(zip("abc", shapes, strict=True)) for shapes in sizes]
    assert len({sized(Path("out.onnx"), shapes, each) for shapes in each}) == len(each)


@pytest.mark.parametrize(
    ("each", "names"),
    [
        ([{"x": (1, 128)}, {"x": (8, 384)}], ["out.1x128.onnx", "out.8x384.onnx"]),
        ([{"x": (1, 4), "m": (1, 4)}, {"x": (2, 4), "m": (2, 4)}], ["out.1x4.onnx", "out.2x4.onnx"]),
        ([{"x": (1, 4), "s": (9,)}, {"x": (2, 4), "s": (9,)}], ["out.1x4.onnx", "out.2x4.onnx"]),
        ([{"x": (1, 4), "m": (3,)}, {"x": (2, 4), "m": (6,)}], ["out.1x4_3.onnx", "out.2x4_6.onnx"]),
    ],
)
def test_a_name_says_what_is_not_the_same_at_each_size(
    each: list[dict[str, tuple[int, ...]]], names: list[str]
) -> None:
    assert [sized(Path("a.folder/out.onnx"), shapes, each).name for shapes in each] == names


def test_a_table_is_of_models_for_shapes() -> None:
    found = rlflow.optimise(zoo.build("tiny_chain"), method="greedy", cost_model="analytic", budget_s=20.0, shortlist=0)
    with pytest.raises(InputError, match="for shapes, and saved"):
        write_table(Path("out.onnx"), [found.report])
