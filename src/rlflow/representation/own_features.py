"""A node by itself, as an encoder sees it: its operator in a vocabulary, and numbers of its operands and results.

The node may be one of a graph or one that a rewrite would add: all that is asked of its operands is what `Operand` has.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from rlflow.errors import InputError
from rlflow.ir.node import INPUT, Node
from rlflow.ir.tensor_type import TensorType
from rlflow.ops import registry
from rlflow.representation.vocabulary import OPAQUE, PADDING, Vocabulary

log = logging.getLogger(__name__)

OWN_FEATURES = (
    "log2_elements",
    "rank",
    "log2_last_dimension",
    "log2_flops",
    "log2_bytes",
    "log2_constant_elements",
    "operands",
    "constant_operands",
)
"""The numbers that a node and its operands tell, as they are computed; the rest of the graph tells more."""

COUNT_SCALE = 1 / 4
_LOG_SCALE = 1 / 32


class Operand(NamedTuple):
    """A value that a node reads."""

    type: TensorType | None
    constant: bool


def operands_of(node: Node, node_of: Callable[[int], Node]) -> tuple[Operand, ...]:
    """Return the values that a node reads; `node_of` gives the nodes by their ids."""
    sources = ((node_of(ref.node), ref.index) for ref in node.inputs if ref is not None)
    return tuple(Operand(source.types[index], source.constant) for source, index in sources)


def todays_operators() -> tuple[str, ...]:
    """Every operator that the library knows, in the order of a vocabulary. One without operands never runs."""
    operators = sorted(name for name, operator in registry.OPERATORS.items() if operator.arity[1])
    return (PADDING, OPAQUE, INPUT, *operators)


def columns(vocabulary: Vocabulary, computed: Sequence[str]) -> list[int]:
    """The column of each feature among those that are computed; `InputError` naming those that are not."""
    lacking = [name for name in vocabulary.features if name not in computed]
    if lacking:
        raise InputError(
            f"the model was fitted on the feature {', '.join(lacking)}, which this version of rlflow does not compute: "
            "fit it again (fit_world_model), or use the version that it was fitted with"
        )
    return [computed.index(name) for name in vocabulary.features]


class OwnFeatures:
    """Tells of nodes by themselves what a vocabulary has words for.

    Graphs have the operators of the library, or those `operators` of another language; one that only these or only the
    vocabulary has looks like an opaque one, which is warned of once. `InputError` if the vocabulary has no place for
    such.
    """

    def __init__(self, vocabulary: Vocabulary, operators: Sequence[str] | None = None) -> None:
        if OPAQUE not in vocabulary.operators:
            raise InputError(f"a vocabulary without {OPAQUE} has no place for operators that it does not know")
        self._index = {name: index for index, name in enumerate(vocabulary.operators)}
        self._unseen: set[str] = set()
        known = todays_operators() if operators is None else (PADDING, OPAQUE, INPUT, *operators)
        gone = sorted(set(vocabulary.operators) - set(known))
        if gone:
            log.warning("the library no longer knows %s, which the model does: it is opaque now", ", ".join(gone))

    def row(self, node: Node, operands: Sequence[Operand]) -> tuple[float, ...]:
        """Return the index of a node's operator and then its `OWN_FEATURES`."""
        index = self._index.get(node.op)
        if index is None and not node.is_opaque:
            self._warn_of(node.op)
        op = self._index[OPAQUE] if index is None or node.is_opaque else index
        return op, *_own_features(node, operands, is_known=op != self._index[OPAQUE])

    def _warn_of(self, operator: str) -> None:
        if operator not in self._unseen:
            self._unseen.add(operator)
            log.warning("the operator %s is not in the vocabulary of the model: it is seen as an opaque one", operator)


def _own_features(node: Node, operands: Sequence[Operand], is_known: bool) -> tuple[float, ...]:
    """The numbers of a node in the order of `OWN_FEATURES`.

    What only the operator's definition tells is left out where the vocabulary does not know it, as for opaque nodes.
    """
    types = [operand.type for operand in operands]
    constants = [operand.type for operand in operands if operand.constant and operand.type is not None]
    result = node.types[0] if node.types else None
    return (
        _log(result.elements if result else 0),
        COUNT_SCALE * ((result.rank if result else 0) or 0),
        _log(_last_dimension(result)),
        _log(registry.flops(node, types) if is_known else 0),
        _log(registry.bytes_moved(node, types) if is_known else _bytes_touched(node, types)),
        _log(sum(tensor_type.elements for tensor_type in constants)),
        COUNT_SCALE * len(operands),
        COUNT_SCALE * len(constants),
    )


def _bytes_touched(node: Node, operands: Iterable[TensorType | None]) -> int:
    return sum(tensor_type.nbytes for tensor_type in (*operands, *node.types) if tensor_type is not None)


def _log(value: int) -> float:
    return _LOG_SCALE * math.log2(1 + value)


def _last_dimension(tensor_type: TensorType | None) -> int:
    last = tensor_type.shape[-1] if tensor_type is not None and tensor_type.shape else 0
    return last if isinstance(last, int) else 0
