"""A results document for each schema, with numbers of the shape that the stages produce.

Each is a file of the schema's name beside this module, but for the evaluation, whose rows differ in a few figures.
`exports` and `conformance` have one entry for every kind that their schemas name, all alike here.
"""

import json
from pathlib import Path
from typing import Any

from rlflow import schemas

_FOLDER = Path(__file__).parent
_OF_KINDS = ("exports", "conformance")
_STEPS = {"steps": 11, "distinct_rules": 10, "trajectory": "0123456789abcdef"}
DELIVERED = {"delivered": "optimised", "delivered_because": "deployed, it runs 1.13 [1.11, 1.14] times as fast"}


def documents() -> dict[str, Any]:
    """All documents by the name of their schema, each made anew."""
    read = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(_FOLDER.glob("*.json"))}
    for name in _OF_KINDS:
        entry = json.dumps(read[name]["kinds"]["each kind"])
        kinds = schemas.schema(name)["properties"]["kinds"]["required"]
        read[name]["kinds"] = {kind: json.loads(entry) for kind in kinds}
    return read | {"evaluate": evaluation()}


def evaluation() -> dict[str, Any]:
    """The document of `evaluate`: five methods on one graph, two on another."""
    return {
        "bert": {
            "original": result(),
            "random": result(9.9, 1.01),
            "greedy": result(9.2, 1.06),
            "backtracking": result(9.1, 1.07),
            "rlflow": result(9.0, 1.08, training_s=200.0, seeds=[0, 1, 2], **_STEPS, **DELIVERED),
        },
        "tiny": {"original": result(), "greedy": result(8.0, 1.2)},
    }


def result(cost_after_ms: float = 10.0, ratio: float = 1.0, **others: Any) -> dict[str, Any]:
    """One method's row, of ratios with narrow intervals around `ratio`."""
    return {
        "cost_before_ms": 10.0,
        "cost_after_ms": cost_after_ms,
        "improvement_percent": 10 * (10.0 - cost_after_ms),
        "latency_ratio_as_written": ratio,
        "latency_ratio_as_written_ci95": [ratio - 0.01, ratio + 0.02],
        "latency_ratio_deployed": ratio + 0.05,
        "latency_ratio_deployed_ci95": [ratio + 0.03, ratio + 0.06],
        "peak_memory_ratio": 1.0,
        "flops_ratio": 1.0,
        "launches_ratio": 1.2,
        "far_share": 0.05,
        "max_relative_error": 1.5e-7,
        "optimisation_s": 12.3,
        "training_s": 0.0,
        "real_interactions": 300,
        "prices_asked": 900,
        "prices_measured": 0,
        "rewriting_s": 0.2,
        "pricing_s": 0.4,
        "measuring_s": 0.0,
        "seeds": [0],
    } | others
