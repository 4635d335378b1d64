"""Identity of a constant expression, as a Merkle hash.

A node's hash combines its signature with its operands' hashes. Python's hash of a tuple of integers is
the same in every process (only text is salted), and an order of magnitude faster than a cryptographic digest.
"""

from __future__ import annotations

from collections.abc import Mapping

from rlflow.ir.node import Node, Ref


def constant_hash(nodes: Mapping[int, Node], value: Ref) -> int:
    """Return a number that is equal for equal expressions of the same weights.

    The walk is iterative, so that an expression may be of any depth.
    """
    hashes: dict[int, int] = {}
    stack = [value.node]
    while stack:
        node = nodes[stack[-1]]
        # Operands are pushed above a node, which is hashed when it is on top again and none of them waits.
        waiting = [source for source in node.sources if source not in hashes]
        stack.extend(waiting)
        if not waiting:
            operands = (0 if ref is None else hash((hashes[ref.node], ref.index)) for ref in node.inputs)
            hashes[stack.pop()] = hash((node.signature, *operands))
    return hash((hashes[value.node], value.index))
