"""An operator that RLFlow does not know: Softsign, x / (1 + |x|).

A model that has one is optimised without this, too: the node is carried verbatim. With it the node is typed, its work
is counted, constants behind it are folded, and rules may name it.

In RLFlow itself it is an entry in `OPERATORS` of its family's module in `ops/`, here `ops/elementwise.py`, and a case
in the family's test.
"""

import numpy as np
from onnx import parser

import rlflow
from rlflow.ir.node import Attributes
from rlflow.ir.tensor_type import TensorType
from rlflow.ops import registry
from rlflow.ops.domain import Array, Domain
from rlflow.ops.reference import evaluate
from rlflow.ops.schema import Operator, Types, elementwise_flops
from rlflow.ops.traits import Fusion, Traits

MODEL = parser.parse_model("""
    <ir_version: 8, opset_import: ["" : 17]>
    squashed (float[4, 8] x) => (float[4, 8] y) { y = Softsign(x) }
""")


def infer(attributes: Attributes, inputs: Types) -> tuple[TensorType, ...]:
    """The type of the result is that of the operand."""
    return (inputs[0],)


def softsign(domain: Domain, attributes: Attributes, inputs: list[Array]) -> tuple[Array, ...]:
    """The meaning, said once: proofs compute it exactly over a finite field, the exporter in floats."""
    (x,) = inputs
    magnitude = domain.add(domain.relu(x), domain.relu(domain.negate(x)))
    return (domain.divide(x, domain.add(domain.constant(1.0), magnitude)),)


SOFTSIGN = Operator(
    "Softsign",
    infer,
    softsign,
    since=1,
    arity=(1, 1),
    flops=elementwise_flops(3),
    traits=Traits(elementwise=True, fusion=Fusion.POINTWISE, inexact=True),
)

if __name__ == "__main__":
    assert any(node.is_opaque for node in rlflow.from_onnx(MODEL).nodes.values())
    registry.OPERATORS[SOFTSIGN.name] = SOFTSIGN

    graph = rlflow.from_onnx(MODEL)
    assert not any(node.is_opaque for node in graph.nodes.values())
    x = np.linspace(-4, 4, 32, dtype=np.float32).reshape(4, 8)
    np.testing.assert_allclose(evaluate(graph, {"x": x})["y"], x / (1 + np.abs(x)), rtol=1e-6)
    print(f"Softsign is known: {registry.flops(graph.nodes[graph.order[0]], [TensorType('float32', (4, 8))])} FLOPs")
