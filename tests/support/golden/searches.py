"""The section `searches`: every method on ten small models of the zoo, by three kinds of prices.

The budget is a number of rewrites, and on the smallest models searches end before it is spent. No clock has a say.
Predicted prices come from trees that ONNX Runtime evaluates, and are the same on every processor, as the experiment
promises. The shipped policy is a method like the others, but torch reads tokens for it, so that its searches belong to
the section `processor`.
"""

from collections.abc import Mapping
from functools import cache, partial
from typing import Any

from rlflow import zoo
from rlflow.cost.base import CostContext, CostModel
from rlflow.cost.models import COST_MODELS
from rlflow.ir.graph import Graph
from rlflow.method import Budget, Method
from rlflow.onnx_io import from_onnx
from rlflow.optimise.methods import METHODS
from support.golden import digests
from support.golden.digests import Value
from support.golden.entries import Compute
from support.walks import LIBRARY, REWRITER
from support.zoo_names import SMALL

REWRITES = 300
GRAPHS: Mapping[str, Mapping[str, Any]] = {
    "bert": {"layers": 2},
    "gpt2": {},
    "mlp": {},
    "mobilenet_v2": {},
    "nasrnn": {},
    "resnet18": {},
    "squeezenet1_1": {},
    "t5_decoder": {"head": "last"},
    "tiny_merge": {},
    "tiny_scale": {},
}
"""The models, with what differs from the zoo's small settings."""
COSTS = ("analytic", "gpu", "predicted")
LEARNED = ("rlflow",)
"""The methods that go by what torch computes."""

_NO_CLOCK = {"limits": {"time_s": None}}
_OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "best": {
        "members": {
            "chains": {"share": 0.35},
            "equality_saturation": {"share": 0.5, "options": _NO_CLOCK},
            "iterated": {"share": 0.15, "options": {"seed": 0}},
        }
    },
    "equality_saturation": _NO_CLOCK,
    "iterated": {"seed": 0},
    "random": {"seed": 0},
    "rlflow": {"seed": 0},
    "tensat": _NO_CLOCK,
}


def entries() -> Mapping[str, Compute]:
    """Return the searches that are the same on every machine."""
    return _searches([method for method in METHODS.built_in if method not in LEARNED])


def learned() -> Mapping[str, Compute]:
    """Return the searches by the shipped policy."""
    return _searches(LEARNED)


def _searches(methods: list[str] | tuple[str, ...]) -> dict[str, Compute]:
    return {
        f"{graph}/{cost}/{method}": partial(_searched, graph, cost, method)
        for method in methods
        for cost in COSTS
        for graph in GRAPHS
    }


def _searched(graph: str, cost: str, method: str) -> Value:
    return digests.search(method_of(method, cost).optimise(graph_of(graph), Budget(rewrites=REWRITES)))


@cache
def graph_of(name: str) -> Graph:
    """Return a small model of the zoo."""
    return from_onnx(zoo.build(name, **SMALL[name] | GRAPHS[name]))


@cache
def method_of(name: str, cost: str) -> Method:
    """Return a method by its name; it is made once for all graphs, as that takes longer than a search."""
    return METHODS.get(name)(LIBRARY, REWRITER, cost_of(cost), **_OPTIONS.get(name, {}))


@cache
def cost_of(name: str) -> CostModel:
    """Return a cost model by its name."""
    return COST_MODELS.get(name)(CostContext())
