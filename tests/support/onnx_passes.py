"""A pass of ONNX programs on a graph that was crafted for it."""

from collections.abc import Callable, Sequence

import onnx
from onnx import ModelProto, parser

from rlflow.equivalence.compare import compare
from rlflow.passes.onnx.normal_form import normal_form


def assert_leaves(expected: Sequence[str], of: str, by: Callable[[ModelProto], ModelProto]) -> None:
    """The pass leaves nodes of these types, which are not those that were there, and the same outputs."""
    before = normal_form(parser.parse_model(of))
    copy = before.SerializeToString(deterministic=True)

    after = normal_form(by(before), interface_of=onnx.load_from_string(copy))

    assert sorted(node.op_type for node in after.graph.node) == sorted(expected)
    assert sorted(node.op_type for node in onnx.load_from_string(copy).graph.node) != sorted(expected)
    assert compare(onnx.load_from_string(copy), after, draws=1).equivalent
