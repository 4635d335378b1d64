"""The bodies of a model: the graphs of its If, Loop, Scan and SequenceMap nodes, and of those inside them."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto

from rlflow.ir.graph import Graph
from rlflow.onnx_io.importer import graph_of
from rlflow.onnx_io.subgraphs import subgraphs


def bodies(model: ModelProto, around: str = "") -> Iterator[tuple[str, Graph]]:
    """Yield every body with words for its place, as "the body of scan_7", each before those inside it.

    A body that makes no valid model by itself is left out, as `subgraphs` does.
    """
    for subgraph in subgraphs(model):
        place = f"the {subgraph.attribute} of {subgraph.node}{around}"
        yield place, graph_of(subgraph.model)
        yield from bodies(subgraph.model, f", in {place}")
