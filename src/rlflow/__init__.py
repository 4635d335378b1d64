"""A learned, verified superoptimiser for ONNX models."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rlflow.api import OptimiseConfig as OptimiseConfig
    from rlflow.api import Optimised as Optimised
    from rlflow.api import equivalence as equivalence
    from rlflow.api import optimise as optimise
    from rlflow.ir.graph import Graph as Graph
    from rlflow.onnx_io import from_onnx as from_onnx
    from rlflow.onnx_io import to_onnx as to_onnx
    from rlflow.runtime.equivalence import EquivalenceReport as EquivalenceReport

_HOMES = {
    "EquivalenceReport": "rlflow.runtime.equivalence",
    "Graph": "rlflow.ir.graph",
    "OptimiseConfig": "rlflow.api",
    "Optimised": "rlflow.api",
    "equivalence": "rlflow.api",
    "from_onnx": "rlflow.onnx_io",
    "optimise": "rlflow.api",
    "to_onnx": "rlflow.onnx_io",
}
__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    """The public names, imported when first used: a part of the library does not load the rest."""
    if name not in _HOMES:
        raise AttributeError(f"module 'rlflow' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
