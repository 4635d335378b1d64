"""The test that this installation of jaxlib can run single passes at all, before anybody builds on it.

What the backend needs is new in jaxlib or private to it: the transform that is called with a graph, the list of passes
to switch off, the cost analysis. XLA ignores a name on that list that it does not know, so that a pass of another name
in another version would quietly run in every action. So the version must be one whose names have been read off its log
(tests/passes/xla/test_pass_names.py does that), and a small program must change by a pass, and by no other.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import version
from importlib.util import find_spec

from rlflow.errors import InputError, RLFlowError
from rlflow.extras import MissingExtraError

VERSIONS = ("0.10.2",)
"""The versions of jaxlib whose pass names are known."""

_ADVICE = "pip install 'rlflow[xla]', which brings jax 0.10.2 and jaxlib 0.10.2"
_NEGATES_TWICE = """
module @probe {
  func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %once = stablehlo.negate %x : tensor<4xf32>
    %twice = stablehlo.negate %once : tensor<4xf32>
    return %twice : tensor<4xf32>
  }
}
"""


def require_jax() -> None:
    """Raise `MissingExtraError` unless jax and jaxlib are installed."""
    missing = [module for module in ("jax", "jaxlib") if find_spec(module) is None]
    if missing:
        verb = "are" if len(missing) > 1 else "is"
        named = " and ".join(missing)
        raise MissingExtraError(f"rlflow.passes.xla needs {named}, which {verb} not installed: {_ADVICE}")


@cache
def probe() -> None:
    """Raise `InputError` unless single passes can be run here; tried once in a process."""
    problem = version_problem(version("jaxlib")) or _trial_problem()
    if problem:
        raise InputError(f"XLA's passes cannot be run one at a time: {problem}. Try {_ADVICE}")


def version_problem(installed: str) -> str:
    """Return why a version of jaxlib will not do, or ""."""
    if installed in VERSIONS:
        return ""
    return f"jaxlib {installed} is installed, and the names of its passes are known for {', '.join(VERSIONS)} only"


def _trial_problem() -> str:
    """Run one pass that has something to do, and one that has not, on a program that negates twice."""
    try:
        from rlflow.passes.xla.compiler import hlo_after
        from rlflow.passes.xla.facts import facts_of
        from rlflow.passes.xla.pass_names import disabled_for

        counts = [
            dict(facts_of(hlo_after(_NEGATES_TWICE.encode(), disabled_for(actions))).counts).get("negate", 0)
            for actions in ((), ("cse",), ("algsimp",))
        ]
    except (RLFlowError, ImportError, AttributeError, TypeError) as error:
        return f"a program of two operations could not be taken through a pass ({error})"
    return "" if counts == [2, 2, 0] else "a pass that was switched off has run, or one that was left on has not"
