"""A learned, verified superoptimiser for ONNX models."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

# Imported at once, since these functions bear the names of their packages; both packages load the rest when called.
from rlflow.equivalence import equivalence
from rlflow.optimise import optimise

if TYPE_CHECKING:
    from rlflow.equivalence.compare import EquivalenceReport as EquivalenceReport
    from rlflow.ir.graph import Graph as Graph
    from rlflow.onnx_io import from_onnx as from_onnx
    from rlflow.onnx_io import to_onnx as to_onnx
    from rlflow.optimise.api import OptimiseConfig as OptimiseConfig
    from rlflow.optimise.api import Optimised as Optimised

_HOMES = {
    "EquivalenceReport": "rlflow.equivalence.compare",
    "Graph": "rlflow.ir.graph",
    "OptimiseConfig": "rlflow.optimise.api",
    "Optimised": "rlflow.optimise.api",
    "from_onnx": "rlflow.onnx_io",
    "to_onnx": "rlflow.onnx_io",
}
__all__ = ["equivalence", "optimise", *_HOMES]


def __getattr__(name: str) -> Any:
    """The public names, imported when first used: a part of the library does not load the rest."""
    if name not in _HOMES:
        raise AttributeError(f"module 'rlflow' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
