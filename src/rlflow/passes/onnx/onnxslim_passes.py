"""The patterns of onnxslim, one at a time, its clean-ups, and its default run.

onnxslim works on a graph of its own. Reading a model into it and writing it again drops nodes that nobody reads, which
each of its passes does beside its own work.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import onnxslim
import onnxslim.third_party.onnx_graphsurgeon as surgeon
from onnx import ModelProto
from onnxslim.core.optimization import graph_fusion
from onnxslim.core.optimization.dead_node_elimination import dead_node_elimination
from onnxslim.core.optimization.subexpression_elimination import subexpression_elimination
from onnxslim.core.optimization.weight_tying import tie_weights
from onnxslim.core.pattern.registry import get_fusion_patterns

_PATTERNS = (
    "EliminationConcat",
    "EliminationReshape",
    "EliminationTranspose",
    "EliminationTransposeAsReshape",
    "EliminationUnsqueeze",
    "FusionConcatReshape",
    "FusionGemm",
    "FusionPadConv",
)


def default_run(model: ModelProto) -> ModelProto:
    """Fold, fuse and clean up until nothing changes, as `onnxslim.slim(model)` does."""
    copy = ModelProto()
    copy.CopyFrom(model)  # it is changed on the way
    return onnxslim.slim(copy)


def _edited(edit: Callable[[surgeon.Graph], object], model: ModelProto) -> ModelProto:
    graph = surgeon.import_onnx(model)
    edit(graph)
    return surgeon.export_onnx(graph.cleanup().toposort())


def _pattern(name: str, graph: surgeon.Graph) -> None:
    graph_fusion(graph, {name: get_fusion_patterns()[name]})


def _folded(graph: surgeon.Graph) -> None:
    graph.fold_constants()


PASSES: dict[str, Callable[[ModelProto], ModelProto]] = {
    **{name: partial(_edited, partial(_pattern, name)) for name in _PATTERNS},
    "fold_constants": partial(_edited, _folded),
    "dead_node_elimination": partial(_edited, dead_node_elimination),
    "subexpression_elimination": partial(_edited, subexpression_elimination),
    "tie_weights": partial(_edited, tie_weights),
}
