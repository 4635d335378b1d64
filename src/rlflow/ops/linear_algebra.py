"""Matrix products: MatMul (ai.onnx 1, 9, 13) and Gemm (7 to 13)."""

from __future__ import annotations

from collections.abc import Sequence

from rlflow.errors import TypeInferenceError
from rlflow.ir.node import Attributes
from rlflow.ir.tensor_type import TensorType
from rlflow.ops.domain import Array, Domain
from rlflow.ops.schema import Operator, Types, broadcast, same_dimension, same_dtype, shape_of
from rlflow.ops.traits import Fusion, Traits


def _infer_matmul(attributes: Attributes, inputs: Types) -> tuple[TensorType, ...]:
    a, b = (shape_of(t, "MatMul") for t in inputs)
    dtype = same_dtype(inputs, "MatMul")
    if not a or not b:
        raise TypeInferenceError("MatMul: a scalar operand")
    same_dimension(a[-1], b[-2] if len(b) > 1 else b[-1], "MatMul")
    batch = broadcast([a[:-2], b[:-2]], "MatMul")
    return (TensorType(dtype, batch + a[-2:-1] + (b[-1:] if len(b) > 1 else ())),)


def _matmul_flops(attributes: Attributes, inputs: Types, outputs: Types) -> int:
    contracted = inputs[0].shape[-1] if inputs[0].shape else 1
    return 2 * outputs[0].elements * (contracted if isinstance(contracted, int) else 1)


def _infer_gemm(attributes: Attributes, inputs: Types) -> tuple[TensorType, ...]:
    a, b = (shape_of(t, "Gemm") for t in inputs[:2])
    dtype = same_dtype(inputs, "Gemm")
    if len(a) != 2 or len(b) != 2:
        raise TypeInferenceError(f"Gemm: operands of rank {len(a)} and {len(b)}, both must be matrices")
    m, k = a[::-1] if attributes["transA"] else a
    k2, n = b[::-1] if attributes["transB"] else b
    same_dimension(k, k2, "Gemm")
    if len(inputs) == 3 and broadcast([shape_of(inputs[2], "Gemm"), (m, n)], "Gemm") != (m, n):
        raise TypeInferenceError(f"Gemm: C of shape {inputs[2].shape} does not broadcast to {(m, n)}")
    return (TensorType(dtype, (m, n)),)


def _transpose(domain: Domain, x: Array, wanted: object) -> Array:
    return domain.structural(lambda v: v.T, x) if wanted else x


def _gemm(domain: Domain, attributes: Attributes, x: Sequence[Array]) -> tuple[Array, ...]:
    a = _transpose(domain, x[0], attributes["transA"])
    b = _transpose(domain, x[1], attributes["transB"])
    product = domain.matmul(a, b)
    alpha, beta = attributes["alpha"], attributes["beta"]
    assert isinstance(alpha, float)
    assert isinstance(beta, float)
    if alpha != 1.0:
        product = domain.multiply(product, domain.constant(alpha))
    if len(x) < 3:
        return (product,)
    return (domain.add(product, x[2] if beta == 1.0 else domain.multiply(x[2], domain.constant(beta))),)


def _gemm_flops(attributes: Attributes, inputs: Types, outputs: Types) -> int:
    contracted = (inputs[0].shape or (1, 1))[0 if attributes["transA"] else 1]
    return outputs[0].elements * (2 * (contracted if isinstance(contracted, int) else 1) + (len(inputs) == 3))


_PRODUCT = Traits(fusion=Fusion.PRODUCT, accumulates=True)

OPERATORS = (
    Operator(
        "MatMul",
        _infer_matmul,
        lambda domain, attributes, x: (domain.matmul(x[0], x[1]),),
        since=1,
        arity=(2, 2),
        flops=_matmul_flops,
        traits=_PRODUCT,
    ),
    Operator(
        "Gemm",
        _infer_gemm,
        _gemm,
        since=7,
        arity=(2, 3),
        flops=_gemm_flops,
        traits=_PRODUCT,
        defaults={"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": 0},
    ),
)
