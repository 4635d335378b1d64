"""A learned, verified superoptimiser for ONNX models.

    import rlflow

    optimised = rlflow.optimise("model.onnx", budget_s=60)
    print(optimised.report.summary())
    optimised.save("faster.onnx")

Everything that a caller needs is here. What is heavy is imported when it is first used: `import rlflow` loads neither
numpy nor ONNX.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

# Imported at once, since these functions bear the names of their packages; both packages load the rest when called.
from rlflow.equivalence import equivalence
from rlflow.errors import (
    CertificateError,
    EquivalenceError,
    GraphError,
    InputError,
    ModelFormatError,
    PriceError,
    ReplayError,
    RLFlowError,
    RuleError,
    TypeInferenceError,
)
from rlflow.extras import MissingExtraError
from rlflow.optimise import optimise

if TYPE_CHECKING:
    from rlflow.cost.base import CostModel
    from rlflow.cost.pricing import PricingConfig
    from rlflow.equivalence.report import EquivalenceReport
    from rlflow.ir.graph import Graph
    from rlflow.method import Budget, Method, OptimisationResult
    from rlflow.method import Method as Optimiser
    from rlflow.onnx_io import from_onnx, save_model, to_onnx
    from rlflow.optimise.api import Optimised
    from rlflow.optimise.gate import GateConfig
    from rlflow.rules.library import Library
    from rlflow.rules.library import load as load_library
    from rlflow.rules.matching.rewriter import Rewriter
    from rlflow.rules.user_rules import load_rules
    from rlflow.runtime.dispatch import dispatch_session
    from rlflow.runtime.isolation import Limits
    from rlflow.runtime.session_options import session_options

__all__ = [
    "Budget",
    "CertificateError",
    "CostModel",
    "EquivalenceError",
    "EquivalenceReport",
    "GateConfig",
    "Graph",
    "GraphError",
    "InputError",
    "Library",
    "Limits",
    "Method",
    "MissingExtraError",
    "ModelFormatError",
    "OptimisationResult",
    "Optimised",
    "Optimiser",
    "PriceError",
    "PricingConfig",
    "RLFlowError",
    "ReplayError",
    "Rewriter",
    "RuleError",
    "TypeInferenceError",
    "dispatch_session",
    "equivalence",
    "from_onnx",
    "load_library",
    "load_rules",
    "optimise",
    "save_model",
    "session_options",
    "to_onnx",
]

_HOMES = {
    "Budget": "rlflow.method:Budget",
    "CostModel": "rlflow.cost.base:CostModel",
    "EquivalenceReport": "rlflow.equivalence.report:EquivalenceReport",
    "GateConfig": "rlflow.optimise.gate:GateConfig",
    "Graph": "rlflow.ir.graph:Graph",
    "Library": "rlflow.rules.library:Library",
    "Limits": "rlflow.runtime.isolation:Limits",
    "Method": "rlflow.method:Method",
    "OptimisationResult": "rlflow.method:OptimisationResult",
    "Optimised": "rlflow.optimise.api:Optimised",
    "Optimiser": "rlflow.method:Method",  # an older name
    "PricingConfig": "rlflow.cost.pricing:PricingConfig",
    "Rewriter": "rlflow.rules.matching.rewriter:Rewriter",
    "dispatch_session": "rlflow.runtime.dispatch:dispatch_session",
    "from_onnx": "rlflow.onnx_io:from_onnx",
    "load_library": "rlflow.rules.library:load",
    "load_rules": "rlflow.rules.user_rules:load_rules",
    "save_model": "rlflow.onnx_io:save_model",
    "session_options": "rlflow.runtime.session_options:session_options",
    "to_onnx": "rlflow.onnx_io:to_onnx",
}
"""The names that are imported when they are first used, and where they live."""


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that a part of the library does not load the rest."""
    if name not in _HOMES:
        raise AttributeError(f"module 'rlflow' has no attribute {name!r}")
    module, _, attribute = _HOMES[name].partition(":")
    return getattr(import_module(module), attribute)
