"""Sizes of a model: which shapes go together, and what they say of its dynamic dimensions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.onnx_models import with_drawn_weights
from support.texts import SUMMED

from rlflow.errors import InputError
from rlflow.runtime.sizes import Shapes, each_size, separated

SHAPE = st.lists(st.integers(1, 64), max_size=4).map(tuple)


@given(
    st.integers(1, 4).flatmap(
        lambda n: st.dictionaries(st.text(), st.one_of(SHAPE, st.lists(SHAPE, min_size=n, max_size=n)))
    )
)
def test_every_input_has_its_shape_at_each_size(shapes: Shapes) -> None:
    """An input of one shape has it everywhere, whether it stands alone or in a list of one."""
    several = {name: given for name, given in shapes.items() if isinstance(given, list)}
    sizes = separated(shapes)
    assert len(sizes) == max((len(given) for given in several.values()), default=1)
    for name in shapes:
        assert [size[name] for size in sizes] == list(several.get(name, [shapes[name]] * len(sizes)))


def test_sizes_say_what_dynamic_dimensions_are() -> None:
    model = with_drawn_weights(SUMMED)
    first, second = each_size(model, {"x": [(1, 64), (256, 64)], "z": (32, 64)})
    assert (first.dimensions, second.dimensions) == ({"n": 1, "m": 32}, {"n": 256, "m": 32})
    assert str(second) == "x=256x64, z=32x64"
    assert [size.dimensions for size in each_size(model, {})] == [{}]


@pytest.mark.parametrize(
    ("shapes", "says"),
    [
        ({"x": [(1, 64), (2, 64)], "z": [(1, 64), (2, 64), (3, 64)]}, "input 'x' has 2 shapes and 'z' has 3"),
        ({"x": [(1, 64), (2, 64)], "a": (1, 64)}, "the model has no input 'a'; it has: x, z"),
        ({"x": [(1, 64), (2, 32)]}, "dimension 1 of input 'x' is 32, it must be 64"),
        ({"x": [(1, 64), (2, 64, 1)]}, "input 'x' has 2 dimensions, not 3"),
        ({"x": [(1, 64), (2, 64), (1, 64)]}, "the size x=1x64 is named twice"),
    ],
)
def test_what_are_no_sizes_of_the_model_is_refused(shapes: Shapes, says: str) -> None:
    with pytest.raises(InputError, match=says):
        each_size(with_drawn_weights(SUMMED), shapes)
