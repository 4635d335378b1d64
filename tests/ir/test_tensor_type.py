"""Types print as they are."""

from rlflow.ir.tensor_type import Dimension, TensorType


def t(*shape: Dimension, dtype: str = "float32") -> TensorType:
    return TensorType(dtype, shape)


UNKNOWN = TensorType("float32", None)
N, M = "n", "m"


def test_types_print_as_they_are() -> None:
    assert str(t(N, 3, None)) == "float32[n, 3, ?]"
    assert str(UNKNOWN) == "float32[*]"
    assert (t(2, 3).rank, UNKNOWN.rank) == (2, None)
    assert (t(2, 3).is_static, t(N).is_static, UNKNOWN.is_static) == (True, False, False)
