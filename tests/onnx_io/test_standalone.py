"""A graph that was built here becomes a model that runs and computes what the graph says."""

from dataclasses import replace

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from support.rewrites import draw_feeds
from support.strategies import graphs

from rlflow.errors import GraphError
from rlflow.ir import Graph
from rlflow.onnx_io.standalone import standalone_model
from rlflow.ops.reference import evaluate
from rlflow.runtime.session import open_session, run


@settings(max_examples=15)
@given(graph=graphs(max_nodes=6))
def test_a_drawn_graph_runs_and_agrees_with_the_reference(graph: Graph) -> None:
    model = standalone_model(graph)
    onnx.checker.check_model(model, full_check=True)
    feeds = draw_feeds(graph, np.random.default_rng(0))
    wanted, found = evaluate(graph, feeds), run(open_session(model, "as_written"), feeds)
    assert list(found) == list(wanted)
    for name, value in wanted.items():
        scale = max(1.0, float(np.abs(value).max(initial=0.0)))
        np.testing.assert_allclose(found[name], value, rtol=0, atol=1000 * np.finfo(np.float32).eps * scale)


@settings(max_examples=1)
@given(graph=graphs())
def test_opset_and_domains_are_those_of_the_header(graph: Graph) -> None:
    header = replace(graph.header, opset=21, domains={"com.microsoft": 1})
    imported = standalone_model(replace(graph, header=header)).opset_import
    assert {opset.domain: opset.version for opset in imported} == {"": 21, "com.microsoft": 1}


@settings(max_examples=1)
@given(graph=graphs())
def test_an_output_of_unknown_type_is_refused_by_name(graph: Graph) -> None:
    output = graph.outputs[0].node
    blind = replace(graph.nodes[output], types=(None,) * len(graph.nodes[output].types))
    nodes = {**graph.nodes, output: blind}
    name = blind.names[0] if output in graph.inputs else graph.output_names[0]
    with pytest.raises(GraphError, match=f"'{name}' has no known tensor type"):
        standalone_model(replace(graph, nodes=nodes))
