"""What a node's signature covers, and what it leaves out because it is a hint alone."""

from dataclasses import replace

import pytest
from support.square_graphs import node, weight

from rlflow.ir import Node, Ref, TensorType


def test_a_copy_with_other_operands_or_names_has_the_same_signature() -> None:
    """Operands are left out, as the structural hash adds what they compute."""
    original = node("Split", 0, None, Ref(0), outputs=2, axis=1)
    assert original.with_inputs((Ref(5), None, Ref(6))).signature == original.signature
    renamed = original.with_names(("a", "b"))
    assert (renamed.signature, renamed.names) == (original.signature, ("a", "b"))
    assert replace(original, label="l", remarks=object(), signature=0).signature == original.signature


@pytest.mark.parametrize(
    "other",
    [
        node("Concat", 0, None, outputs=2, axis=1),
        node("Split", 0, None, outputs=2, axis=0),
        node("Split", 0, 0, outputs=2, axis=1),
        node("Split", 0, None, outputs=1, axis=1),
        node("Split", 0, None, outputs=2, axis=1, num_outputs=2),
    ],
    ids=["operator", "attribute", "absent operand", "results", "more attributes"],
)
def test_everything_else_is_in_the_signature(other: Node) -> None:
    assert other.signature != node("Split", 0, None, outputs=2, axis=1).signature


def test_weights_are_told_apart_by_their_content_and_type() -> None:
    signatures = {weight(digest, kind).signature for digest in "ab" for kind in _KINDS}
    assert len(signatures) == 2 * len(_KINDS)


_KINDS = (TensorType("float32", (4, 4)), TensorType("float16", (4, 4)), TensorType("float32", (4, None)))


def test_sources_are_the_nodes_that_are_read_each_once_in_order() -> None:
    assert node("Sum", Ref(7), None, Ref(3, 1), Ref(7, 1)).sources == (7, 3)
    assert weight().sources == ()


def test_only_what_is_carried_verbatim_is_opaque() -> None:
    assert not weight().is_opaque
    assert not node("Relu", 0).is_opaque
    assert replace(node("Loop", 0), payload=weight().payload).is_opaque
