"""Inputs by type alone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlflow.errors import InputError
from rlflow.ir.graph import Graph, Header, make_graph
from rlflow.ir.node import INPUT, Node, Ref
from rlflow.ir.tensor_type import TensorType
from rlflow.passes.xla.program_inputs import draw_program_inputs

_DTYPES = ["float32", "float64", "float16", "bfloat16", "int8", "int32", "int64", "uint32", "uint8", "bool"]


def _graph(*types: TensorType | None) -> Graph:
    nodes = {index: Node(INPUT, (), {}, (each,), (f"x{index}",)) for index, each in enumerate(types)}
    return make_graph(nodes, list(nodes), [Ref(0)], ["y"], Header(18))


_TYPES = st.builds(TensorType, st.sampled_from(_DTYPES), st.lists(st.integers(0, 4), max_size=3).map(tuple))


@given(st.lists(_TYPES, min_size=1, max_size=4), st.integers(0, 2**32 - 1))
@settings(max_examples=50, deadline=None)
def test_types_are_kept_and_a_seed_says_all(types: list[TensorType], seed: int) -> None:
    first, again = (draw_program_inputs(_graph(*types), seed) for _ in range(2))
    assert [(array.dtype.name, array.shape) for array in first] == [(each.dtype, each.shape) for each in types]
    assert all(np.array_equal(left, right) for left, right in zip(first, again, strict=True))


def test_ranges_are_those_that_programs_can_use() -> None:
    indices, variances, weights, key, flags = draw_program_inputs(
        _graph(
            *(
                TensorType(*each)
                for each in (
                    ("int32", (1000,)),
                    ("float32", (1000,)),
                    ("float32", (100, 10)),
                    ("uint32", (1000,)),
                    ("bool", (1000,)),
                )
            )
        ),
        0,
    )
    assert set(indices.tolist()) == set(range(8))
    assert variances.min() >= 0.1
    assert weights.min() < 0 < weights.max()
    assert key.max() > 2**31
    assert set(flags.tolist()) == {True, False}


def test_complex_numbers_are_refused() -> None:
    with pytest.raises(InputError, match="parameter 1 of the program, of type complex64"):
        draw_program_inputs(_graph(TensorType("float32", (2,)), TensorType("complex64", (2,))), 0)
