"""Which opsets can be run here."""

import onnx

from rlflow.runtime.opsets import is_supported


def test_the_opsets_of_the_library_are_supported_and_the_next_is_not() -> None:
    assert all(is_supported(opset) for opset in (13, 17, 21))
    assert not is_supported(onnx.defs.onnx_opset_version() + 1)
