"""The methods that can be chosen by name.

A method is made by calling its factory with a `Library`, a `Rewriter` for its rules and a `CostModel`, and, by keyword,
with options of its own; it is an `rlflow.method.Method`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rlflow.plugins import Registry

if TYPE_CHECKING:
    from rlflow.method import Method

    MethodFactory = Callable[..., Method]

METHODS: Registry[MethodFactory] = Registry(
    noun="method",
    group="rlflow.methods",
    built_in={
        "rlflow": "rlflow.agents.trained_policy:trained_policy",
        "best": "rlflow.search.best:best",
        "equality_saturation": "rlflow.search.equality_saturation:equality_saturation",
        "tensat": "rlflow.search.equality_saturation:tensat",
        "chains": "rlflow.search.chains:Chains",
        "iterated": "rlflow.search.iterated:Iterated",
        "backtracking": "rlflow.search.backtracking:Backtracking",
        "greedy": "rlflow.search.greedy:Greedy",
        "random": "rlflow.search.random:RandomSearch",
        "passes": "rlflow.search.no_op:Nothing",
    },
)
